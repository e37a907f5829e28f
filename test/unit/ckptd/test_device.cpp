// SPDX-License-Identifier: BSD-3-Clause
//
// Copies from and to a GPU, and the buffers that are pinned for them; by a mock of the driver that refuses
// what the driver refuses.
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/mman.h>

#include "ckptd/client/device.hpp"
#include "ckptd/client/transfer.hpp"
#include "common/child.hpp"
#include "test/built.hpp"
#include "test/nvidia/driver.hpp"

namespace test_device {

using namespace banyan::ckpt;
using banyan::testing::driver;

namespace {

constexpr std::size_t mib = 1u << 20, gib = 1u << 30;

const driver& cuda() {
    static const driver one(banyan::testing::built("mock_nvidia"));
    return one;
}

/// Address space of any size; only what is written costs memory.
struct buffer {
    explicit buffer(std::size_t n)
        : bytes(n),
          at(static_cast<std::byte*>(::mmap(nullptr, n, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        REQUIRE(at != MAP_FAILED);
    }
    ~buffer() { ::munmap(at, bytes); }
    std::size_t bytes;
    std::byte* at;
};

std::vector<unsigned char> numbers(std::size_t n) {
    std::vector<unsigned char> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return out;
}

}  // namespace

TEST_CASE("in a pinned buffer of any size every place can be copied to and from", "[client]") {
    const buffer b(2 * gib + 512 * mib);
    const auto content = numbers(16 * mib);
    void* const gpu = cuda().allocate(content.size());
    REQUIRE(device::owns(gpu));
    CHECK_FALSE(device::owns(b.at));
    const device::pinned whole(b.at, b.bytes, gpu);
    for (const auto border : {gib / 2, gib, 2 * gib}) {
        auto* const at = b.at + border - 8 * mib;
        cuda().put(gpu, content);
        REQUIRE(device::copy_to_host(at, gpu, content.size()));
        CHECK(std::memcmp(at, content.data(), content.size()) == 0);
        cuda().put(gpu, std::vector<unsigned char>(content.size()));
        REQUIRE(device::copy_from_host(gpu, at, content.size()));
        CHECK(cuda().get(gpu, content.size()) == content);
    }
}

TEST_CASE("memory of a GPU that belongs to no context is copied by any thread", "[client]") {
    const auto content = numbers(mib);
    void* const gpu = cuda().allocate_pooled(content.size());
    cuda().put(gpu, content);
    std::vector<unsigned char> back(content.size());
    bool copied = false;
    std::thread([&] { copied = device::copy_to_host(back.data(), gpu, back.size()).has_value(); }).join();
    CHECK(copied);
    CHECK(back == content);
    cuda().use(1);  // another GPU is in use here
    CHECK(device::copy_from_host(gpu, content.data(), content.size()));
    cuda().use(0);
}

TEST_CASE("what one thread has pinned another one lets go of", "[client]") {
    void* const gpu = cuda().allocate(mib);
    const auto content = numbers(mib);
    for (int round = 0; round < 2; ++round) {  // the second one would find it registered still
        const buffer b(4 * mib);
        std::optional<device::pinned> all(std::in_place, b.at, b.bytes, gpu);
        device::pinned moved(std::move(*all));
        all.reset();
        CHECK(device::copy_to_host(b.at, gpu, mib));
        std::thread([&] { const device::pinned last(std::move(moved)); }).join();
    }
    CHECK(device::copy_from_host(gpu, content.data(), content.size()));
}

TEST_CASE("a forked child does not touch what its parent has pinned", "[client]") {
    void* const gpu = cuda().allocate(mib);
    const buffer b(4 * mib);
    std::optional<device::pinned> all(std::in_place, b.at, b.bytes, gpu);
    const auto child = banyan::run_forked([&] { return all.reset(), 0; });
    REQUIRE(child);
    CHECK(child->code == 0);
    CHECK(device::copy_to_host(b.at + mib, gpu, mib));
}

TEST_CASE("a save has what was queued on a GPU before it", "[client]") {
    void* const gpu = cuda().allocate(mib);
    void* const stream = GENERATE(true, false) ? cuda().stream() : nullptr;
    cuda().put(gpu, std::vector<unsigned char>(mib, 1));
    std::vector<unsigned char> host(mib);
    SECTION("on any stream, where none is named") {
        cuda().fill_on(stream, gpu, 2, mib);
        device::transfer save;
        REQUIRE(save.copy(host.data(), gpu, mib));
        REQUIRE(save.finish());
        CHECK(host == std::vector<unsigned char>(mib, 2));
    }
    SECTION("on the stream that is named, and nothing of what comes after") {
        cuda().fill_on(stream, gpu, 2, mib);
        device::transfer save(gpu, stream);
        cuda().fill_on(stream, gpu, 3, mib);
        std::thread([&] {
            REQUIRE(save.copy(host.data(), gpu, mib));
            REQUIRE(save.finish());
        }).join();
        CHECK(host == std::vector<unsigned char>(mib, 2));
        cuda().call("cuCtxSynchronize");
        CHECK(cuda().get(gpu, mib) == std::vector<unsigned char>(mib, 3));
    }
}

TEST_CASE("a save of two GPUs copies from each by its own context", "[client]") {
    void* const one = cuda().allocate(mib);
    cuda().put(one, std::vector<unsigned char>(mib, 1));
    cuda().use(1);
    void* const other = cuda().allocate_pooled(mib);
    cuda().put(other, std::vector<unsigned char>(mib, 2));
    cuda().use(0);
    std::vector<unsigned char> first(mib), second(mib);
    device::transfer save(one, nullptr);
    for (int piece = 0; piece < 3; ++piece) {
        REQUIRE(save.copy(first.data(), one, mib));
        REQUIRE(save.copy(second.data(), other, mib));
    }
    REQUIRE(save.finish());
    CHECK(first == std::vector<unsigned char>(mib, 1));
    CHECK(second == std::vector<unsigned char>(mib, 2));
}

}  // namespace test_device
