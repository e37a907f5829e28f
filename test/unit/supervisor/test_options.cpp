// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/options.hpp"

using namespace banyan::supervisor;
using words = std::vector<std::string>;

TEST_CASE("own options end at the first word that is none", "[supervisor]") {
    const auto o = split_arguments(
        {"--max-restarts", "5", "--verbose", "-N", "2", "--verbose", "prog", "--max-restarts", "9"});
    REQUIRE(o);
    CHECK(o->max_restarts == 5);
    CHECK(o->verbose);
    CHECK(o->srun == words{"-N", "2", "--verbose", "prog", "--max-restarts", "9"});
}

TEST_CASE("both spellings of a value", "[supervisor]") {
    const auto o = split_arguments({"--max-restarts=7", "--max-idle-restarts", "0", "--wait=2s", "prog"});
    REQUIRE(o);
    CHECK(o->max_restarts == 7);
    CHECK(o->max_idle_restarts == 0);
    CHECK(o->wait == std::chrono::seconds(2));
    CHECK(o->srun == words{"prog"});
}

TEST_CASE("an option of srun that begins like one of ours is srun's", "[supervisor]") {
    const auto o = split_arguments({"--wait-all-nodes=1", "prog"});
    REQUIRE(o);
    CHECK(o->srun == words{"--wait-all-nodes=1", "prog"});
}

TEST_CASE("help needs no program", "[supervisor]") {
    CHECK(split_arguments({"--help"})->help);
    CHECK(split_arguments({"--version"})->version);
}

TEST_CASE("wrong command lines are refused", "[supervisor]") {
    const auto line = GENERATE(words{}, words{"--verbose"}, words{"--max-restarts"},
                               words{"--max-restarts", "many", "prog"}, words{"--max-restarts=-1", "prog"},
                               words{"--max-idle-restarts=", "prog"}, words{"--wait=soon", "prog"});
    CHECK_FALSE(split_arguments(line));
}
