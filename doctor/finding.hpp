// SPDX-License-Identifier: BSD-3-Clause
//
// What a check has found about one thing: all the program prints and its exit code come from a list of these.
#pragma once

#include <string>
#include <vector>

namespace banyan::doctor {

enum class verdict {
    fine,
    note,     ///< works, but an administrator should know
    wrong,    ///< something of banyan does not work
    unknown,  ///< could not be looked at: never the same as fine
};

/// `subject` is the object (a file, a key, a node), `what` what was found. For everything but `fine` the
/// other two: what it leads to, and the line or command that fixes it.
struct finding {
    verdict is = verdict::fine;
    std::string subject;
    std::string what;
    std::string why;
    std::string fix;
};

using findings = std::vector<finding>;

inline finding fine(std::string subject, std::string what) {
    return {verdict::fine, std::move(subject), std::move(what), {}, {}};
}

/// How many of `list` are `which`.
std::size_t count(const findings& list, verdict which);
/// 0: nothing is wrong; 1: something is wrong, or could not be looked at.
int exit_code(const findings& list);

/// For people: one line a finding, two more where something is to be done. `all` false leaves out what is
/// fine, and prints nothing at all when that is everything: cron then sends no mail.
std::string as_text(const findings& list, const std::string& title, bool all);
std::string as_json(const findings& list, const std::string& node, const std::vector<std::string>& roles);

}  // namespace banyan::doctor
