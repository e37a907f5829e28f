// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/file.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"
#include "topo/export/affinity.hpp"
#include "topo/export/nccl_xml.hpp"

namespace banyan::topo::cli {
namespace {

struct nccl_options {
    fabric_input input;
    std::string node, hwloc, xml;
    bool live = false, json = false;
};

struct report {
    std::vector<node_type> types;
    std::optional<machine> box;
    std::size_t chosen = 0;  ///< the type that the machine is of; 0 without a machine
    std::optional<affinity_table> affinity;
};

std::string hostlist(const fabric& f, const node_type& type) {
    std::vector<std::string> names;
    for (const auto h : type.hosts) names.push_back(f.hosts[h].name);
    return compress_hostlist(names);
}

result<std::size_t> type_of(const fabric& f, const std::vector<node_type>& types, const std::string& node) {
    const auto host = find_host(f, node);
    if (host == none)
        return fail(errc::not_found, fmt::format("{} is not on the fabric", node),
                    "banyan-topo show lists the hosts");
    for (std::size_t i = 0; i < types.size(); ++i)
        if (std::binary_search(types[i].hosts.begin(), types[i].hosts.end(), host)) return i;
    return fail(errc::internal, fmt::format("{} is of no node type", node));
}

/// Without --node the machine's own name decides, and where the fabric has no such host, there being one type
/// only.
result<std::size_t> choose_type(const fabric& f, const report& r, const nccl_options& o) {
    if (!o.node.empty()) return type_of(f, r.types, o.node);
    const auto& name = r.box->host_name;
    for (const auto& one : {name, name.substr(0, name.find('.'))})
        if (find_host(f, one) != none) return type_of(f, r.types, one);
    if (r.types.size() == 1) return 0;
    return fail(errc::invalid_input,
                fmt::format("{} is no host of the fabric, and the fabric has {} node types",
                            name.empty() ? "the machine, whose name is not known," : name, r.types.size()),
                "add --node NAME: a host of the same make");
}

result<report> make_report(const fabric& f, const nccl_options& o) {
    report r;
    BANYAN_CHECK(o.input.need_hosts(f));
    if (f.untold.devices)
        return fail(errc::invalid_input,
                    fmt::format("{} does not tell what hosts call their RDMA devices", o.input.path()),
                    "give what names the ports of hosts, such as the output of ibnetdiscover");
    r.types = node_types(f);
    if (o.live) {
        BANYAN_TRY(r.box, read_live_machine());
    } else if (!o.hwloc.empty()) {
        BANYAN_TRY(const auto text, read_file(o.hwloc, max_hwloc_bytes));
        BANYAN_TRY(r.box, read_hwloc_xml(text, o.hwloc));
    }
    if (r.box) {
        BANYAN_TRY(r.chosen, choose_type(f, r, o));
        r.affinity = affinity_of(*r.box, r.types[r.chosen]);
    }
    if (o.node.empty()) return r;
    BANYAN_TRY(const auto only, type_of(f, r.types, o.node));
    r.types = {std::move(r.types[only])};
    r.chosen = 0;
    return r;
}

nlohmann::json type_json(const fabric& f, const node_type& type) {
    auto rails = nlohmann::json::array();
    for (const auto& d : type.devices)
        rails.push_back({{"rail", d.rail}, {"device", d.device}, {"port", d.port}, {"gbps", d.gbps}});
    nlohmann::json out{{"nodes", hostlist(f, type)},
                       {"count", type.hosts.size()},
                       {"rails", std::move(rails)},
                       {"NCCL_IB_HCA", nccl_ib_hca(type)}};
    if (type.rails_apart) out["NCCL_CROSS_NIC"] = 0;
    return out;
}

void print_json(const fabric& f, const report& r) {
    nlohmann::json out{{"source_crc", fmt::format("0x{:08x}", f.source_crc)},
                       {"types", nlohmann::json::array()}};
    for (const auto& type : r.types) out["types"].push_back(type_json(f, type));
    if (r.affinity) {
        auto gpus = nlohmann::json::array();
        for (const auto& g : r.affinity->gpus)
            gpus.push_back({{"busid", g.busid},
                            {"numa", g.numa},
                            {"path", name_of(g.path)},
                            {"nearest", g.nearest},
                            {"paired", g.paired},
                            {"rail", g.rail}});
        out["affinity"] = {{"type", r.chosen},
                           {"gpus", std::move(gpus)},
                           {"missing", r.affinity->missing},
                           {"unused", r.affinity->unused}};
    }
    fmt::print("{}\n", out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
}

void print_type(const fabric& f, const node_type& type, std::size_t number) {
    fmt::print("type {}: {} host{}  {}\n", number, type.hosts.size(), type.hosts.size() == 1 ? "" : "s",
               cut(hostlist(f, type), 70));
    fmt::print("  rail  {:<16} port  Gbit/s\n", "device");
    std::size_t unnamed = 0;
    for (const auto& d : type.devices) {
        unnamed += d.device.empty();
        fmt::print("  {:>4}  {:<16} {:>4}  {}\n", d.rail, d.device.empty() ? "?" : d.device, d.port,
                   d.gbps > 0 ? std::to_string(d.gbps) : "?");
    }
    const auto value = nccl_ib_hca(type);
    if (!value.empty()) fmt::print("NCCL_IB_HCA={}\n", value);
    if (type.rails_apart)
        fmt::print(
            "NCCL_CROSS_NIC=0\n"
            "  no switch joins its rails: an HCA reaches the same rail of other hosts alone\n");
    if (unnamed > 0)
        fmt::print(
            "  {} of the {} HCAs tell no device name, so NCCL_IB_HCA lacks them; is rdma-ndd running "
            "there?\n",
            unnamed, type.devices.size());
    fmt::print("\n");
}

std::string joined(const std::vector<std::string>& names) {
    std::string out;
    for (const auto& n : names) out += fmt::format("{}{}", out.empty() ? "" : ",", n);
    return out;
}

void print_affinity(const report& r) {
    const auto& a = *r.affinity;
    fmt::print("GPUs and HCAs{}{}, type {}\n", r.box->host_name.empty() ? "" : " of ", r.box->host_name,
               r.chosen + 1);
    fmt::print("  {:>3}  {:<13} {:>4}  {:<4}  {:<20}  {:<8} {:>4}  {}\n", "GPU", "bus id", "NUMA", "path",
               "through", "HCA", "rail", "equally near");
    for (std::size_t i = 0; i < a.gpus.size(); ++i) {
        const auto& g = a.gpus[i];
        if (g.paired.empty())
            fmt::print("  {:>3}  {:<13} {:>4}  no HCA of the fabric\n", i, g.busid, g.numa);
        else
            fmt::print("  {:>3}  {:<13} {:>4}  {:<4}  {:<20}  {:<8} {:>4}  {}\n", i, g.busid, g.numa,
                       name_of(g.path), text_of(g.path), g.paired, g.rail, cut(joined(g.nearest), 26));
    }
    if (a.gpus.empty()) fmt::print("  no NVIDIA GPU\n");
    if (!a.missing.empty()) fmt::print("on the fabric, but not in this machine: {}\n", joined(a.missing));
    if (!a.unused.empty())
        fmt::print("in this machine, but on no rail (storage, or no cable): {}\n", joined(a.unused));
}

void print_text(const fabric& f, const report& r) {
    constexpr std::size_t shown = 12;
    fmt::print("{} node type{}: hosts with the same HCA devices on the same rails\n\n", r.types.size(),
               r.types.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < r.types.size() && i < shown; ++i) print_type(f, r.types[i], i + 1);
    if (r.types.size() > shown)
        fmt::print("... and {} more types; --json has them all, --node NAME shows one\n\n",
                   r.types.size() - shown);
    if (r.affinity) print_affinity(r);
}

result<int> run(const nccl_options& o) {
    if (o.live && !o.hwloc.empty())
        return fail(errc::invalid_input, "--hwloc and --live both say where the PCIe tree is from",
                    "give one of them");
    if (!o.xml.empty() && o.hwloc.empty() && !o.live)
        return fail(errc::invalid_input, "--xml needs the machine's PCIe tree",
                    "add --hwloc FILE (lstopo --of xml FILE) or --live");
    BANYAN_TRY(const auto f, o.input.load());
    BANYAN_TRY(const auto r, make_report(f, o));
    if (!o.xml.empty()) {
        if (r.affinity->gpus.empty() && r.affinity->missing.size() == devices_of(r.types[r.chosen]).size())
            return fail(errc::invalid_input, "the machine has neither a GPU nor an HCA of the fabric",
                        "take the XML of a node of that type, or run it there; --node NAME says which");
        BANYAN_CHECK(write_output(o.xml, nccl_topology_xml(*r.box, r.types[r.chosen], f.source_crc)));
    }
    o.json ? print_json(f, r) : print_text(f, r);
    return fine;
}

}  // namespace

void add_nccl(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<nccl_options>();
    auto* sub = app.add_subcommand(
        "nccl", "Write NCCL_IB_HCA, GPU-HCA affinity and NCCL's topology file for each node type");
    o->input.add_to(*sub);
    sub->add_option("--node", o->node, "this host's type only, and the type of the machine");
    sub->add_option("--hwloc", o->hwloc, "a node's PCIe tree, as lstopo --of xml FILE writes it");
    sub->add_flag("--live", o->live, "the PCIe tree of the machine that this runs on");
    sub->add_option("--xml", o->xml,
                    "file to replace with a topology for NCCL_TOPO_FILE;\n"
                    "needs --hwloc or --live");
    sub->add_flag("--json", o->json, "print JSON");
    sub->footer(
        "NCCL_IB_HCA is in its exact form and in rail order, without the HCAs that lead to\n"
        "storage, as the site file or the fabric shows them. NCCL_CROSS_NIC=0 is told where no\n"
        "switch joins the rails, and nothing elsewhere. Paths are those of nvidia-smi\n"
        "topo -m: PIX one PCIe switch, PXB several, PHB a host bridge, NODE one NUMA node,\n"
        "SYS several. Without --node the machine's own name decides which type it is of,\n"
        "or there being one type only.");
    sub->callback([o, &chosen] { chosen = [o] { return run(*o); }; });
}

}  // namespace banyan::topo::cli
