// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/cursor.hpp"
#include "topo/readers/disarm.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {

result<std::map<guid, std::string>> read_name_map(std::string_view text) {
    std::map<guid, std::string> out;
    std::optional<error> first;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        line = trim(line.substr(0, line.find('#')));
        if (line.empty() || first) return;
        cursor c(line);
        c.skip("0x");
        const auto id = c.number<guid>(16);
        c.blanks();
        const auto quoted = c.rest();
        if (!id || quoted.size() < 3 || quoted.front() != '"' || quoted.back() != '"') {
            first = error{
                errc::invalid_input,
                fmt::format("line {}: \"{}\" is no GUID with a quoted name", number, line.substr(0, 60)),
                "write lines of the form: 0x0002c90300002f78 \"gpu0001 mlx5_0\""};
            return;
        }
        auto& name = out[*id];
        name = quoted.substr(1, quoted.size() - 2);
        disarm(name);
    });
    if (first) return std::unexpected(*first);
    return out;
}

}  // namespace banyan::topo
