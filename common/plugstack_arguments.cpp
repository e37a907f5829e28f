// SPDX-License-Identifier: BSD-3-Clause
#include "common/plugstack_arguments.hpp"

#include <array>

#include <fmt/format.h>

#include "common/build_info.hpp"
#include "common/text.hpp"

namespace banyan {
namespace {

struct argument {
    const char* name;
    std::string plugstack_arguments::*value;
};
constexpr std::array known_arguments{argument{"config", &plugstack_arguments::config},
                                     argument{"ckptd", &plugstack_arguments::ckptd},
                                     argument{"ckptd_log", &plugstack_arguments::ckptd_log}};

}  // namespace

plugstack_arguments plugstack_arguments::from(std::span<const std::string> words) {
    plugstack_arguments out;
    for (const auto& word : words) {
        const auto equals = word.find('=');
        bool taken = false;
        for (const auto& known : known_arguments)
            if (equals != word.npos && word.compare(0, equals, known.name) == 0) {
                out.*known.value = word.substr(equals + 1);
                taken = true;
            }
        if (!taken) out.ignored.push_back(word);
    }
    return out;
}

std::string plugstack_arguments::installed_daemon() { return std::string(libexec_dir) + "/banyan-ckptd"; }

std::string plugstack_hint(std::string_view ignored) {
    std::vector<std::string> names;
    for (const auto& known : known_arguments) names.emplace_back(known.name);
    const auto close = nearest(ignored.substr(0, ignored.find('=')), names);
    return close.empty() ? "known are config=, ckptd= and ckptd_log="
                         : fmt::format("did you mean {}=?", close);
}

}  // namespace banyan
