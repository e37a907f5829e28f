// SPDX-License-Identifier: BSD-3-Clause
#include "examples/trainer/report.hpp"

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "examples/trainer/failure.hpp"

namespace trainer {
namespace {

template <class... Values>
std::string print(const char* format, Values... values) {
    char buffer[512];
    const int n = std::snprintf(buffer, sizeof buffer, format, values...);
    return {buffer, std::min<std::size_t>(static_cast<std::size_t>(std::max(n, 0)), sizeof buffer - 1)};
}

/// Seconds since 1970 with milliseconds.
std::string now() {
    using namespace std::chrono;
    const auto ms = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    return print("%lld.%03d", static_cast<long long>(ms / 1000), static_cast<int>(ms % 1000));
}

}  // namespace

report::report(const std::string& log) {
    if (log.empty()) return;
    log_.reset(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!log_) throw failure_errno("cannot open the log " + log, errno);
}

void report::line(std::string text) {
    text += '\n';
    // A reader that went away must not end the training: SIGPIPE is ignored, and so is the error.
    [[maybe_unused]] const auto shown = ::write(STDOUT_FILENO, text.data(), text.size());
    if (log_ && ::write(log_.get(), text.data(), text.size()) < 0) log_.reset();
}

void report::started(const identity& self) {
    line("started world=" + std::to_string(self.world) + " shape=" + self.shape_text + " at=" + now());
}

void report::restored(const identity& self, std::uint64_t step, const std::string& source,
                      std::uint64_t bytes) {
    line("restored rank=" + std::to_string(self.rank) + " step=" + std::to_string(step) +
         " source=" + source + " bytes=" + std::to_string(bytes) + " node=" + self.node + " at=" + now());
}

void report::step(std::uint64_t step, float loss, double took_ms) {
    line(print("step=%llu loss=%.6f bits=%08x ms=%.1f at=%s", static_cast<unsigned long long>(step),
               static_cast<double>(loss), std::bit_cast<std::uint32_t>(loss), took_ms, now().c_str()));
}

void report::finished(std::uint64_t steps) {
    line("finished steps=" + std::to_string(steps) + " at=" + now());
}

void report::note(const std::string& text) { line(text); }

}  // namespace trainer
