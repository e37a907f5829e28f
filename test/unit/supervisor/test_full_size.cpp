// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/full_size.hpp"

namespace test_full_size {

using banyan::supervisor::full_size;
using namespace std::chrono_literals;

namespace {
const auto begin = full_size::clock::time_point{} + 1h;
}

TEST_CASE("a job looks at the end of a training step, half a minute after it began with fewer groups",
          "[supervisor]") {
    full_size looks(begin, false);
    CHECK_FALSE(looks.is_due(begin + 29s, 7));
    CHECK_FALSE(looks.is_near(begin + 29s));
    CHECK(looks.is_near(begin + 30s));
    CHECK_FALSE(looks.is_due(begin + 30s, 8));  // it may be long complete
    CHECK_FALSE(looks.is_due(begin + 50s, 8));
    CHECK(looks.is_due(begin + 51s, 9));
    CHECK_FALSE(looks.is_due(begin + 52s, 10));
    CHECK_FALSE(looks.is_near(begin + 80s));
    CHECK_FALSE(looks.is_due(begin + 81s, 38));
    CHECK(looks.is_due(begin + 82s, 39));
}

TEST_CASE("one whose last start with all groups was in vain waits longer", "[supervisor]") {
    full_size looks(begin, true);
    CHECK_FALSE(looks.is_near(begin + 599s));
    CHECK(looks.is_near(begin + 600s));
}

TEST_CASE("a job looks never where it has all groups, or nothing tells what is complete", "[supervisor]") {
    CHECK_FALSE(full_size().is_near(begin + 24h));
    CHECK_FALSE(full_size().is_due(begin + 24h, 7));
    full_size looks(begin, false);
    CHECK_FALSE(looks.is_due(begin + 30s, {}));
    CHECK_FALSE(looks.is_near(begin + 59s));  // nor asks for it without pause
    CHECK_FALSE(looks.is_due(begin + 60s, 5));
    CHECK_FALSE(looks.is_due(begin + 61s, {}));
    CHECK_FALSE(looks.is_due(begin + 91s, 5));
    CHECK(looks.is_due(begin + 92s, 6));
}

}  // namespace test_full_size
