// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/health.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/csv.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {

result<error_limits> read_error_limits(std::string_view text, const std::string& name) {
    error_limits out;
    std::optional<error> first;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        line = trim(line.substr(0, line.find('#')));
        if (line.empty() || first) return;
        const auto equals = line.find('=');
        const auto key = trim(line.substr(0, equals));
        const auto value =
            equals == std::string_view::npos ? std::string_view() : trim(line.substr(equals + 1));
        if (key == "BER") {
            if (const auto ber = real_number(value); ber && *ber <= 1) {
                out.ber = *ber;
                out.ber_source = name;
                return;
            }
        } else if (const auto limit = whole_number(value)) {
            for (std::size_t i = 0; i < link_counter_count; ++i)
                if (const auto c = static_cast<link_counter>(i); key == name_of(c)) {
                    out.count[c] = *limit;
                    out.count_source = name;
                }
            return;
        }
        first =
            error{errc::invalid_input,
                  fmt::format("{}: line {}: \"{}\" is no limit", name, number, printable(line.substr(0, 60))),
                  "write lines of the form SymbolErrorCounter=10 or BER=1e-12"};
    });
    if (first) return std::unexpected(*first);
    return out;
}

}  // namespace banyan::topo
