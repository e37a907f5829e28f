// SPDX-License-Identifier: BSD-3-Clause
//
// What the agent does with each line of the kernel's log, record and prefix included: lines a second of one
// core. And what it makes of them: every generated fault found, no event of ordinary lines and of lines that
// users provoke.
//     fault_bench [--json FILE] [--lines N]
#include <map>

#include <CLI/CLI.hpp>

#include "fault/parse/any_log.hpp"
#include "fault/sources/line_splitter.hpp"
#include "test/bench/figures.hpp"
#include "test/fault_lines.hpp"

namespace {

using namespace banyan::fault;
using banyan::bench::thread_ms;

struct speed {
    double per_second = 0;
    std::uint64_t faults = 0;
};

// One buffer of lines over and over, through the reader's splitter.
speed read_over(const std::string& buffer, std::size_t count, std::size_t lines, bool device) {
    kernel_log log(kmsg_trust::kernel, device);
    kernel_parser parser;
    speed out;
    std::size_t done = 0;
    const auto start = thread_ms();
    while (done < lines) {
        banyan::fault::line_splitter split;
        split.feed(buffer, [&](std::string_view line, std::uint64_t) {
            log.read(line, [&](std::string_view text) { out.faults += parser.line(text).fault.has_value(); });
        });
        done += count;
    }
    out.per_second = static_cast<double>(done) / (thread_ms() - start) * 1000;
    return out;
}

std::string body_of(const std::string& line) { return line.substr(line.find(';') + 1); }

// Ordinary lines with one fault in a hundred, as records of the device and as a file.
std::string buffer_of(std::size_t count, bool device) {
    testing::fault_lines draw(3);
    std::string out;
    std::size_t drawn = 0;
    for (std::size_t n = 0; n < count;) {
        const auto one = n % 100 == 99 ? draw.fault(drawn++) : draw.ordinary(n);
        if (one.format != log_format::kmsg || one.line.find(';') > 40) continue;
        out += device ? one.line : "[ " + std::to_string(n) + ".000001] " + body_of(one.line);
        out += '\n';
        ++n;
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::size_t lines = 1'000'000;
    CLI::App app{"fault_bench: how fast and how well faults are read from logs"};
    app.add_option("--json", json, "write the figures there");
    app.add_option("--lines", lines, "lines of each kind");
    CLI11_PARSE(app, argc, argv);
    banyan::bench::figures out;
    constexpr std::size_t count = 20'000;
    for (const bool device : {true, false}) {
        const auto buffer = buffer_of(count, device);
        double best = 0;
        for (int run = 0; run < 3; ++run)
            best = std::max(best, read_over(buffer, count, lines, device).per_second);
        out.add(device ? "kernel lines read, records of the device" : "kernel lines read, a file", best,
                "lines/s", "one core", ">=", 1e6);
    }
    testing::fault_lines draw(5);
    std::uint64_t missed = 0, wrong = 0, invented = 0;
    const auto events = [&](std::map<log_format, any_log>& logs, const testing::drawn& one, auto take) {
        logs.try_emplace(one.format, one.format).first->second.line(one.line, take);
    };
    for (std::size_t n = 0; n < lines / 5; ++n) {
        const auto one = draw.fault(n);
        std::uint64_t got = 0;
        std::map<log_format, any_log> logs;
        events(logs, one, [&](const reading& r) {
            ++got;
            wrong += r.kind != one.kind || (one.code && r.code != one.code);
        });
        missed += got == 0;
        wrong += got > 1;
    }
    std::map<log_format, any_log> logs;
    const auto count_one = [&](const reading&) { ++invented; };
    for (std::size_t n = 0; n < lines; ++n) events(logs, draw.ordinary(n), count_one);
    for (std::size_t n = 0; n < 10'000; ++n) events(logs, draw.provoked(n), count_one);
    const auto drawn = std::to_string(lines / 5) + " generated faults";
    out.add("faults missed", static_cast<double>(missed), "lines", drawn, "<=", 0);
    out.add("faults taken for others", static_cast<double>(wrong), "lines", drawn, "<=", 0);
    out.add("events of lines that are none", static_cast<double>(invented), "events",
            std::to_string(lines) + " ordinary, 10000 provoked", "<=", 0);
    return out.finish(json);
}
