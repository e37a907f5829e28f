// SPDX-License-Identifier: BSD-3-Clause
//
// The fabric without a fault. Host h of a group is on port h + 1 of each of the group's leaves; what serves
// the fabric takes the ports after; uplinks begin in the upper half. Spines have their leaves below in the
// order of the leaves; the spines at one position of all spine groups share their cores.
#include "topo/generate/blueprint.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace banyan::topo::generate {
namespace {

constexpr guid manager_guid = 0xa088c20200000000, hca_guids = 0xa088c20300000000,
               service_guids = 0xa088c20400000000, switch_guids = 0xfc6a1c0300000000;

class drawing {
  public:
    drawing(const options& o, const sizes& n, dice& random) : random_(random) {
        b_.o = o;
        b_.n = n;
    }

    blueprint draw() {
        name_hosts();
        add_switches();
        add_compute();
        add_services();
        add_storage_rail();
        connect_switches(b_);
        add_hosts_above(b_);
        switch_racks_off(b_, random_);
        add_oddities(b_, random_);
        if (b_.o.mixed_names > 0) mix_names(b_, random_);
        return std::move(b_);
    }

  private:
    std::uint32_t add(node what) {
        if (what.system == 0) what.system = what.id;
        b_.nodes.push_back(std::move(what));
        return static_cast<std::uint32_t>(b_.nodes.size() - 1);
    }

    void name_hosts() {
        const auto& o = b_.o;
        const auto digits = o.host_digits ? o.host_digits : digits_of(o.hosts);
        for (std::uint32_t h = 0; h < o.hosts; ++h)
            b_.hosts.push_back({o.rack_size > 0 ? fmt::format("r{:0{}}-{}{:02}", h / o.rack_size + 1,
                                                              digits_of(o.hosts / o.rack_size), o.host_prefix,
                                                              h % o.rack_size + 1)
                                                : fmt::format("{}{:0{}}", o.host_prefix, h + 1, digits),
                                h / o.group_size});
        for (auto& h : b_.hosts) h.name += o.odd.names.host_suffix;
    }

    /// Numbers 1 .. n, in random order where asked.
    std::vector<std::uint32_t> numbers(std::uint32_t n) {
        std::vector<std::uint32_t> out(n);
        std::iota(out.begin(), out.end(), 1u);
        if (b_.o.shuffle) random_.shuffle(out);
        return out;
    }

    void add_box(node what, const char* kind, std::uint32_t number, std::uint32_t of, std::uint32_t at) {
        const auto& o = b_.o;
        what.ports = static_cast<std::uint16_t>(o.radix);
        what.next_port = static_cast<std::uint16_t>(o.group_size + 1);
        what.last_low = static_cast<std::uint16_t>(b_.n.uplink_first - 1);
        for (std::uint32_t p = 0; p < o.planes; ++p) {
            what.id = switch_guids + guid{switch_numbers_[next_switch_++]} * 0x40;
            if (p == 0) what.system = what.id;
            what.name = switch_name(b_, what, kind, number, of, at, p);
            add(what);
        }
    }

    void add_switches() {
        const auto& n = b_.n;
        const auto leaves = n.groups * b_.o.rails, spines = n.spine_groups * n.spines,
                   cores = n.core_fan * n.spines, storage = n.spine_groups * n.storage_leaves;
        switch_numbers_ = numbers((leaves + spines + cores + storage) * b_.o.planes);
        node what;
        what.what = role::leaf;
        b_.first_leaf = next_node();
        for (std::uint32_t i = 0; i < leaves; ++i) {
            what.group = i / b_.o.rails;
            what.rail = static_cast<std::uint16_t>(i % b_.o.rails);
            what.spine_group = b_.o.rail_only ? what.rail : what.group / n.groups_of_spine_group;
            add_box(what, "leaf", i + 1, leaves,
                    b_.o.rail_only ? what.group : i % (n.groups_of_spine_group * b_.o.rails));
        }
        what.group = none;
        what.rail = 0;
        const auto several = [&](role r, const char* kind, std::uint32_t count,
                                 std::uint32_t of_spine_group) {
            const auto first = next_node();
            what.what = r;
            for (std::uint32_t i = 0; i < count; ++i) {
                what.spine_group = of_spine_group ? i / of_spine_group : 0;
                add_box(what, kind, i + 1, count, of_spine_group ? i % of_spine_group : i);
            }
            return first;
        };
        b_.first_spine = several(role::spine, "spine", spines, n.spines);
        b_.first_core = several(role::core, "core", cores, 0);
        b_.first_storage = several(role::storage_leaf, "storage", storage, n.storage_leaves);
    }

    std::uint32_t next_node() const { return static_cast<std::uint32_t>(b_.nodes.size()); }

    void cable_up(std::uint32_t hca, std::uint32_t leaf, std::uint16_t port) {
        for (std::uint32_t p = 0; p < b_.o.planes; ++p)
            b_.cables.push_back({hca, leaf + p, static_cast<std::uint16_t>(p + 1), port, b_.n.rate});
    }

    void add_compute() {
        const auto& o = b_.o;
        const auto order = numbers(o.hosts * o.rails);
        b_.first_hca = next_node();
        b_.cables.reserve(std::size_t{o.hosts} * o.rails * o.planes * o.levels);
        for (std::uint32_t h = 0; h < o.hosts; ++h)
            for (std::uint32_t rail = 0; rail < o.rails; ++rail) {
                node what;
                what.id = o.shuffle ? hca_guids + guid{order[h * o.rails + rail]} * 0x10
                                    : hca_guids + guid{h + 1} * 0x1000 + rail * 0x10;
                what.name = fmt::format("{} mlx5_{}", b_.hosts[h].name, rail);
                what.ports = static_cast<std::uint16_t>(o.planes);
                what.rail = static_cast<std::uint16_t>(rail);
                what.host = h;
                cable_up(add(std::move(what)), b_.leaf(h / o.group_size, rail),
                         static_cast<std::uint16_t>(h % o.group_size + 1));
            }
    }

    void add_service(guid id, std::string name, std::uint32_t leaf, duty serving = duty::service) {
        node what;
        what.id = id;
        what.name = std::move(name);
        what.what = role::service;
        what.serving = serving;
        what.ports = static_cast<std::uint16_t>(b_.o.planes);
        const auto port = take_leaf_port(b_, leaf);
        cable_up(add(std::move(what)), leaf, port);
    }

    void add_services() {
        const auto& o = b_.o;
        add_service(manager_guid, fmt::format("{} mlx5_0", o.sm_host), b_.leaf(0, 0));
        b_.nodes.back().doubtful = o.rails == 1;
        for (std::uint32_t i = 0; i < o.ufm_hosts; ++i)
            add_service(service_guids + guid{i + 1} * 0x10, fmt::format("ufm{:02} mlx5_0", i + 1),
                        b_.leaf((i + 1) % b_.n.groups, 0));
        for (std::uint32_t i = 0; i < o.storage_servers; ++i)
            for (std::uint32_t k = 0; k < 2; ++k)
                add_service(service_guids + 0x100000 + guid{i + 1} * 0x100 + k * 0x10,
                            fmt::format("oss{:02} mlx5_{}", i + 1, k), storage_leaf(0, i + k),
                            duty::storage_server);
    }

    std::uint32_t storage_leaf(std::uint32_t spine_group, std::uint32_t at) const {
        return b_.first_storage +
               (spine_group * b_.n.storage_leaves + at % b_.n.storage_leaves) * b_.o.planes;
    }

    void add_storage_rail() {
        const auto& o = b_.o;
        if (!o.storage_rail) return;
        const auto hosts_of_spine_group = b_.n.groups_of_spine_group * o.group_size;
        for (std::uint32_t h = 0; h < o.hosts; ++h) {
            add_service(service_guids + 0x10000000 + guid{h} * 0x10,
                        fmt::format("{} mlx5_{}", b_.hosts[h].name, o.rails),
                        storage_leaf(h / hosts_of_spine_group, h % hosts_of_spine_group / o.group_size),
                        duty::storage_hca);
            b_.nodes.back().host = h;
        }
    }

    blueprint b_;
    dice& random_;
    std::vector<std::uint32_t> switch_numbers_;
    std::uint32_t next_switch_ = 0;
};

}  // namespace

blueprint blueprint_of(const options& o, const sizes& n, dice& random) {
    return drawing(o, n, random).draw();
}

}  // namespace banyan::topo::generate
