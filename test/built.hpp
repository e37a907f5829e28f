// SPDX-License-Identifier: BSD-3-Clause
//
// Where a build has what tests start, load and read. No test's own object has such a path in it: the
// compiler's cache knows it in each clone.
#pragma once

#include <string>
#include <string_view>

namespace banyan::testing {

/// The path of a program or library of this build, by its target's name in CMake. A target that
/// banyan_test_uses() does not list ends the test.
std::string built(std::string_view target);

/// A path below the folder of the sources.
std::string source(std::string_view below);

/// A path below test/fixtures.
inline std::string fixture(std::string_view below) { return source("test/fixtures/") + std::string(below); }

}  // namespace banyan::testing
