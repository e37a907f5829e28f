// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank answers in one line, and what tests compare it with.
#pragma once

#include <algorithm>
#include <climits>
#include <concepts>
#include <cstdint>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <banyan/ckpt.h>

namespace ckptd_test {

/// Of bck_restart.
struct restored_state {
    int code = BCK_OK;
    std::uint64_t step = 0;
    int source = BCK_FROM_NONE;
    bool same = true;  ///< every byte is that step's
    bool operator==(const restored_state&) const = default;
};

inline restored_state not_restored(int code) { return {code, 0, BCK_FROM_NONE, false}; }

inline std::ostream& operator<<(std::ostream& out, const restored_state& s) {
    return out << s.code << ' ' << s.step << ' ' << s.source << ' ' << s.same;
}

/// Of what tells of a step, whatever else it tells.
struct found_step {
    int code = BCK_OK;
    std::uint64_t step = 0;
    bool operator==(const found_step&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const found_step& s) {
    return out << s.code << ' ' << s.step;
}

struct answer : std::string {
    answer() = default;
    explicit answer(std::string text) : std::string(std::move(text)) {}
    /// Of the library's call; none of its codes where there is no answer.
    int code() const { return restored().code; }
    found_step found() const { return {restored().code, restored().step}; }
    restored_state restored() const {
        auto out = not_restored(INT_MIN);
        std::istringstream in(*this);
        if (!(in >> out.code)) return not_restored(INT_MIN);
        in >> out.step >> out.source >> out.same;
        return out;
    }
};

inline bool operator==(const answer& a, int code) { return a.code() == code; }
inline bool operator==(const answer& a, const found_step& wanted) { return a.found() == wanted; }
inline bool operator==(const answer& a, const restored_state& wanted) { return a.restored() == wanted; }

template <class Wanted>
requires(!std::same_as<Wanted, answer>) bool operator==(const std::vector<answer>& answers,
                                                        const std::vector<Wanted>& wanted) {
    return std::ranges::equal(answers, wanted, [](const auto& a, const auto& b) { return a == b; });
}

}  // namespace ckptd_test
