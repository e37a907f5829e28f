// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "common/command.hpp"

namespace test_command {

using namespace banyan;
using std::chrono::milliseconds;

TEST_CASE("a command's output is given, without a shell between", "[command]") {
    CHECK(*run_command({"printf", "%s", "$HOME; x"}, milliseconds(5000)) == "$HOME; x");
    CHECK(run_command({"head", "-c", "1000000", "/dev/zero"}, milliseconds(5000))->size() == 1'000'000);
}

TEST_CASE("a command that fails, hangs or floods is an error", "[command]") {
    auto r = run_command({"sh", "-c", "echo first >&2; echo why >&2; exit 3"}, milliseconds(5000));
    REQUIRE_FALSE(r);
    CHECK(r.error().what == "sh ended with 3: why");
    r = run_command({"false"}, milliseconds(5000));
    REQUIRE_FALSE(r);
    r = run_command({"sleep", "60"}, milliseconds(100));
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::unavailable);
    r = run_command({"yes"}, milliseconds(5000), 1000);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::exhausted);
    r = run_command({"/nowhere/ibnetdiscover"}, milliseconds(5000));
    REQUIRE_FALSE(r);
    CHECK(r.error().what.find("/nowhere/ibnetdiscover") != std::string::npos);
}

}  // namespace test_command
