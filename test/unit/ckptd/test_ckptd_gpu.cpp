// SPDX-License-Identifier: BSD-3-Clause
//
// States in GPU memory, from the rank to the daemon and back, by a mock of the driver.
#include <cstdlib>
#include <vector>

#include <banyan/ckpt.h>

#include "cluster.hpp"
#include "test/built.hpp"
#include "test/nvidia/driver.hpp"

namespace test_ckptd_gpu {

using namespace ckptd_test;
using banyan::testing::driver;

namespace {

constexpr std::size_t bytes = 3'000'000;

std::vector<unsigned char> content_of(std::uint64_t step, std::size_t size = bytes) {
    return std::vector<unsigned char>(size, static_cast<unsigned char>(step));
}

/// This process is rank 0, until the end of the test.
struct rank_here {
    driver cuda;

    rank_here(const cluster& c, int world, int gpu = 0) : cuda(banyan::testing::built("mock_nvidia"), gpu) {
        ::setenv("BANYAN_CKPT_SOCKET", c.socket(1).c_str(), 1);
        ::setenv("BANYAN_CKPT_WAIT_MS", "1500", 1);
        REQUIRE(bck_init("1", 0, world) == BCK_OK);
    }
    ~rank_here() {
        bck_unprotect("state");
        bck_finalize(0);
        ::unsetenv("BANYAN_CKPT_SOCKET");
        ::unsetenv("BANYAN_CKPT_WAIT_MS");
    }
};

}  // namespace

TEST_CASE("a step that the GPU does not give is passed over by all at once", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 2, "", 0));
    const rank_here rank(c, 2, 1);
    bck_protect_bytes("state", rank.cuda.allocate(bytes), bytes);
    REQUIRE(bck_checkpoint(1) == BCK_OK);
    ::setenv("BANYAN_MOCK", "ecc", 1);
    CHECK(bck_checkpoint(2) == BCK_E_DEVICE);
    ::unsetenv("BANYAN_MOCK");
    CHECK(within(2s, [&] { return c.counter(1, 1, "skipped") == 1; }));
    CHECK(bck_checkpoint(3) == BCK_OK);
    CHECK(c.counter(1, 1, "skipped") == 1);
}

TEST_CASE("a state on a GPU that grows and moves comes back as it was saved", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(1, 1, 1, "", 0));
    const rank_here rank(c, 1);
    std::uint64_t step = 0;
    for (const std::size_t size : {bytes, 3 * bytes, 9 * bytes}) {
        void* const gpu = rank.cuda.allocate(size);
        bck_protect_bytes("state", gpu, size);
        for (int again = 0; again < 4; ++again) {  // every buffer
            rank.cuda.put(gpu, content_of(++step, size));
            REQUIRE(bck_checkpoint(step) == BCK_OK);
            REQUIRE(bck_wait(step, BCK_MEMORY, 5000) == BCK_OK);
        }
        rank.cuda.put(gpu, content_of(0, size));
        std::uint64_t found = 0;
        REQUIRE(bck_restart(&found, nullptr) == BCK_OK);
        CHECK(found == step);
        CHECK(rank.cuda.get(gpu, size) == content_of(step, size));
    }
}

}  // namespace test_ckptd_gpu
