// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>

#include <banyan/topo/avoid.hpp>
#include <banyan/topo/health.hpp>
#include <banyan/topo/last_places.hpp>
#include <banyan/topo/reader.hpp>
#include <banyan/topo/shape.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/config.hpp"
#include "common/file.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/switched_off.hpp"
#include "topo/counted.hpp"
#include "train/plan_seal.hpp"

namespace banyan::topo::cli {

namespace {

constexpr std::size_t max_side_file = std::size_t{64} << 20;

auto in_file(const std::string& path) {
    return [path](const error& e) { return fail(e.code, fmt::format("{}: {}", path, e.what), e.hint); };
}

/// What banyan.conf says in [topo]; its default where there is none.
std::string configured(const char* key) {
    const auto file = config_file::load(default_config_path());
    return file.value_or(config_file::defaults()).section("topo").text(key);
}

/// What a reading of a dump goes by beside it; what is not given is that of banyan.conf, as for every other
/// reader of this fabric.
struct beside {
    std::string names, site;
    const fabric* previous = nullptr;

    result<build_options> read() const {
        BANYAN_TRY(auto out, read_side_files(names.empty() ? configured("names") : names,
                                             site.empty() ? configured("site") : site));
        out.previous = previous;
        return out;
    }
};

/// Hosts that Slurm has switched off stay where the last snapshot has them.
void keep_switched_off(dump& d, const fabric& last) {
    auto gone = hosts_gone(d, last);
    if (gone.empty()) return;
    const auto off = switched_off();
    if (!off)
        return fmt::print(stderr,
                          "banyan-topo: {} not on the fabric any more; whether Slurm has switched them off "
                          "is not known: {}\n",
                          counted(gone.size(), "host is", "hosts are"), off.error().text());
    std::erase_if(gone,
                  [&](const auto& name) { return !std::binary_search(off->begin(), off->end(), name); });
    if (!gone.empty()) d = with_last_places(d, last, gone);
}

/// `inside` gets what a dump tells of its nodes' health itself.
result<fabric> load(const std::string& path, const beside& files, health* inside) {
    BANYAN_TRY(auto text, read_file(path == "-" ? "/dev/stdin" : path, max_dump_bytes));
    if (is_snapshot(text)) {
        if (!files.names.empty())
            return fail(errc::invalid_input, fmt::format("{} is a snapshot: its names are settled", path),
                        "give --names when the snapshot is made");
        auto loaded = decode_snapshot(text);
        if (!loaded) return in_file(path)(loaded.error());
        return loaded;
    }
    auto dump = read_dump(std::move(text));
    if (!dump) return in_file(path)(dump.error());
    if (files.previous) keep_switched_off(*dump, *files.previous);
    if (inside && is_db_csv(*dump->text)) {
        const auto read = read_health(*dump->text, *inside);
        if (!read) return in_file(path)(read.error());
    }
    BANYAN_TRY(const auto options, files.read());
    return build_fabric(*dump, options);
}

/// With `given` false a file that is not there names no link.
result<void> take_avoided(fabric& f, const std::string& path, bool given) {
    if (path.empty()) return {};
    std::error_code none_there;
    if (!given && !std::filesystem::exists(path, none_there) && !none_there) return {};
    BANYAN_TRY(const auto text, read_file(path, max_avoid_bytes));
    const auto links = read_avoid(text);
    if (!links) return in_file(path)(links.error());
    if (const auto found = mark_avoided(f, *links); found < links->size())
        fmt::print(stderr, "banyan-topo: {} names {} that this fabric lacks\n", path,
                   counted(links->size() - found, "link"));
    return {};
}

}  // namespace

void fabric_input::add_to(CLI::App& sub) {
    sub.add_option("FABRIC", path_,
                   "output of ibnetdiscover, iblinkinfo, ibdiagnet (.db_csv, .lst),\n"
                   "opareport or lldpcli, UFM's list of links, Slurm's topology.conf\n"
                   "or topology.yaml, or a snapshot; - is standard input")
        ->required();
    add_side_files(sub);
}

void fabric_input::add_option_to(CLI::App& sub) {
    sub.add_option("--fabric", path_, "a dump, or a snapshot; the one that slurmctld reads if not given");
    add_side_files(sub);
}

void fabric_input::add_side_files(CLI::App& sub) {
    sub.add_option("--names", names_, "lines of a host and its node in Slurm, or of\nGUID and quoted name");
    sub.add_option("--site", site_,
                   "site file: management and storage hosts, racks, NVLink domains, WAN links");
    sub.add_option("--health", health_,
                   "counters, BER, firmware, subnet managers: ibqueryerrors, perfquery,\n"
                   "sminfo, saquery SMIR, ibdiagnet2.db_csv or .net_dump_ext, UFM's CSV")
        ->allow_extra_args(false);  // a FABRIC may follow
    sub.add_option("--avoid", avoid_,
                   "list of links that new jobs are kept off, as [topo] avoid in banyan.conf");
    sub.add_option("--limits", limits_,
                   "from which count on a link is bad: as infiniband-diags'\n"
                   "error_thresholds, and BER=1e-12");
}

result<fabric> fabric_input::load(const fabric* previous) const {
    health found;
    auto loaded =
        cli::load(path_.empty() ? configured("snapshot") : path_, {names_, site_, previous}, &found);
    if (!loaded && path_.empty())
        loaded.error().hint = "the snapshot is on slurmctld's host: run it there, or give --fabric FILE";
    if (!loaded) return loaded;
    auto f = std::move(*loaded);
    BANYAN_CHECK(look_at_health(f, found));
    // Of the snapshot that slurmctld reads, the links that it avoids.
    const bool given = !avoid_.empty();
    if (given || path_.empty()) BANYAN_CHECK(take_avoided(f, given ? avoid_ : configured("avoid"), given));
    return f;
}

result<void> fabric_input::need_hosts(const fabric& f) const {
    if (!f.hosts.empty()) return {};
    const auto nameless = std::find_if(f.excluded.begin(), f.excluded.end(),
                                       [](const auto& e) { return e.kind == "unattributed"; });
    if (nameless == f.excluded.end())
        return fail(errc::invalid_input,
                    fmt::format("{} has no compute host: {} left out", path_,
                                counted(f.excluded.size(), "node is", "nodes are")),
                    "banyan-topo show lists what is left out and why");
    return fail(errc::invalid_input,
                fmt::format("{} has no compute host: HCAs are called \"{}\" and the like, which names none",
                            path_, printable(nameless->name)),
                "rdma-ndd(8) writes \"HOST DEVICE\" on each HCA; or give names by GUID with --names");
}

result<void> fabric_input::look_at_health(fabric& f, health& found) const {
    for (const auto& path : health_) {
        BANYAN_TRY(auto text, read_file(path == "-" ? "/dev/stdin" : path, max_health_bytes));
        const auto read = read_health(std::move(text), found);
        if (!read) return in_file(path)(read.error());
    }
    error_limits limits;
    if (!limits_.empty()) {
        BANYAN_TRY(const auto text, read_file(limits_, max_side_file));
        BANYAN_TRY(limits, read_error_limits(text, limits_));
    }
    const auto taken = apply_health(f, found, limits);
    if (taken.strangers > 0)
        fmt::print(stderr, "banyan-topo: {} on no link of this fabric\n",
                   counted(taken.strangers, "port with errors is", "ports with errors are"));
    if (found.skipped_lines > 0)
        fmt::print(stderr, "banyan-topo: {} of --health could not be read\n",
                   counted(found.skipped_lines, "line"));
    return {};
}

result<fabric> load_fabric(const std::string& path) { return load(path, {}, nullptr); }

result<std::vector<std::uint32_t>> hosts_from(const fabric& f, const std::string& hostlist) {
    std::vector<std::uint32_t> out;
    if (hostlist.empty()) {
        for (std::uint32_t i = 0; i < f.hosts.size(); ++i) out.push_back(i);
        return out;
    }
    BANYAN_TRY(const auto names, expand_hostlist(hostlist));
    for (const auto& name : names) {
        const auto host = find_host(f, name);
        if (host == none)
            return fail(errc::not_found, fmt::format("{} is not on the fabric", name),
                        "banyan-topo show lists the hosts");
        out.push_back(host);
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

namespace {

/// What place --json and explain --json print: the nodes by slot, as a list.
result<train::plan> parse_placement(const nlohmann::json& json) {
    const json_fields fields(json);
    train::plan out;
    BANYAN_TRY(out.shape, fields.text("shape"));
    BANYAN_TRY(out.nodes, fields.texts("nodes", train::max_plan_nodes, max_host_name));
    if (fields.has("spares")) {
        BANYAN_TRY(out.spares, fields.texts("spares", train::max_plan_nodes, max_host_name));
    }
    BANYAN_TRY(const auto dims, parse_shape(out.shape));
    const auto nodes = out.nodes.size();
    if (nodes == 0 || dims.ranks() % nodes != 0)
        return fail(
            errc::invalid_input,
            fmt::format("the {} ranks of {} do not spread over its {} nodes", dims.ranks(), out.shape, nodes),
            "give the whole of what banyan-topo place --json printed");
    out.ranks_per_node = static_cast<std::uint32_t>(dims.ranks() / nodes);
    return out;
}

/// A node has one slot: with a list that names one twice, every figure would be wrong.
result<void> each_node_once(const train::plan& p) {
    auto all = p.nodes;
    all.insert(all.end(), p.spares.begin(), p.spares.end());
    std::sort(all.begin(), all.end());
    const auto twice = std::adjacent_find(all.begin(), all.end());
    if (twice == all.end()) return {};
    return fail(errc::invalid_input, fmt::format("the plan names {} twice", printable(*twice)),
                "a node has one slot, or is a spare");
}

}  // namespace

result<train::plan> plan_from(const std::string& given) {
    const auto read = [](std::string_view text) -> result<train::plan> {
        text = trim(text);
        const auto json = nlohmann::json::parse(text, nullptr, false);
        if (json.is_object() && !json.contains("version") && json.contains("nodes"))
            return parse_placement(json);
        if (!train::looks_sealed(text)) return train::parse_plan(text);
        const auto file = config_file::load(default_config_path());
        BANYAN_TRY(auto opened,
                   train::open_plan(file.value_or(config_file::defaults()).section("munge").text("socket"),
                                    std::string(text)));
        return std::move(opened.what);
    };
    std::string text = given;
    if (!trim(given).starts_with('{') && !train::looks_sealed(trim(given))) {
        BANYAN_TRY(text, read_file(given == "-" ? "/dev/stdin" : given, max_side_file));
    }
    BANYAN_TRY(auto out, read(text));
    BANYAN_CHECK(each_node_once(out));
    return out;
}

}  // namespace banyan::topo::cli
