// SPDX-License-Identifier: BSD-3-Clause
#include "fault/config.hpp"

#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "common/config.hpp"
#include "common/peer/config_fields.hpp"

namespace banyan::fault {
namespace {

std::string short_host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    const std::string text(name.data());
    return text.substr(0, text.find('.'));
}

}  // namespace

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
    section.field("dry_run", c.dry_run);
    section.field("history", c.history);
    section.field("policy", c.policy);
    section.field("opensm_log", c.opensm_log);
    section.field("kmsg", c.kmsg);
    section.field("kmsg_trust", c.kmsg_trust_word);
    section.field("root", c.root);
    section.field("discover", c.discover);
    section.field("metrics", c.metrics);
    section.field("window", c.window);
    section.field("seal_timeout", c.seal_timeout);
    section.field("discover_timeout", c.discover_timeout);
    section.field("settle", c.settle);
    section.field("drains_per_hour", c.drains_per_hour);
    section.field("drains_percent", c.drains_percent);
    section.field("breaker_percent", c.breaker_percent);
    section.field("breaker_window", c.breaker_window);
    section.field("max_event_age", c.max_event_age);
}

}  // namespace

result<config> load_config(const std::filesystem::path& path, std::string node) {
    BANYAN_TRY(const auto file, config_file::load(path));
    config c;
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
    c.snapshot = file.section("topo", c.node).text("snapshot");
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
