// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/options.hpp"

namespace test_options {

using namespace banyan::supervisor;
using words = std::vector<std::string>;

TEST_CASE("own options end at the first word that is none", "[supervisor]") {
    const auto o = split_arguments(
        {"--max-restarts", "5", "--debug", "-N", "2", "--debug", "prog", "--max-restarts", "9"});
    REQUIRE(o);
    CHECK(o->max_restarts == 5);
    CHECK(o->debug);
    CHECK(o->srun == words{"-N", "2", "--debug", "prog", "--max-restarts", "9"});
}

TEST_CASE("both spellings of a value", "[supervisor]") {
    const auto o =
        split_arguments({"--max-restarts=7", "--max-idle-restarts", "0", "--wait-for-slurmctld=2s", "prog"});
    REQUIRE(o);
    CHECK(o->max_restarts == 7);
    CHECK(o->max_idle_restarts == 0);
    CHECK(o->wait == std::chrono::seconds(2));
    CHECK(o->srun == words{"prog"});
}

TEST_CASE("an option of srun is srun's, wherever it stands", "[supervisor]") {
    const auto line = GENERATE(words{"--wait-all-nodes=1", "prog"}, words{"--wait=60", "prog"},
                               words{"--wait", "60", "prog"}, words{"--verbose", "prog"});
    const auto o = split_arguments(line);
    REQUIRE(o);
    CHECK(o->srun == line);
    CHECK(o->wait == options().wait);
}

TEST_CASE("nothing of srun's is touched", "[supervisor]") {
    const auto rest = GENERATE(words{"--overlap", "--verbose", "prog"}, words{"-v", "--wait=5", "prog"},
                               words{"--", "--verbose"}, words{"-", "--help"}, words{"--verbose=2", "prog"},
                               words{"prog", "--wait-for-slurmctld", "--help"}, words{"--wai", "prog"},
                               words{""}, words{"--wait-all-nodes", "1", "-h", "--max-restarts=x"});
    auto line = rest;
    line.insert(line.begin(), {"--max-restarts", "5"});
    const auto o = split_arguments(line);
    REQUIRE(o);
    CHECK(o->max_restarts == 5);
    CHECK_FALSE(o->debug);
    CHECK_FALSE(o->help);
    CHECK(o->wait == options().wait);
    CHECK(o->srun == rest);
}

TEST_CASE("the last of an option that is given twice", "[supervisor]") {
    const auto o = split_arguments({"--wait-for-slurmctld=1s", "--max-restarts", "010", "--debug", "--debug",
                                    "--wait-for-slurmctld", "2m", "prog"});
    REQUIRE(o);
    CHECK(o->wait == std::chrono::minutes(2));
    CHECK(o->max_restarts == 10);
    CHECK(o->debug);
}

TEST_CASE("help needs no program", "[supervisor]") {
    CHECK(split_arguments({"--help"})->help);
    CHECK(split_arguments({"-h"})->help);
    CHECK(split_arguments({"--version"})->version);
    CHECK(help_text().starts_with("Run a job step"));
}

TEST_CASE("wrong command lines are refused", "[supervisor]") {
    const auto line =
        GENERATE(words{}, words{"--debug"}, words{"--max-restarts"}, words{"--max-restarts", "many", "prog"},
                 words{"--max-restarts=-1", "prog"}, words{"--max-idle-restarts=", "prog"},
                 words{"--wait-for-slurmctld=soon", "prog"}, words{"--wait-for-slurmctld=", "5", "prog"},
                 words{"--wait-for-slurmctld", "--debug", "prog"}, words{"--max-restarts", "0x10", "prog"},
                 words{"--max-restarts", "1000001", "prog"});
    CHECK_FALSE(split_arguments(line));
}

TEST_CASE("whether the user's words let a step go on without a node", "[supervisor]") {
    const auto no =
        GENERATE(words{}, words{"prog"}, words{"prog", "-k"}, words{"-N2", "prog", "prog.py", "-k"},
                 words{"-N", "2", "prog", "--no-kill"}, words{"--nodes=2", "prog", "-k"},
                 words{"-l", "--", "prog", "--no-kill"}, words{"--no-kill=off", "prog"},
                 words{"--no-kill", "--no-kill=no", "prog"}, words{"-koff", "prog", "-k"},
                 words{"--kill-on-bad-exit=0", "prog"}, words{"--no-allocate", "prog"});
    CHECK_FALSE(goes_on_without_a_node(no));
    const auto yes = GENERATE(words{"--no-kill", "prog"}, words{"-k", "prog"}, words{"--no-kill=set", "prog"},
                              words{"-N", "2", "-k", "prog"}, words{"--no-kill=off", "-kset", "prog"},
                              words{"--no-ki", "prog"}, words{"-lk", "prog"}, words{"-l", "prog", "-k"});
    CHECK(goes_on_without_a_node(yes));
}

}  // namespace test_options
