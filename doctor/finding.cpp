// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/finding.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.hpp"

namespace banyan::doctor {
namespace {

const char* word(verdict v) {
    switch (v) {
        case verdict::fine:
            return "fine";
        case verdict::note:
            return "note";
        case verdict::wrong:
            return "wrong";
        case verdict::unknown:
            return "unknown";
    }
    return "unknown";
}

const char* heading(verdict v) {
    return v == verdict::wrong ? "WRONG" : v == verdict::unknown ? "?" : word(v);
}

}  // namespace

std::size_t count(const findings& list, verdict which) {
    return static_cast<std::size_t>(
        std::count_if(list.begin(), list.end(), [&](const finding& f) { return f.is == which; }));
}

int exit_code(const findings& list) {
    return count(list, verdict::wrong) + count(list, verdict::unknown) == 0 ? 0 : 1;
}

std::string as_text(const findings& list, const std::string& title, bool all) {
    if (!all && count(list, verdict::fine) + count(list, verdict::note) == list.size()) return {};
    std::string out = title + "\n";
    for (const auto& f : list) {
        if (!all && (f.is == verdict::fine || f.is == verdict::note)) continue;
        out += fmt::format("  {:<6}{}: {}\n", heading(f.is), printable(f.subject), printable(f.what));
        if (!f.why.empty()) out += fmt::format("        why:  {}\n", printable(f.why));
        if (!f.fix.empty()) out += fmt::format("        fix:  {}\n", printable(f.fix));
    }
    out += fmt::format("{} wrong, {} that could not be looked at, {} to note, {} fine\n",
                       count(list, verdict::wrong), count(list, verdict::unknown), count(list, verdict::note),
                       count(list, verdict::fine));
    return out;
}

std::string as_json(const findings& list, const std::string& node, const std::vector<std::string>& roles) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& f : list)
        all.push_back({{"verdict", word(f.is)},
                       {"subject", f.subject},
                       {"what", f.what},
                       {"why", f.why},
                       {"fix", f.fix}});
    const nlohmann::json out = {{"node", node},
                                {"roles", roles},
                                {"wrong", count(list, verdict::wrong)},
                                {"unknown", count(list, verdict::unknown)},
                                {"findings", all}};
    return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace banyan::doctor
