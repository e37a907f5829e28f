// SPDX-License-Identifier: BSD-3-Clause
//
// What memory costs the other threads of the process: while the kernel fills a mapping, or empties one, none
// of them can map anything. A program of its own: its calls of mmap() and the like come here first.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ckptd/buffers/memory.hpp"
#include "huge_pages.hpp"
#include "test/idle_clock.hpp"

namespace test_mappings {

using namespace banyan::ckpt;
using ckptd_test::transparent_policy;

namespace {

constexpr std::uint64_t mib = 1u << 20, most_at_once = 8 * mib;
std::uint64_t most_filled = 0, most_emptied = 0;  // bytes, by one call

// How much of a range is in this process's page tables.
std::uint64_t present(const void* at, std::uint64_t bytes) {
    const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::vector<std::uint64_t> pages(bytes / page_size);
    const banyan::unique_fd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    const auto from = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at) / page_size * 8);
    if (::pread(map.get(), pages.data(), pages.size() * 8, from) != static_cast<ssize_t>(pages.size() * 8))
        return 0;
    return page_size * static_cast<std::uint64_t>(
                           std::ranges::count_if(pages, [](auto page) { return (page >> 63) != 0; }));
}

}  // namespace

extern "C" {
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);
int __real_madvise(void*, std::size_t, int);

void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t from) {
    if ((flags & MAP_POPULATE) != 0) most_filled = std::max<std::uint64_t>(most_filled, bytes);
    return __real_mmap(at, bytes, protection, flags, fd, from);
}

int __wrap_munmap(void* at, std::size_t bytes) {
    most_emptied = std::max(most_emptied, present(at, bytes));
    return __real_munmap(at, bytes);
}

int __wrap_madvise(void* at, std::size_t bytes, int advice) {
    constexpr int populate_read = 22, populate_write = 23;
    if (advice == populate_read || advice == populate_write)
        most_filled = std::max<std::uint64_t>(most_filled, bytes);
    if (advice == MADV_DONTNEED) most_emptied = std::max(most_emptied, present(at, bytes));
    return __real_madvise(at, bytes, advice);
}
}

namespace {

void make_grow_and_free(bool huge) {
    most_filled = most_emptied = 0;
    const auto budget = std::make_shared<memory_budget>(1024 * mib, nullptr, huge);
    auto made = shard_memory::make(budget, "rank", {page_bytes, 3}, 24 * mib, 0);
    REQUIRE(made);
    CHECK(present((*made)->data(), (*made)->size()) == (*made)->size());
    auto grown = shard_memory::grow(*made, {page_bytes, 3}, "rank", 24 * mib);
    REQUIRE(grown);
    for (std::size_t at = 0; at < (*grown)->size(); at += page_bytes) (*grown)->data()[at] = std::byte{1};
    made->reset();
    grown->reset();
    banyan::testing::eventually([&] { return budget->used() == 0; });
    CHECK(most_filled <= most_at_once);
    CHECK(most_emptied <= most_at_once);
}

}  // namespace

TEST_CASE("memory is filled and emptied in small pieces", "[ckptd]") { make_grow_and_free(false); }

TEST_CASE("memory of transparent huge pages is filled and emptied in small pieces", "[ckptd]") {
    const transparent_policy given("advise");
    if (!given) return;
    make_grow_and_free(true);
}

}  // namespace test_mappings
