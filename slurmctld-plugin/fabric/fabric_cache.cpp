// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/fabric/fabric_cache.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <string_view>
#include <unordered_map>

#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/config.hpp"
#include "common/file.hpp"
#include "slurmctld-plugin/fabric/gpu_kinds.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {
namespace {

constexpr const char* topic = "fabric snapshot";
constexpr const char* avoid_topic = "links to avoid";
constexpr const char* plainly = "jobs run where cons_tres has them, with their ranks in Slurm's order, until";
constexpr const char* make_one = "it is there: run banyan-topo snapshot";
constexpr std::int64_t look_again_s = 1;

std::int64_t nanoseconds(const timespec& at) { return at.tv_sec * 1'000'000'000LL + at.tv_nsec; }

/// What "banyan-risk=0.5" in a node's comment says, 0 to 1; 0 for any other comment.
float risk_in(const char* comment) {
    constexpr std::string_view key = "banyan-risk=";
    const std::string_view text = comment ? comment : "";
    const auto at = text.find(key);
    if (at == std::string_view::npos) return 0;
    float risk = 0;
    const auto number = text.substr(at + key.size());
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), risk);
    return parsed.ec == std::errc() && risk >= 0 ? std::min(risk, 1.f) : 0;
}

std::string hint_after(int err) {
    const auto hint = hint_for(err);
    return hint.empty() ? "" : ": " + hint;
}

// "n07, n08 and 12 more": enough to know which, never a page.
std::string some_names(const std::vector<std::string>& names) {
    constexpr std::size_t shown = 4;
    std::string out;
    for (std::size_t i = 0; i < names.size() && i < shown; ++i) out += (i ? ", " : "") + names[i];
    if (names.size() > shown) out += fmt::format(" and {} more", names.size() - shown);
    return out;
}

}  // namespace

fabric_cache& fabric_cache::instance() {
    static fabric_cache cache;
    return cache;
}

void fabric_cache::read_config() {
    configured_ = true;
    const auto file = config_file::load(default_config_path());
    if (!file) log_state("configuration", file.error().text());
    const auto section = file.value_or(config_file::defaults()).section("topo");
    if (const auto right = section.check(); !right) log_state("configuration", right.error().text());
    path_ = section.text("snapshot");
    avoid_path_ = section.text("avoid");
    std::chrono::milliseconds max_age{};
    section.field("max_age", max_age);
    max_age_s_ = std::chrono::duration_cast<std::chrono::seconds>(max_age).count();
}

void fabric_cache::load(std::int64_t now) {
    usable_ = false;
    struct stat st {};
    if (::stat(path_.c_str(), &st) != 0) {
        const int err = errno;
        seen_ = {};
        if (const auto hint = hint_for(err); !hint.empty())
            return log_state(topic, fmt::format("cannot look at the fabric snapshot {}: {}; {} then: {}",
                                                path_, std::strerror(err), plainly, hint));
        return log_state(topic, fmt::format("no fabric snapshot at {}: {}; {} {}", path_, std::strerror(err),
                                            plainly, make_one));
    }
    // A file that may be read at last, or an older one put in place, has another time of change alone.
    const file_state now_there{nanoseconds(st.st_mtim), nanoseconds(st.st_ctim), st.st_ino};
    if (now_there != seen_) {
        seen_ = now_there;
        map_ = {};
        auto loaded = topo::load_snapshot(path_);
        loaded_ = loaded.has_value();
        if (!loaded) {
            const auto& why = loaded.error();
            const bool closed = why.code == errc::denied;
            return log_state(
                topic, fmt::format("{}; {} {}", why.what, plainly, closed ? "then: " + why.hint : make_one));
        }
        fabric_ = std::move(*loaded);
        mark_avoided();
        log_info(fmt::format("fabric snapshot {}: {} hosts in {} leaf groups", path_, fabric_.hosts.size(),
                             fabric_.leaf_groups.size()));
    }
    if (!loaded_) return;
    const auto age_s = now - st.st_mtim.tv_sec;
    if (max_age_s_ > 0 && age_s > max_age_s_)
        return log_state(topic, fmt::format("the fabric snapshot {} is older than max_age ({} h); {} {}",
                                            path_, max_age_s_ / 3600, plainly, make_one));
    usable_ = true;
    log_state(topic, "");
    read_avoided();
}

void fabric_cache::read_avoided() {
    if (avoid_path_.empty()) return;
    struct stat st {};
    if (::stat(avoid_path_.c_str(), &st) != 0) {
        const int err = errno;
        // The fault controller writes it at its start: where there is none, there is nothing to avoid.
        if (err == ENOENT) {
            if (avoid_seen_ == file_state{}) return log_state(avoid_topic, "");
            avoid_seen_ = {};
            avoided_.clear();
            return mark_avoided();
        }
        return log_state(
            avoid_topic,
            fmt::format("cannot look at {}: {}; jobs are kept off the links that it named last{}",
                        avoid_path_, std::strerror(err), hint_after(err)));
    }
    const file_state now_there{nanoseconds(st.st_mtim), nanoseconds(st.st_ctim), st.st_ino};
    if (now_there == avoid_seen_) return;
    avoid_seen_ = now_there;
    const auto text = read_file(avoid_path_, topo::max_avoid_bytes);
    auto links = text ? topo::read_avoid(*text) : std::unexpected(text.error());
    if (!links)
        return log_state(avoid_topic, fmt::format("{}: {}; jobs are kept off the links that it named last",
                                                  avoid_path_, links.error().text()));
    avoided_ = std::move(*links);
    mark_avoided();
}

// The marks are not in the snapshot: each new one gets those of the last list that was whole.
void fabric_cache::mark_avoided() {
    const auto marked = std::ranges::count_if(fabric_.links, [](const auto& l) { return l.avoid; });
    const auto found = topo::mark_avoided(fabric_, avoided_);
    if (marked != 0 || !avoided_.empty())
        log_info(fmt::format("{}: new jobs are kept off {} links, of which the fabric has {}", avoid_path_,
                             avoided_.size(), found));
    log_state(avoid_topic, found == avoided_.size()
                               ? ""
                               : fmt::format("{} names {} links that the fabric snapshot lacks", avoid_path_,
                                             avoided_.size() - found));
}

bool fabric_cache::joined_with(const ctld_tables& ctld) const {
    // A reconfiguration builds the node table anew; comparing one name per call would not see it, all of them
    // is cheap enough only when something changed, so compare the ends of the table and its size.
    if (map_.hosts() != fabric_.hosts.size() || map_.nodes() != static_cast<std::size_t>(ctld.nodes()))
        return false;
    const auto same = [&](std::size_t host) {
        return ctld.find_node(fabric_.hosts[host].name) == map_.node_of(static_cast<std::uint32_t>(host));
    };
    return fabric_.hosts.empty() ||
           (same(0) && same(fabric_.hosts.size() / 2) && same(fabric_.hosts.size() - 1));
}

void fabric_cache::join(const ctld_tables& ctld) {
    std::vector<std::string> names, unknown_to_slurm, without_fabric;
    for (const auto& host : fabric_.hosts) names.push_back(host.name);
    map_ = host_map(ctld.find_nodes(names), static_cast<std::size_t>(ctld.nodes()));
    for (std::uint32_t host = 0; host < map_.hosts(); ++host)
        if (map_.node_of(host) == host_map::no_node) unknown_to_slurm.push_back(names[host]);
    for (int node = 0; node < ctld.nodes(); ++node)
        if (ctld.node(node) && map_.host_of(node) == host_map::no_host)
            without_fabric.emplace_back(ctld.node(node)->name);
    std::string hosts, nodes;
    if (!names.empty() && unknown_to_slurm.size() == names.size()) {
        hosts = fmt::format(
            "no node of slurm.conf is in the fabric snapshot, whose hosts are called {}; training jobs have "
            "their ranks in Slurm's order until banyan-topo snapshot --names says which host is which node",
            some_names(names));
    } else {
        if (!unknown_to_slurm.empty())
            hosts = fmt::format("the fabric snapshot has {} hosts that slurm.conf lacks: {}",
                                unknown_to_slurm.size(), some_names(unknown_to_slurm));
        if (!without_fabric.empty())
            nodes = fmt::format(
                "{} nodes are not in the fabric snapshot, training jobs with one of them have "
                "their ranks in Slurm's order: {}",
                without_fabric.size(), some_names(without_fabric));
    }
    log_state("hosts without node", hosts);
    log_state("nodes without host", nodes);
}

const fabric_cache::view* fabric_cache::get(const ctld_tables& ctld) {
    if (!configured_) read_config();
    const std::int64_t now = std::time(nullptr);
    const bool again = now - checked_at_ >= look_again_s;
    if (again) {
        checked_at_ = now;
        load(now);
    }
    if (!usable_) return nullptr;
    const bool joined = joined_with(ctld);
    if (!joined) join(ctld);
    if (again || !joined) read_nodes(ctld);
    return &view_;
}

void fabric_cache::read_nodes(const ctld_tables& ctld) {
    risk_.assign(fabric_.hosts.size(), 0);
    kind_.assign(fabric_.hosts.size(), 0);
    gpu_kinds kinds;
    std::unordered_map<const config_record_t*, std::uint32_t> known;  // nodes of one line share it
    for (int index = 0; index < ctld.nodes(); ++index) {
        const auto* node = ctld.node(index);
        const auto host = node ? map_.host_of(index) : host_map::no_host;
        if (host == host_map::no_host) continue;
        risk_[host] = risk_in(node->comment);
        const auto [at, is_new] = known.try_emplace(node->config_ptr, 0);
        if (is_new && node->config_ptr && node->config_ptr->gres)
            at->second = kinds.number_of(node->config_ptr->gres);
        else if (is_new)
            at->second = kinds.number_of("");
        kind_[host] = at->second;
    }
}

}  // namespace banyan::slurm
