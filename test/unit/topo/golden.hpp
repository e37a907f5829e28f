// SPDX-License-Identifier: BSD-3-Clause
//
// Comparison with a golden file under test/fixtures/export; BANYAN_WRITE_GOLDEN=1 in the environment writes
// it anew, for review as a diff.
#pragma once

#include <cstdlib>
#include <string>

#include <catch2/catch.hpp>

#include "common/file.hpp"
#include "test/built.hpp"

namespace banyan::topo::test {

inline void check_golden(const std::string& name, const std::string& text) {
    const auto path = banyan::testing::fixture("export/") + name;
    if (std::getenv("BANYAN_WRITE_GOLDEN")) REQUIRE(write_file_atomic(path, text));
    const auto golden = read_file(path, 1 << 24);
    REQUIRE(golden);
    CHECK(text == *golden);
}

}  // namespace banyan::topo::test
