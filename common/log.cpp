// SPDX-License-Identifier: BSD-3-Clause
#include "common/log.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>

#include "common/fd.hpp"
#include "common/file.hpp"
#include "common/log_file.hpp"
#include "common/text.hpp"

namespace banyan {
namespace {

// The message as one line whatever is in it: nobody whose text is logged can write a line of his own.
class escaped_message : public spdlog::custom_flag_formatter {
  public:
    void format(const spdlog::details::log_msg& message, const std::tm&,
                spdlog::memory_buf_t& into) override {
        const auto text = printable({message.payload.data(), message.payload.size()});
        into.append(text.data(), text.data() + text.size());
    }
    std::unique_ptr<custom_flag_formatter> clone() const override {
        return std::make_unique<escaped_message>();
    }
};

/// Lines appended to a file, which reopen() finds anew by its name.
class file_sink : public spdlog::sinks::base_sink<std::mutex> {
  public:
    explicit file_sink(std::string path) : path_(std::move(path)) {}

    result<void> reopen() {
        std::error_code ignored;
        std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
        unique_fd opened(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640));
        if (!opened) return fail_errno("cannot open the log " + path_, errno);
        // Lines name users, their jobs and directories: also in a file that an earlier release has made.
        struct stat st {};
        if (::fstat(opened.get(), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IRWXO) != 0)
            ::fchmod(opened.get(), st.st_mode & 07770);
        const std::lock_guard held(mutex_);
        file_ = std::move(opened);
        return {};
    }

  protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        const std::string_view rest(line.data(), line.size());
        // One write for one line: daemons may share a file. What a full disk cuts off is lost, and said.
        if (::write(file_.get(), rest.data(), rest.size()) != static_cast<ssize_t>(rest.size()))
            throw spdlog::spdlog_ex("cannot write to the log " + path_, errno);
    }
    void flush_() override {}

  private:
    std::string path_;
    unique_fd file_;
};

std::shared_ptr<file_sink> log_file;  // of setup_log, before any thread

}  // namespace

void reopen_log() {
    if (!log_file) return;
    if (const auto opened = log_file->reopen(); !opened)
        spdlog::error("{}; the log goes on where it was", opened.error().text());
    else
        spdlog::info("the log is opened anew");
}

std::string log_option(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--") break;
        if (word == "--log" && i + 1 < argc) return argv[i + 1];
        if (word.starts_with("--log=")) return std::string(word.substr(6));
    }
    return {};
}

void say_fatal(const std::string& program, const std::string& file, const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), printable(why).c_str());
    if (!log_file && (file.empty() || !setup_log(program, file, "info"))) return;
    spdlog::critical("cannot start: {}", why);
}

result<void> setup_log(const std::string& program, const std::string& file, const std::string& level) {
    const auto parsed = spdlog::level::from_str(level);
    if (parsed == spdlog::level::off && level != "off")
        return fail(errc::invalid_input, "unknown log level \"" + level + "\"",
                    "levels are trace, debug, info, warn, error, off");
    try {
        spdlog::sink_ptr sink;
        std::shared_ptr<file_sink> opened;
        if (file.empty()) {
            sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
        } else {
            opened = std::make_shared<file_sink>(file);
            BANYAN_CHECK(opened->reopen());
            sink = opened;
        }
        auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
        auto formatter = std::make_unique<spdlog::pattern_formatter>();
        formatter->add_flag<escaped_message>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %*");
        logger->set_formatter(std::move(formatter));
        logger->set_level(parsed);
        logger->flush_on(spdlog::level::trace);
        spdlog::set_default_logger(std::move(logger));
        log_file = std::move(opened);
    } catch (const spdlog::spdlog_ex& e) {
        return fail(errc::denied, std::string("cannot open the log: ") + e.what());
    }
    return {};
}

bool log_limiter::pass(const std::string& key, clock::time_point now, std::uint64_t& held_back) {
    if (entries_.size() >= places_ && !entries_.contains(key) && now - swept_ >= interval_) {
        std::erase_if(entries_, [&](const auto& e) { return now - e.second.last >= interval_; });
        swept_ = now;
    }
    const bool crowd = entries_.size() >= places_ && !entries_.contains(key);
    const auto [it, fresh] = entries_.try_emplace(crowd ? std::string() : key, entry{now, 0});
    if (!fresh && now - it->second.last < interval_) {
        ++it->second.held_back;
        return false;
    }
    held_back = std::exchange(it->second.held_back, 0);
    it->second.last = now;
    return true;
}

}  // namespace banyan
