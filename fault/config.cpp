// SPDX-License-Identifier: BSD-3-Clause
#include "fault/config.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "common/config.hpp"

namespace banyan::fault {
namespace {

std::string with_node(std::string path, const std::string& node) {
    for (auto at = path.find("%n"); at != std::string::npos; at = path.find("%n", at + node.size()))
        path.replace(at, 2, node);
    return path;
}

std::string short_host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    const std::string text(name.data());
    return text.substr(0, text.find('.'));
}

}  // namespace

policy_limits config::limits() const {
    return {drains_per_hour, breaker_percent, breaker_window.count(), max_event_age.count()};
}

result<config> load_config(const std::filesystem::path& path, std::string node) {
    BANYAN_TRY(const auto file, config_file::load(path));
    config c;
    c.node = node.empty() ? short_host_name() : std::move(node);
    const auto place = [&](config_section& s, const char* key, const char* fallback) {
        return with_node(s.string(key, fallback), c.node);
    };
    // Other parts check their own tables; here they are only read.
    auto munge = file.section("munge"), ckptd = file.section("ckptd"), topo = file.section("topo");
    c.munge_socket = place(munge, "socket", "");
    auto peers = file.section("peers");
    c.encrypt = peers.boolean("encrypt", c.encrypt);
    BANYAN_CHECK(peers.finish());
    c.ckptd_socket = place(ckptd, "socket", "/run/banyan/ckptd.sock");
    c.snapshot = place(topo, "snapshot", "/var/lib/banyan/fabric.snapshot");

    auto s = file.section("fault");
    c.controller = s.string("controller", c.controller);
    c.port = static_cast<std::uint16_t>(s.integer("port", c.port, 1, 65535));
    c.bind = s.string("bind", c.bind);
    c.socket = place(s, "socket", "/run/banyan/faultd.sock");
    c.dry_run = s.boolean("dry_run", c.dry_run);
    c.history = place(s, "history", "/var/lib/banyan/incidents.db");
    c.opensm_log = place(s, "opensm_log", "");
    c.kmsg = place(s, "kmsg", "/dev/kmsg");
    const auto belief = kmsg_trust_from(s.string("kmsg_trust", "kernel"));
    c.root = place(s, "root", "/");
    c.discover = s.strings("discover", {"ibnetdiscover"});
    c.metrics = place(s, "metrics", "");
    c.window = s.duration("window", c.window);
    c.seal_timeout = s.duration("seal_timeout", c.seal_timeout);
    c.discover_timeout = s.duration("discover_timeout", c.discover_timeout);
    c.settle = s.duration("settle", c.settle);
    c.drains_per_hour =
        static_cast<std::uint32_t>(s.integer("drains_per_hour", c.drains_per_hour, 0, 1'000'000));
    c.breaker_percent = static_cast<std::uint32_t>(s.integer("breaker_percent", c.breaker_percent, 1, 100));
    c.breaker_window = s.duration("breaker_window", c.breaker_window);
    c.max_event_age = s.duration("max_event_age", c.max_event_age);
    BANYAN_CHECK(s.finish());
    BANYAN_TRY(c.kmsg_belief, belief);
    if (c.discover.empty())
        return fail(errc::invalid_input, "[fault] discover is empty",
                    "name a program, such as [\"ibnetdiscover\"]");
    return c;
}

std::string config::dump() const {
    return fmt::format(
        "# node {}\n[peers]\nencrypt = {}\n\n[fault]\ncontroller = \"{}\"\nport = {}\nbind = \"{}\"\nsocket "
        "= \"{}\"\ndry_run = "
        "{}\nhistory = \"{}\"\n"
        "opensm_log = \"{}\"\nkmsg = \"{}\"\nkmsg_trust = \"{}\"\nroot = \"{}\"\ndiscover = [{:?}]\nmetrics "
        "= \"{}\"\nwindow = "
        "\"{}ms\"\n"
        "seal_timeout = \"{}ms\"\ndiscover_timeout = \"{}ms\"\nsettle = \"{}ms\"\ndrains_per_hour = {}\n"
        "breaker_percent = {}\nbreaker_window = \"{}ms\"\nmax_event_age = \"{}ms\"\n",
        node, encrypt, controller, port, bind, socket, dry_run, history, opensm_log, kmsg,
        name_of(kmsg_belief), root, fmt::join(discover, ", "), metrics, window.count(), seal_timeout.count(),
        discover_timeout.count(), settle.count(), drains_per_hour, breaker_percent, breaker_window.count(),
        max_event_age.count());
}

}  // namespace banyan::fault
