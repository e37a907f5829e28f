// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/node_sweep.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::fault {
namespace {

using clock = helper::clock;

constexpr std::size_t longest_text = 400;
constexpr int fit = 0, unfit = 1;

sweep_answer unknown(std::string why) { return {"unknown", std::move(why)}; }

constexpr std::int64_t its_own_s = 3;

/// It is the node's mounts, memory and clock that are looked at. As banyan-sweep.service, and ended by
/// systemd where we are not there any more to do that.
std::vector<std::string> outside_of_the_sandbox(const std::string& program, std::int64_t seconds) {
    std::vector<std::string> out{program,
                                 "--quiet",
                                 "--wait",
                                 "--pipe",
                                 "--collect",
                                 "--description=banyan: sweep of this node, for an incident",
                                 "--unit=banyan-sweep-asked"};  // one at a time
    // A look of it that hangs in the kernel does not hold up the end of the others, nor what they found.
    for (const char* property : {"KillMode=process", "TimeoutStopSec=1"})
        out.push_back(fmt::format("--property={}", property));
    for (const char* property : {"Nice=19", "IOSchedulingClass=idle", "CPUWeight=20", "TasksMax=4096",
                                 "NoNewPrivileges=yes", "RestrictNamespaces=yes"})
        out.push_back(fmt::format("--property={}", property));
    out.push_back(fmt::format("--property=RuntimeMaxSec={}", seconds + its_own_s));
    if (const char* conf = std::getenv("SLURM_CONF"); conf && *conf)
        out.push_back(fmt::format("--setenv=SLURM_CONF={}", conf));
    out.emplace_back("--");
    return out;
}

/// "gpus: GPU 3 is lost; disks: ...": of the checks that are not fit.
std::string findings(const json_fields& told, std::string_view verdict) {
    std::string out;
    const auto checks = told.list("checks");
    if (!checks) return out;
    for (const auto& one : *checks) {
        const auto name = one.text("check", 64), is = one.text("verdict", 32);
        if (!name || !is || *is != verdict) continue;
        out += fmt::format("{}{}", out.empty() ? "" : "; ", *name);
        const auto* found = one.find("what");
        if (!found || !found->is_array()) continue;
        const char* between = ": ";
        for (const auto& sentence : *found)
            if (sentence.is_string()) {
                out += between + sentence.get<std::string>();
                between = ", ";
            }
    }
    // The controller takes no longer answer, and escaping makes it longer.
    return printable(printable(out.substr(0, longest_text)).substr(0, longest_text));
}

}  // namespace

sweep_answer read_sweep(const std::string& json, int code) {
    const auto told = nlohmann::json::parse(json, nullptr, false);
    if (!told.is_object())
        return unknown(fmt::format("banyan-sweep ended with code {} and said nothing: see [sweep]", code));
    const json_fields fields(told);
    const auto verdict = fields.text("verdict", 32).value_or("");
    if (code == unfit && verdict == "unfit") return {"unfit", findings(fields, "unfit")};
    if (code == fit && verdict == "fit") {
        const auto looked_at = findings(fields, "fit"), skipped = findings(fields, "skipped");
        // Fit is what nothing speaks against, and what was looked at.
        if (looked_at.empty()) return unknown("nothing was looked at: " + skipped);
        return {"fit", looked_at + (skipped.empty() ? "" : "; not looked at: " + skipped)};
    }
    const auto what = findings(fields, "unknown");
    return unknown(what.empty() ? fmt::format("banyan-sweep ended with code {}", code) : what);
}

task<sweep_answer> node_sweep::ask() {
    while (under_way_) co_await ended_.async_wait(as_result);
    if (last_ && clock::now() - last_at_ < config_.sweep_again) {
        // What was fit then need not be now: this is asked for a fault that may have come since.
        if (last_->verdict != "fit") co_return *last_;
        const auto age = std::chrono::duration_cast<std::chrono::seconds>(clock::now() - begun_at_).count();
        co_return unknown(
            fmt::format("it was fit {} s ago, before this was asked, and is not swept again so "
                        "soon",
                        age));
    }
    under_way_ = true;
    begun_at_ = clock::now();
    ended_.expires_at(clock::time_point::max());
    last_ = co_await sweep();
    last_at_ = clock::now();
    under_way_ = false;
    ended_.cancel();
    co_return *last_;
}

task<sweep_answer> node_sweep::sweep() {
    if (running_ && !running_->ended()) co_return unknown("an earlier sweep hangs in the kernel");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(config_.sweep_timeout).count();
    auto words = config_.sandboxed ? outside_of_the_sandbox(config_.unit_program, seconds)
                                   : std::vector<std::string>();
    words.insert(words.end(), {config_.sweep_program, "--json", "--node", config_.node, "--time-limit",
                               std::to_string(seconds)});
    if (!config_.file.empty()) words.insert(words.end(), {"--config", config_.file});
    auto started = helper::start(io_, words);
    if (!started) co_return unknown(started.error().text());
    running_ = std::move(*started);
    // It ends by itself at its limit, or with the last of its own two seconds.
    const auto until = clock::now() + config_.sweep_timeout + std::chrono::seconds(its_own_s);
    const auto text = co_await running_->all(until);
    const bool ended = co_await running_->ends_by(text ? until : clock::now());
    if (!text || !ended) {
        running_->kill();
        co_return unknown(fmt::format("banyan-sweep did not end within {} s", seconds));
    }
    const auto end = running_->end();
    running_.reset();
    if (end.signal != 0) co_return unknown(fmt::format("banyan-sweep was ended by signal {}", end.signal));
    if (config_.sandboxed && text->empty())
        co_return unknown(
            fmt::format("{} ended with code {} and banyan-sweep said nothing: it needs systemd, "
                        "its bus, and no other sweep under way",
                        config_.unit_program, end.code));
    co_return read_sweep(*text, end.code);
}

}  // namespace banyan::fault
