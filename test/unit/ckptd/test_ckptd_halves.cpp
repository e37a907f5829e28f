// SPDX-License-Identifier: BSD-3-Clause
//
// A save in two halves, beside which the process trains on; and what the rank and its daemon say to each
// other in their shared page.
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <banyan/ckpt.h>
#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "ckptd/protocol/protocol.hpp"
#include "cluster.hpp"
#include "common/child.hpp"

namespace test_ckptd_halves {

using namespace ckptd_test;

namespace {

constexpr std::size_t bytes = 30'000'000;

/// This process is the one rank of job 1, until the end of the test.
struct rank_here {
    std::vector<unsigned char> state = std::vector<unsigned char>(bytes);

    explicit rank_here(const cluster& c) {
        ::setenv("BANYAN_CKPT_SOCKET", c.socket(1).c_str(), 1);
        ::setenv("BANYAN_CKPT_WAIT_MS", "1500", 1);
        REQUIRE(bck_init("1", 0, 1) == BCK_OK);
        REQUIRE(bck_protect_bytes("state", state.data(), state.size()) == BCK_OK);
    }
    ~rank_here() {
        bck_finalize(0);
        ::unsetenv("BANYAN_CKPT_SOCKET");
        ::unsetenv("BANYAN_CKPT_WAIT_MS");
    }
    int begin(std::uint64_t step) {
        state.assign(bytes, static_cast<unsigned char>(step));
        return bck_checkpoint_begin(step, nullptr, 0, nullptr);
    }
    int save(std::uint64_t step) {
        const int code = begin(step);
        return code == BCK_OK ? bck_checkpoint_end() : code;
    }
    /// The step that comes back, and its bytes.
    void comes_back(std::uint64_t step) {
        state.assign(bytes, 0xee);
        std::uint64_t found = 0;
        REQUIRE(bck_restart(&found, nullptr) == BCK_OK);
        CHECK(found == step);
        CHECK(state == std::vector<unsigned char>(bytes, static_cast<unsigned char>(step)));
    }
};

json heartbeat(const cluster& c) { return c.session(1, 1)["ranks"][0].value("heartbeat", json()); }

}  // namespace

TEST_CASE("a save in two halves is sealed by the second one", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c);
    REQUIRE(rank.begin(1) == BCK_OK);
    CHECK(bck_checkpoint(2) == BCK_E_INVALID);
    CHECK(std::string(bck_error()).find("the save of step 1 has begun") != std::string::npos);
    CHECK(rank.begin(2) == BCK_E_INVALID);
    CHECK(bck_reserve(nullptr, 0) == BCK_E_INVALID);
    CHECK(bck_unprotect("state") == BCK_E_INVALID);  // its memory is being read
    CHECK(bck_wait(1, BCK_SEALED, 0) == BCK_E_TIMEOUT);
    CHECK(c.session(1, 1)["committed"].is_null());
    rank.state.assign(bytes, 1);
    CHECK(bck_checkpoint_end() == BCK_OK);
    CHECK(bck_checkpoint_end() == BCK_E_INVALID);
    CHECK(bck_wait(1, BCK_MEMORY, 5000) == BCK_OK);
    for (std::uint64_t step = 2; step < 9; ++step) {  // every buffer
        REQUIRE(rank.save(step) == BCK_OK);
        REQUIRE(bck_wait(step, BCK_MEMORY, 5000) == BCK_OK);
    }
    rank.comes_back(8);
}

TEST_CASE("what ends between the halves of a save takes that save alone", "[ckptd]") {
    cluster c({1, "", {"--keeper"}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c);
    REQUIRE(rank.save(1) == BCK_OK);
    REQUIRE(bck_wait(1, BCK_MEMORY, 5000) == BCK_OK);
    REQUIRE(rank.begin(2) == BCK_OK);
    const auto ended = GENERATE(as<std::string>(), "restart", "daemon", "nothing");
    CAPTURE(ended);
    if (ended == "restart") {
        rank.comes_back(1);
        CHECK(bck_checkpoint_end() == BCK_E_INVALID);
    } else if (ended == "daemon") {
        const auto before = c.status(1)["pid"].get<pid_t>();
        REQUIRE(::kill(before, SIGKILL) == 0);
        REQUIRE(eventually([&] {
            const auto now = c.status(1);
            return now.is_object() && now["pid"] != before;
        }));
        // In memory that is kept the copy is whole.
        CHECK(bck_checkpoint_end() == BCK_OK);
    } else {
        CHECK(bck_checkpoint_end() == BCK_OK);
    }
    REQUIRE(rank.save(3) == BCK_OK);
    REQUIRE(bck_wait(3, BCK_MEMORY, 5000) == BCK_OK);
    rank.comes_back(3);
}

TEST_CASE("a process may end, or be forked, between the halves of a save", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c);
    REQUIRE(rank.save(1) == BCK_OK);
    REQUIRE(rank.begin(2) == BCK_OK);
    const auto child = banyan::run_forked([&] {
        if (bck_checkpoint_end() != BCK_E_INVALID) return 1;
        bck_finalize(0);
        return 0;
    });
    REQUIRE(child);
    CHECK(child->code == 0);
    CHECK(bck_checkpoint_end() == BCK_OK);
    REQUIRE(rank.begin(3) == BCK_OK);
    CHECK(bck_finalize(0) == BCK_OK);
    REQUIRE(bck_init("1", 0, 1) == BCK_OK);
    REQUIRE(bck_protect_bytes("state", rank.state.data(), rank.state.size()) == BCK_OK);
    CHECK(bck_checkpoint_end() == BCK_E_INVALID);
    rank.comes_back(2);
}

TEST_CASE("the daemon shows what a rank says of itself", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c);
    bck_heartbeat(7, 1);  // nothing is attached yet
    REQUIRE(rank.save(1) == BCK_OK);
    CHECK(heartbeat(c)["step"] == 1);  // its save
    CHECK(heartbeat(c)["phase"].is_null());
    bck_heartbeat(UINT64_MAX, UINT32_MAX);
    bck_heartbeat(8, 2);
    CHECK(heartbeat(c)["step"] == 8);
    CHECK(heartbeat(c)["phase"] == 2);
    CHECK(heartbeat(c)["age_ms"].is_number_unsigned());
}

TEST_CASE("a rank hears that somebody wants the job saved, until it has been", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    rank_here rank(c);
    CHECK(bck_seal_requested() == 0);
    REQUIRE(rank.save(1) == BCK_OK);
    CHECK(bck_seal_requested() == 0);
    CHECK_FALSE(banyan::ckpt::seal_now(c.socket(1), 2, 5s));  // another job
    CHECK(bck_seal_requested() == 0);
    REQUIRE(banyan::ckpt::seal_now(c.socket(1), 1, 5s));
    CHECK(bck_seal_requested() == 1);
    REQUIRE(rank.begin(2) == BCK_OK);
    CHECK(bck_seal_requested() == 0);
    REQUIRE(banyan::ckpt::seal_now(c.socket(1), 0, 5s));  // while that is copied: it may lack what is wanted
    CHECK(bck_checkpoint_end() == BCK_OK);
    CHECK(bck_seal_requested() == 1);
    REQUIRE(rank.save(3) == BCK_OK);
    CHECK(bck_seal_requested() == 0);
}

}  // namespace test_ckptd_halves
