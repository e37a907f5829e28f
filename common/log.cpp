// SPDX-License-Identifier: BSD-3-Clause
#include "common/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

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

}  // namespace

result<void> setup_log(const std::string& program, const std::string& file, const std::string& level) {
    const auto parsed = spdlog::level::from_str(level);
    if (parsed == spdlog::level::off && level != "off")
        return fail(errc::invalid_input, "unknown log level \"" + level + "\"",
                    "levels are trace, debug, info, warn, error, off");
    try {
        spdlog::sink_ptr sink;
        if (file.empty())
            sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
        else
            sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
        auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
        auto formatter = std::make_unique<spdlog::pattern_formatter>();
        formatter->add_flag<escaped_message>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %*");
        logger->set_formatter(std::move(formatter));
        logger->set_level(parsed);
        logger->flush_on(spdlog::level::trace);
        spdlog::set_default_logger(std::move(logger));
    } catch (const spdlog::spdlog_ex& e) {
        return fail(errc::denied, std::string("cannot open the log: ") + e.what());
    }
    return {};
}

bool log_limiter::pass(const std::string& key, std::chrono::steady_clock::time_point now,
                       std::uint64_t& held_back) {
    if (entries_.size() >= max_keys && !entries_.contains(key) && now - swept_ >= interval_) {
        std::erase_if(entries_, [&](const auto& e) { return now - e.second.last >= interval_; });
        swept_ = now;
    }
    const bool crowd = entries_.size() >= max_keys && !entries_.contains(key);
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
