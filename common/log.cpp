// SPDX-License-Identifier: BSD-3-Clause
#include "common/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace banyan {

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
        logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %v");
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
    if (entries_.size() >= max_keys && !entries_.contains(key)) entries_.clear();
    const auto [it, fresh] = entries_.try_emplace(key, entry{now, 0});
    if (!fresh && now - it->second.last < interval_) {
        ++it->second.held_back;
        return false;
    }
    held_back = std::exchange(it->second.held_back, 0);
    it->second.last = now;
    return true;
}

}  // namespace banyan
