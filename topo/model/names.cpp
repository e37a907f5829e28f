// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/names.hpp"

#include <algorithm>
#include <charconv>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

// "mlx5_7", "HCA-1", "ibp3s0", "hfi1_0": letters first, a number somewhere after. Returns whether it is a
// device.
bool is_device(std::string_view word, std::uint32_t& number) {
    for (const std::string_view head :
         {"mlx5_", "mlx4_", "HCA-", "hfi1_", "qib", "ibp", "ib", "roce", "bnxt_re"}) {
        if (!word.starts_with(head)) continue;
        const auto digits = word.substr(head.size());
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
        return !digits.empty() && digits[0] >= '0' && digits[0] <= '9';
    }
    return false;
}

}  // namespace

hca_name read_hca_name(std::string_view description) {
    hca_name out;
    description = trim(description);
    if (description.find("Aggregation Node") != std::string_view::npos) {
        out.kind = hca_name::trust::aggregation;
        return out;
    }
    const auto blank = description.find(' ');
    const auto second =
        blank == std::string_view::npos ? std::string_view{} : trim(description.substr(blank + 1));
    const auto word = second.substr(0, second.find(' '));
    const bool device = is_device(word, out.device);
    if (!device && (blank != std::string_view::npos || description.empty())) {
        out.kind = hca_name::trust::factory;
        return out;
    }
    out.host = description.substr(0, blank);
    out.device_name = word;
    // The name of an installer's image: several hosts may have it, so it names none of them.
    static constexpr std::string_view images[] = {"localhost", "localhost.localdomain", "ubuntu", "debian",
                                                  "(none)"};
    if (std::find(std::begin(images), std::end(images), out.host) != std::end(images))
        out.kind = hca_name::trust::generic;
    return out;
}

bool is_factory_switch(std::string_view description) {
    return description.find(';') == std::string_view::npos &&
           description.find("Mellanox Technologies") != std::string_view::npos;
}

bool is_storage_name(std::string_view host) {
    // A whole word of the name: "mds" in "lustre-mds2", not in "amds1".
    static constexpr std::string_view words[] = {"oss",  "ost",  "mds",  "mdt",    "mgs",     "nsd",
                                                 "ess",  "nas",  "nfs",  "stor",   "storage", "lustre",
                                                 "gpfs", "weka", "vast", "beegfs", "ddn",     "ceph"};
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (std::size_t at = 0; at < host.size();) {
        auto end = at;
        while (end < host.size() && letter(host[end])) ++end;
        if (std::find(std::begin(words), std::end(words), host.substr(at, end - at)) != std::end(words))
            return true;
        at = end + 1;
    }
    return false;
}

}  // namespace banyan::topo
