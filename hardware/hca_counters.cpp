// SPDX-License-Identifier: BSD-3-Clause
#include "hardware/hca_counters.hpp"

#include <set>

#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "hardware/hca_ports.hpp"
#include "hardware/small_file.hpp"

namespace banyan::hardware {
namespace {

using nlohmann::json;

constexpr std::size_t most_ports = 4096, most_counters = 256, max_name = 64, max_why = 512;

result<std::uint64_t> read_counter(const std::filesystem::path& port, const std::string& name) {
    auto text = read_small(port / "counters" / name);
    if (!text && text.error().code == errc::not_found) text = read_small(port / "hw_counters" / name);
    if (!text && text.error().code == errc::not_found)
        return fail(errc::not_found, "there is no such counter");
    if (!text) return std::unexpected(text.error());
    return parse_number(*text);
}

}  // namespace

result<std::vector<port_counters>> read_counters(const std::filesystem::path& root,
                                                 std::span<const std::string> names) {
    BANYAN_TRY(const auto places, find_ports(root));
    std::vector<port_counters> out;
    for (const auto& at : places) {
        port_counters one{at.device, at.port, pci_address(root, at.device)};
        if (!at.error.empty()) one.unread[""] = at.error;
        for (const auto& name : names) {
            if (!at.error.empty()) break;
            if (const auto value = read_counter(at.folder, name))
                one.values[name] = *value;
            else
                one.unread[name] = value.error().text();
        }
        out.push_back(std::move(one));
    }
    return out;
}

json to_json(const std::vector<port_counters>& ports) {
    json list = json::array();
    for (const auto& p : ports) {
        json counters = json::array(), unread = json::array();
        for (const auto& [name, value] : p.values) counters.push_back({{"name", name}, {"value", value}});
        for (const auto& [name, why] : p.unread) unread.push_back({{"name", name}, {"why", why}});
        list.push_back({{"device", p.device},
                        {"port", p.port},
                        {"bdf", p.bdf},
                        {"counters", std::move(counters)},
                        {"unread", std::move(unread)}});
    }
    return {{"ports", std::move(list)}};
}

result<std::vector<port_counters>> counters_from(const json& told) {
    BANYAN_TRY(const auto ports, json_fields(told).list("ports", most_ports));
    std::vector<port_counters> out;
    std::set<std::string> names;
    for (const auto& p : ports) {
        port_counters one;
        BANYAN_TRY(one.device, p.text("device", max_name));
        BANYAN_TRY(one.port, p.text("port", max_name));
        BANYAN_TRY(one.bdf, p.text("bdf", max_name));
        BANYAN_TRY(const auto counters, p.list("counters", most_counters));
        for (const auto& c : counters) {
            BANYAN_TRY(auto name, c.text("name", max_name));
            BANYAN_TRY(const auto value, c.number("value"));
            one.values.emplace(std::move(name), value);
        }
        BANYAN_TRY(const auto unread, p.list("unread", most_counters));
        for (const auto& u : unread) {
            BANYAN_TRY(auto name, u.text("name", max_name));
            BANYAN_TRY(auto why, u.text("why"));
            one.unread.emplace(std::move(name), why.substr(0, max_why));
        }
        if (!names.insert(one.name()).second)
            return fail(errc::invalid_input, printable(one.name()) + " is told twice");
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace banyan::hardware
