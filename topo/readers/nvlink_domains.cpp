// SPDX-License-Identifier: BSD-3-Clause
#include <banyan/topo/site.hpp>
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {

result<std::map<std::string, std::string>> read_nvlink_domains(std::string_view text) {
    std::map<std::string, std::string> out;
    std::optional<error> first;
    for_each_line(text, [&](std::uint32_t number, std::string_view line) {
        line = trim(line.substr(0, line.find('#')));
        if (line.empty() || first) return;
        const auto blank = line.find_first_of(" \t");
        const auto domain = blank == line.npos ? std::string_view() : trim(line.substr(blank));
        if (domain.empty() || domain.find_first_of(" \t") != domain.npos)
            first = error{errc::invalid_input,
                          fmt::format("line {}: \"{}\" is not a node and its NVLink domain", number,
                                      printable(line.substr(0, 60))),
                          "banyan-fault agents --nvlink-domains writes this file"};
        else if (!out.try_emplace(printable(line.substr(0, blank)), domain == "-" ? "" : printable(domain))
                      .second)
            first = error{errc::invalid_input,
                          fmt::format("line {}: {} stands in an earlier line already", number,
                                      printable(line.substr(0, blank))),
                          {}};
    });
    if (first) return std::unexpected(*first);
    return out;
}

}  // namespace banyan::topo
