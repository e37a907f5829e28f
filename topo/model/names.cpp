// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/names.hpp"

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
    if (is_device(word, out.device) || (blank == std::string_view::npos && !description.empty())) {
        out.host = description.substr(0, blank);
        return out;
    }
    out.kind = hca_name::trust::factory;
    return out;
}

}  // namespace banyan::topo
