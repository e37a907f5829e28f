// SPDX-License-Identifier: BSD-3-Clause
//
// What a check has found: all that the program prints, its exit code and what Slurm is told come from these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan::sweep {

/// In the order of their weight: of two findings of one check the heavier is the check's.
enum class verdict : std::uint8_t {
    fit,
    skipped,  ///< not looked at, as it should be: a job runs
    unknown,  ///< could not be looked at: never the same as fit
    unfit,
};

struct finding {
    verdict is = verdict::fit;
    std::vector<std::string> what{};  ///< sentences, the one that decides first; may hold foreign text
    std::map<std::string, double> figures{};  ///< what was measured, in base units
};

/// What one check has to say.
struct checked {
    std::string check;
    finding found;
};
using report = std::vector<checked>;

finding fit(std::string what);
finding unfit(std::string what);
/// "could not look: ..."
finding unknown(const error& why);
/// `more` below `into`: the heavier verdict wins, and its sentences come first.
void add(finding& into, finding more);

const char* word(verdict v);
/// What holds for the node.
verdict overall(const report& r);
/// 0 fit, 1 unfit, 3 something could not be looked at.
int exit_code(const report& r);

nlohmann::json as_json(const finding& f);
result<finding> finding_from(const nlohmann::json& j);

}  // namespace banyan::sweep
