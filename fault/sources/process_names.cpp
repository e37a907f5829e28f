// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/process_names.hpp"

#include <algorithm>
#include <array>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;

constexpr std::size_t longest_name = 15;

// "[77]", " [77]", "(77)", " (77)", "/77 ", "-77 ", ":77 ", ": 77: ": the number of the process.
bool begins_with_its_number(std::string_view rest) {
    struct form {
        std::string_view before, after;
    };
    static constexpr std::array<form, 9> forms{{{"[", "]"},
                                                {" [", "]"},
                                                {"(", ")"},
                                                {" (", ")"},
                                                {"/", " "},
                                                {"/", ":"},
                                                {"-", " "},
                                                {":", " "},
                                                {": ", ": "}}};
    return std::ranges::any_of(forms, [&](const form& f) {
        auto text = rest;
        return drop(text, f.before) && scan::drop_digits(text, 1, 10) && text.starts_with(f.after);
    });
}

// Linux: mm/{oom_kill,page_alloc,vmalloc}.c, kernel/{signal,exit,capability}.c, net/core/dev.c and others.
bool begins_with_words(std::string_view rest) {
    static constexpr std::array<std::string_view, 15> words{" invoked oom-killer:",
                                                            ": page allocation ",
                                                            ": vmalloc ",
                                                            ": vmap ",
                                                            ": potentially unexpected ",
                                                            ": segfault ",
                                                            ": unhandled ",
                                                            ": renamed from ",
                                                            ": entered ",
                                                            ": left ",
                                                            " bad frame in ",
                                                            " uses ",
                                                            " used ",
                                                            " tried ",
                                                            " attempted "};
    return std::ranges::any_of(words, [&](auto word) { return rest.starts_with(word); });
}

}  // namespace

bool is_cut_from_oom_line(std::string_view text) {
    return text.find(",mems_allowed=") != std::string_view::npos && !text.starts_with("oom-kill:");
}

bool may_begin_with_a_name(std::string_view text) {
    // Here the name stands in the middle, and is passed over from its end.
    if (text.starts_with("INFO: task ")) return false;
    // A server's name, too, and all that follows it is the kernel's.
    if (constexpr std::string_view nfs = "nfs: server "; text.starts_with(nfs)) {
        const auto rest = text.substr(std::min(text.find(' ', nfs.size()), text.size()));
        if (rest == " not responding, still trying" || rest == " not responding, timed out") return false;
    }
    const auto last = std::min(longest_name, text.size());
    for (std::size_t n = 0; n <= last; ++n) {
        const auto rest = text.substr(n);
        if (begins_with_its_number(rest) || begins_with_words(rest)) return true;
    }
    return false;
}

}  // namespace banyan::fault
