// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>

#include "topo/model/build.hpp"

namespace banyan::topo::build {
namespace {

constexpr std::size_t samples = 8;

void append(std::vector<std::string>& to, std::vector<std::string>& from) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

void tell_once(state& s) {
    auto& defects = s.out.defects;
    for (const auto& [kind, count] : s.found) {
        if (count <= most_of_kind) continue;
        defect all;
        std::size_t taken = 0, kept = 0;
        for (auto& d : defects) {
            if (d.kind != kind) {
                if (&d != &defects[kept]) defects[kept] = std::move(d);
                ++kept;
                continue;
            }
            if (taken++ == 0) {
                all = std::move(d);
                all.evidence = fmt::format(
                    "{} of this kind, too many to tell each; {} of them are named here; the first: {}", count,
                    samples, all.evidence);
            } else if (taken <= samples) {
                append(all.objects, d.objects);
                append(all.where, d.where);
            }
        }
        defects.resize(kept);
        defects.push_back(std::move(all));
    }
}

}  // namespace banyan::topo::build
