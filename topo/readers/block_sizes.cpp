// SPDX-License-Identifier: BSD-3-Clause
#include "topo/readers/block_sizes.hpp"

#include <fmt/format.h>

#include "topo/readers/csv.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {

void block_sizes::take(dump& out, std::uint32_t line, std::string_view list) {
    constexpr std::size_t most = 16;  // Slurm keeps no more
    while (!list.empty()) {
        const auto comma = std::min(list.find(','), list.size());
        const auto text = list.substr(0, comma);
        list.remove_prefix(std::min(comma + 1, list.size()));
        const auto size = whole_number(text);
        const bool first = sizes_.empty();
        if (size && *size > 0 && sizes_.size() < most &&
            (first || (*size % sizes_.back() == 0 && *size > sizes_.back())))
            sizes_.push_back(*size);
        else
            complain(out, line, 1,
                     fmt::format("\"{}\" is no block size that Slurm takes here; it is skipped",
                                 text.substr(0, 40)));
    }
}

std::vector<std::size_t> block_sizes::spans() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 1; i < sizes_.size(); ++i) out.push_back(sizes_[i] / sizes_[i - 1]);
    return out;
}

}  // namespace banyan::topo
