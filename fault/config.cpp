// SPDX-License-Identifier: BSD-3-Clause
#include "fault/config.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "common/config.hpp"
#include "common/peer/config_fields.hpp"
#include "common/text.hpp"

namespace banyan::fault {
namespace {

std::string short_host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    const std::string text(name.data());
    return text.substr(0, text.find('.'));
}

}  // namespace

namespace {

constexpr std::array<std::string_view, 2> program_logs{"fabric-manager", "nccl"};
constexpr std::size_t most_logs = 16;  // each takes an inotify instance, of which root has 128
constexpr std::size_t most_counters = 64;

// "nccl:/var/log/nccl/%n.log"
result<log_source> log_source_from(std::string_view text, const std::string& node) {
    const auto colon = text.find(':');
    const auto at = std::ranges::find(program_logs, text.substr(0, colon));
    if (colon == std::string_view::npos || at == program_logs.end() || text.substr(colon + 1, 1) != "/")
        return fail(errc::invalid_input,
                    fmt::format("[fault] logs has \"{}\"", printable(text.substr(0, 200))),
                    "expected \"fabric-manager:/PATH\" or \"nccl:/PATH\"");
    log_source out{static_cast<program_log>(at - program_logs.begin()), {}};
    for (auto rest = text.substr(colon + 1); !rest.empty();) {
        const bool name = rest.starts_with("%n");
        out.path += name ? std::string_view(node) : rest.substr(0, 1);
        rest.remove_prefix(name ? 2 : 1);
    }
    return out;
}

result<void> check_logs(const config& c) {
    if (c.logs.size() > most_logs)
        return fail(errc::invalid_input, fmt::format("[fault] logs names {} files", c.logs.size()),
                    fmt::format("at most {} are possible", most_logs));
    for (const auto& text : c.logs) BANYAN_CHECK(log_source_from(text, c.node));
    return {};
}

result<void> check_counters(const config& c) {
    if (c.hca_counters.size() > most_counters)
        return fail(errc::invalid_input,
                    fmt::format("[fault] hca_counters has {} entries", c.hca_counters.size()),
                    fmt::format("at most {} are possible", most_counters));
    for (const auto& text : c.hca_counters)
        if (const auto limit = counter_limit_from(text); !limit)
            return fail(errc::invalid_input, "[fault] hca_counters: " + limit.error().what,
                        limit.error().hint);
    return {};
}

}  // namespace

std::string_view name_of(program_log format) { return program_logs[static_cast<std::size_t>(format)]; }

std::vector<log_source> config::log_sources() const {
    std::vector<log_source> out;
    for (const auto& text : logs) out.push_back(log_source_from(text, node).value());
    return out;
}

std::vector<counter_limit> config::counter_limits() const {
    std::vector<counter_limit> out;
    for (const auto& text : hca_counters) out.push_back(counter_limit_from(text).value());
    return out;
}

policy_limits config::limits() const {
    return {drains_per_hour, drains_percent, breaker_percent, breaker_window.count(), max_event_age.count()};
}

namespace {

// What reads the tables and what writes them.
template <class Section, class Config>
void fault_fields(Section& section, Config& c) {
    section.field("controller", c.controller);
    section.field("port", c.port);
    section.field("bind", c.bind);
    section.field("socket", c.socket);
    section.field("agent_socket", c.agent_socket);
    section.field("dry_run", c.dry_run);
    section.field("history", c.history);
    section.field("policy", c.policy);
    section.field("opensm_log", c.opensm_log);
    section.field("ufm_log", c.ufm_log);
    section.field("kmsg", c.kmsg);
    section.field("kmsg_trust", c.kmsg_trust_word);
    section.field("root", c.root);
    section.field("hca_events", c.hca_events);
    section.field("hca_poll_interval", c.hca_poll_interval);
    section.field("hca_counters", c.hca_counters);
    section.field("gpu_poll_interval", c.gpu_poll_interval);
    section.field("logs", c.logs);
    section.field("fabric_dump_command", c.fabric_dump_command);
    section.field("sm_probe_command", c.sm_probe_command);
    section.field("sm_probe_grace", c.sm_probe_grace);
    section.field("metrics", c.metrics);
    section.field("correlation_window", c.correlation_window);
    section.field("seal_timeout", c.seal_timeout);
    section.field("fabric_dump_timeout", c.fabric_dump_timeout);
    section.field("fabric_debounce", c.fabric_debounce);
    section.field("drains_per_hour", c.drains_per_hour);
    section.field("drains_percent", c.drains_percent);
    section.field("breaker_percent", c.breaker_percent);
    section.field("breaker_window", c.breaker_window);
    section.field("max_event_age", c.max_event_age);
    section.field("avoid_percent", c.avoid_percent);
    section.field("avoid_for", c.avoid_for);
}

}  // namespace

result<config> load_config(const std::filesystem::path& path, std::string node) {
    BANYAN_TRY(const auto file, config_file::load(path));
    config c;
    c.file = path.string();
    c.node = node.empty() ? short_host_name() : std::move(node);
    const auto own = file.section("fault", c.node), peers = file.section("peers", c.node);
    // Other parts check their own tables; here they are only read.
    const auto munge = file.section("munge", c.node);
    for (const auto& section : {own, peers}) BANYAN_CHECK(section.check());
    fault_fields(own, c);
    peer::peers_fields(peers, c);
    peer::munge_fields(munge, c);
    const auto ckptd = file.section("ckptd", c.node);
    c.ckptd_socket = ckptd.text("socket");
    ckptd.field("port", c.ckptd_port);
    const auto topo = file.section("topo", c.node);
    c.snapshot = topo.text("snapshot");
    c.avoid = topo.text("avoid");
    c.names = topo.text("names");
    c.site = topo.text("site");
    BANYAN_CHECK(check_logs(c));
    BANYAN_CHECK(check_counters(c));
    return c;
}

kmsg_trust config::kmsg_belief() const { return kmsg_trust_from(kmsg_trust_word).value(); }

std::string config::dump() const {
    config_text munge("munge"), peers("peers"), own("fault");
    peer::munge_fields(munge, *this);
    peer::peers_fields(peers, *this);
    fault_fields(own, *this);
    return fmt::format("# node {}\n{}\n{}\n{}", node, munge.text(), peers.text(), own.text());
}

}  // namespace banyan::fault
