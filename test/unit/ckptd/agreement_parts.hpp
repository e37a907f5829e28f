// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of the agreement's rules are made of.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ckptd/agreement/agreement.hpp"

namespace ckptd_test {

constexpr std::uint64_t round_one = 1u << banyan::ckpt::round_bits, round_two = round_one + 1;

inline banyan::ckpt::agreement::shelf::copy own(banyan::ckpt::agreement::shelf::id number,
                                                const banyan::ckpt::copy_key& key) {
    banyan::ckpt::agreement::shelf::copy c;
    c.number = number;
    c.what = {key, 0};
    c.checked = true;
    return c;
}

inline banyan::ckpt::agreement::inventory holds(const banyan::ckpt::agreement::ballot& number,
                                                std::vector<banyan::ckpt::agreement::held> copies) {
    banyan::ckpt::agreement::inventory out;
    out.number = number;
    out.copies = std::move(copies);
    return out;
}

}  // namespace ckptd_test
