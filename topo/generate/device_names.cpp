// SPDX-License-Identifier: BSD-3-Clause
//
// What hosts call their RDMA devices where a site or its udev rules renamed them, and how rdma-ndd writes
// host and device into one description.
#include <fmt/format.h>

#include "topo/generate/additions.hpp"

namespace banyan::topo::generate {
namespace {

std::string word(device_form form, std::uint32_t at) {
    switch (form) {
        case device_form::rdma:
            return fmt::format("rdma{}", at);
        case device_form::ib:
            return fmt::format("mlx5_ib{}", at);
        case device_form::bond:
            return fmt::format("mlx5_bond_{}", at);
        case device_form::bus:  // of one, two and three digits, so that letters order them otherwise
            return fmt::format("ibp{}s0", 9 + at * 25);
        case device_form::domain:
            return fmt::format("rdmaP{}p0s2", 8761 + at * 613);
        case device_form::numbered:
            break;
    }
    return fmt::format("mlx5_{}", at);
}

}  // namespace

std::string device_word(const blueprint& b, std::uint32_t host, std::uint32_t at) {
    const auto& names = b.o.odd.names;
    const bool kept = host != none && names.kept_by > 0 && host % names.kept_by == 0;
    return word(kept && (!names.kept_first || at == 0) ? device_form::numbered : names.devices, at);
}

void rename_devices(blueprint& b) {
    const auto& odd = b.o.odd;
    const auto before = odd.storage.first ? odd.storage.rails : 0;
    if (odd.names.devices == device_form::numbered && before == 0) return;
    for (std::uint32_t h = 0; h < b.hosts.size(); ++h)
        for (std::uint32_t r = 0; r < b.o.rails; ++r)
            b.nodes[b.hca(h, r)].name = b.hosts[h].name + ' ' + device_word(b, h, before + r);
}

void format_names(blueprint& b) {
    for (auto& n : b.nodes) {
        const auto blank = n.name.find(' ');
        if ((n.what != role::compute && n.what != role::service) || blank == std::string::npos) continue;
        const auto host = n.name.substr(0, blank), device = n.name.substr(blank + 1);
        std::string text;
        for (std::size_t i = 0; i < b.o.odd.names.format.size(); ++i) {
            const std::string_view rest = std::string_view(b.o.odd.names.format).substr(i);
            if (rest.starts_with("%h") || rest.starts_with("%d"))
                text += b.o.odd.names.format[++i] == 'h' ? host : device;
            else
                text += rest.front();
        }
        n.name = std::move(text);
    }
}

}  // namespace banyan::topo::generate
