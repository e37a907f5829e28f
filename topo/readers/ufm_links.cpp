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
#include <optional>

#include <boost/unordered/unordered_flat_map.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
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

/// The number that a text begins with.
std::uint16_t number_in(std::string_view text) {
    cursor c(text);
    return c.number<std::uint16_t>().value_or(0);
}

result<ufm_end> read_end(const json_fields& link, const std::string& side) {
    BANYAN_TRY(const auto port, link.text((side + "_port").c_str()));
    BANYAN_TRY(const auto label, link.text((side + "_port_dname").c_str()));
    BANYAN_TRY(const auto description, link.text((side + "_port_node_description").c_str()));
    ufm_end out;
    BANYAN_TRY(out.guid, link.text((side + "_guid").c_str()));
    out.port = number_in(port);
    out.name = description;
    // A switch's port is described as "NAME:LABEL"; an HCA's as the HCA itself.
    if (!description.ends_with(":" + label)) return out;
    out.kind = node_kind::switch_node;
    out.name.resize(description.size() - label.size() - 1);
    // "L21/U1/12" is port 12 of one chip of a director.
    if (const auto last = label.rfind('/'); last != label.npos) {
        out.name += "/" + label.substr(0, last);
        out.port = number_in(std::string_view(label).substr(last + 1));
    }
    return out;
}

class ufm_reader {
  public:
    explicit ufm_reader(dump& out) : out_(out), nodes_(out) {}

    void take(std::uint32_t number, const nlohmann::json& json) {
        const json_fields link(json);
        const auto a = read_end(link, "source"), b = read_end(link, "destination");
        if (!a || !b)
            return complain(out_, number, 1,
                            fmt::format("link {}: {}; it is skipped", number, (a ? b : a).error().what));
        std::string width;
        link.may("width", width);
        const auto digits = width.find_first_of("0123456789");
        const auto first = node(number, *a), second = node(number, *b);
        if (first == none || second == none) return;
        nodes_.add_link(
            first, a->port, second, b->port,
            {digits == width.npos ? std::uint16_t{0} : number_in(std::string_view(width).substr(digits)), 0});
    }

    result<void> finish() {
        nodes_.finish();
        out_.names = names_.all();
        out_.untold.rates = true;
        return {};
    }

  private:
    /// UFM's GUID is that of the system: chips of a director, and HCAs of some cards, share it.
    std::uint32_t node(std::uint32_t number, const ufm_end& e) {
        const auto id = hex_number(e.guid).value_or(0);
        if (id == 0 || e.name.empty()) {
            complain(out_, number, 1,
                     fmt::format("link {}: an end without GUID or description; skipped", number));
            return none;
        }
        const auto [at, fresh] = known_.try_emplace(e.guid + " " + e.name, none);
        if (!fresh) return at->second;
        const auto own = nodes_.find(id) == none ? id : ids_.make(e.kind, at->first);
        at->second = nodes_.node(own, number);
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
    boost::unordered_flat_map<std::string, std::uint32_t> known_;
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
