// SPDX-License-Identifier: BSD-3-Clause
//
// The links that UFM's REST API lists (GET /ufmRest/resources/links), a JSON list of objects:
//
//     {"source_guid": "0c42a103001b7ab6", "source_port": "1", "source_port_dname": "HCA-2/1",
//      "source_port_node_description": "luna-0395 mlx5_10",
//      "destination_guid": "0c42a103009d7af6", "destination_port": "19", "destination_port_dname": "19",
//      "destination_port_node_description": "leaf-10:19", "width": "4x", ...}
//
// Neither rates nor LIDs are in it. (NVIDIA UFM Enterprise REST API Guide, "Links REST API".)
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "topo/readers/csv.hpp"
#include "topo/readers/cursor.hpp"
#include "topo/readers/name_ids.hpp"
#include "topo/readers/node_table.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

struct ufm_end {
    std::string guid, name;
    node_kind kind = node_kind::hca;
    std::uint16_t port = 0;
};

result<std::uint16_t> port_number(std::string_view text) {
    BANYAN_TRY(const auto number, parse_number(text, 0xfffe));
    if (number == 0) return fail(errc::invalid_input, "no cable is on port 0");
    return static_cast<std::uint16_t>(number);
}

/// Lanes: 4 of "4x" and of "IB_4x"; 0 where it tells none.
std::uint16_t lanes_in(std::string_view width) {
    const auto digits = width.find_first_of("0123456789");
    if (digits == width.npos) return 0;
    cursor c(width.substr(digits));
    return c.number<std::uint16_t>().value_or(0);
}

result<ufm_end> read_end(const json_fields& link, const std::string& side) {
    BANYAN_TRY(const auto port, link.text((side + "_port").c_str()));
    BANYAN_TRY(const auto label, link.text((side + "_port_dname").c_str()));
    BANYAN_TRY(const auto description, link.text((side + "_port_node_description").c_str()));
    ufm_end out;
    BANYAN_TRY(out.guid, link.text((side + "_guid").c_str()));
    out.name = description;
    if (hex_number(out.guid).value_or(0) == 0 || description.empty())
        return fail(errc::invalid_input, "an end has no GUID or no description");
    // A switch's port is described as "NAME:LABEL"; an HCA's as the HCA itself.
    if (!description.ends_with(":" + label)) {
        BANYAN_TRY(out.port, port_number(port));
        return out;
    }
    out.kind = node_kind::switch_node;
    out.name.resize(description.size() - label.size() - 1);
    // "L21/U1/12" is port 12 of one chip of a director.
    const auto last = label.rfind('/');
    if (last != label.npos) out.name += "/" + label.substr(0, last);
    BANYAN_TRY(out.port, port_number(last == label.npos ? port : label.substr(last + 1)));
    return out;
}

struct ufm_link {
    ufm_end a, b;
    std::uint16_t lanes = 0;
    std::uint32_t number = 0;  ///< from 1, in the list
};

class ufm_reader {
  public:
    explicit ufm_reader(dump& out) : out_(out), nodes_(out) {}

    void take(std::uint32_t number, const nlohmann::json& json) {
        const json_fields fields(json);
        auto a = read_end(fields, "source"), b = read_end(fields, "destination");
        if (!a || !b)
            return complain(out_, number, 1,
                            fmt::format("link {}: {}; it is skipped", number, (a ? b : a).error().what));
        std::string width;
        (void)fields.may("width", width);
        for (const auto* e : {&*a, &*b}) names_of_[e->guid].insert(e->name);
        links_.push_back({std::move(*a), std::move(*b), lanes_in(width), number});
    }

    result<void> finish() {
        for (const auto& l : links_)
            nodes_.add_link(node(l.number, l.a), l.a.port, node(l.number, l.b), l.b.port, {l.lanes, 0});
        nodes_.finish();
        out_.names = names_.all();
        out_.untold.rates = true;
        return {};
    }

  private:
    /// UFM's GUID is that of the system: chips of a director, and HCAs of some cards, share it. Their own are
    /// made of it and the name, whatever the order of the list.
    std::uint32_t node(std::uint32_t number, const ufm_end& e) {
        const auto [at, fresh] = known_.try_emplace(e.guid + " " + e.name, none);
        if (!fresh) return at->second;
        const auto id = hex_number(e.guid).value_or(0);
        at->second = nodes_.node(names_of_[e.guid].size() == 1 ? id : ids_.make(e.kind, at->first), number);
        auto& n = nodes_[at->second];
        n.kind = e.kind;
        n.system = id;
        n.name = names_.keep(e.name);
        return at->second;
    }

    dump& out_;
    node_table nodes_;
    name_store names_;
    name_ids ids_;
    std::vector<ufm_link> links_;
    std::map<std::string, std::set<std::string>> names_of_;  ///< by GUID
    std::map<std::string, std::uint32_t> known_;
};

}  // namespace

bool is_ufm_links(std::string_view text) {
    const auto start = text.substr(0, 4096);
    const auto first = start.find_first_not_of(" \t\r\n");
    return first != start.npos && start[first] == '[' && start.find("\"source_guid\"") != start.npos;
}

result<void> read_ufm_links(std::string_view text, dump& out) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array())
        return fail(errc::invalid_input, "UFM's list of links is cut, or is no JSON",
                    "get /ufmRest/resources/links again and keep the whole answer");
    ufm_reader r(out);
    std::uint32_t number = 0;
    for (const auto& link : json) r.take(++number, link);
    return r.finish();
}

}  // namespace banyan::topo
