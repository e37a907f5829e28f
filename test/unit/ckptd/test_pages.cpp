// SPDX-License-Identifier: BSD-3-Clause
//
// Memory in huge pages: that there are, that there are too few, that grows, that is handed over, that a rank
// spoils.
#include <cstring>
#include <fstream>
#include <mutex>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/buffers/memory.hpp"
#include "huge_pages.hpp"
#include "test/idle_clock.hpp"

namespace test_pages {

using namespace banyan::ckpt;
using ckptd_test::huge_page_pool;
using ckptd_test::transparent_policy;

namespace {

constexpr std::uint64_t mib = 1u << 20, buffers = 3, each = 24 * mib - page_bytes, rounded = 24 * mib;
constexpr std::uint64_t pages_of_three = 37;  // with the header's
constexpr joined_shape of_rank{page_bytes, buffers};

// Large memory goes on a thread of its own.
void wait_until_gone(const memory_budget& budget) {
    banyan::testing::eventually([&] { return budget.used() == 0; });
}

struct budget_that_tells {
    std::shared_ptr<memory_budget> budget;
    std::vector<std::string> told;

    explicit budget_that_tells(std::uint64_t limit = 1024 * mib)
        : budget(std::make_shared<memory_budget>(limit, nullptr, true)) {
        budget->pages.say = [this](const std::string& text) { told.push_back(text); };
    }
    ~budget_that_tells() { wait_until_gone(*budget); }  // the pool is put back after it
    budget_that_tells(const budget_that_tells&) = delete;
    std::shared_ptr<shard_memory> make(std::uint64_t most = UINT64_MAX) const {
        auto made = shard_memory::make(budget, "rank", of_rank, each, most);
        REQUIRE(made);
        return std::move(*made);
    }
    std::uint64_t bytes(page_kind kind) const { return budget->pages.bytes(kind); }
    bool told_of(const std::string& what) const {
        return std::any_of(told.begin(), told.end(),
                           [&](const auto& t) { return t.find(what) != std::string::npos; });
    }
};

void fill(const shard_memory& m, unsigned char salt) {
    for (std::size_t at = 0; at < m.size(); at += 509) m.data()[at] = static_cast<std::byte>(at / 509 + salt);
}

int mappings() {
    std::ifstream in("/proc/self/maps");
    int lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    return lines;
}

bool is_filled(const std::byte* data, std::uint64_t bytes, unsigned char salt) {
    for (std::size_t at = 0; at < bytes; at += 509)
        if (data[at] != static_cast<std::byte>(at / 509 + salt)) return false;
    return true;
}

}  // namespace

TEST_CASE("memory lies in reserved huge pages, each buffer at the begin of one", "[ckptd]") {
    const huge_page_pool pool(pages_of_three + 1);
    if (!pool) return;
    budget_that_tells b;
    {
        const auto m = b.make();
        CHECK(m->is_reserved());
        CHECK(m->size() == page_bytes + buffers * rounded);
        CHECK(b.budget->used() == pages_of_three * huge_page_bytes);
        CHECK(shard_memory::bytes_to_make(*b.budget, of_rank, each, UINT64_MAX) == b.budget->used());
        CHECK(b.bytes(page_kind::reserved) == b.budget->used());
        CHECK(b.bytes(page_kind::ordinary) == 0);
        CHECK(huge_page_pool::free() == 1);
        for (std::size_t i = 0; i < buffers; ++i)
            CHECK(reinterpret_cast<std::uintptr_t>(m->data() + buffer_offset(i, rounded)) % huge_page_bytes ==
                  0);
        fill(*m, 1);
        CHECK(is_filled(m->data(), m->size(), 1));
        // As a process has it that maps the file.
        const auto file = files_of(m).front();
        void* at = ::mmap(nullptr, file->size(), PROT_READ, MAP_SHARED, file->fd(), 0);
        REQUIRE(at != MAP_FAILED);
        const banyan::mapping other(at, file->size());
        CHECK(std::memcmp(other.data() + huge_page_bytes - page_bytes, m->data(), m->size()) == 0);
        CHECK(::ftruncate(file->fd(), 0) != 0);
        CHECK(b.told.size() == 1);
        CHECK(b.told_of("74.0 MiB lie in reserved huge pages"));
    }
    wait_until_gone(*b.budget);
    CHECK(b.budget->used() == 0);
    CHECK(b.bytes(page_kind::reserved) == 0);
    CHECK(huge_page_pool::free() == pages_of_three + 1);
}

TEST_CASE("where too few huge pages are free memory lies in others, which is told once", "[ckptd]") {
    const huge_page_pool pool(pages_of_three + 9);
    const transparent_policy none("never");
    if (!pool || !none) return;
    budget_that_tells b;
    auto first = b.make();
    REQUIRE(first->is_reserved());
    {
        const auto second = b.make(), third = b.make();
        CHECK_FALSE(second->is_reserved());
        CHECK(second->size() == page_bytes + buffers * round_to_page(each));
        CHECK(b.bytes(page_kind::ordinary) == 2 * second->size());
        fill(*second, 2);
        CHECK(is_filled(second->data(), second->size(), 2));
        CHECK(huge_page_pool::free() == 9);
    }
    CHECK(b.told.size() == 2);
    CHECK(b.told_of("37 of 2 MiB are needed, and 9 are free"));
    CHECK(b.told_of("shmem_enabled is \"never\""));
    first.reset();
    CHECK(b.make()->is_reserved());
}

TEST_CASE("reserved pages are for what they fit, and never more than the limits", "[ckptd]") {
    const huge_page_pool pool(pages_of_three);
    if (!pool) return;
    constexpr auto huge = pages_of_three * huge_page_bytes;
    SECTION("rounding up would waste too much") {
        budget_that_tells b;
        const auto small = shard_memory::make(b.budget, "rank", of_rank, 3 * mib, UINT64_MAX);
        REQUIRE(small);
        CHECK_FALSE((*small)->is_reserved());
        CHECK((*small)->size() == page_bytes + 9 * mib);
        CHECK(b.told_of("too much larger"));
    }
    SECTION("a job's limit") {
        budget_that_tells b;
        CHECK_FALSE(b.make(huge - 1)->is_reserved());
        CHECK(shard_memory::bytes_to_make(*b.budget, of_rank, each, huge - 1) < huge);
        CHECK(huge_page_pool::free() == pages_of_three);
        CHECK(b.make(huge)->is_reserved());
    }
    SECTION("the daemon's limit") {
        budget_that_tells b(huge - 1);
        CHECK_FALSE(b.make()->is_reserved());
        const auto made = shard_memory::make(b.budget, "rank", of_rank, 25 * mib, UINT64_MAX);
        REQUIRE_FALSE(made);
        CHECK(made.error().code == banyan::errc::exhausted);
        CHECK(made.error().text().find("needs 75.0 MiB") != std::string::npos);
    }
    SECTION("a process that cannot map them") {
        budget_that_tells b;
        CHECK_FALSE(b.make(0)->is_reserved());
    }
    SECTION("a budget without huge pages") {
        const auto plain = std::make_shared<memory_budget>(1024 * mib);
        const auto made = shard_memory::make(plain, "rank", of_rank, each, UINT64_MAX);
        REQUIRE(made);
        CHECK_FALSE((*made)->is_reserved());
    }
}

TEST_CASE("memory in reserved pages grows, into others where there are no more", "[ckptd]") {
    const huge_page_pool pool(pages_of_three + 2 * buffers);
    if (!pool) return;
    budget_that_tells b;
    const auto m = b.make();
    REQUIRE(m->is_reserved());
    REQUIRE(m->unit() == huge_page_bytes);
    for (std::size_t i = 0; i < buffers; ++i)
        std::memset(m->data() + buffer_offset(i, rounded), static_cast<int>(i + 1), rounded);
    CHECK_FALSE(shard_memory::grow(m, of_rank, "more", page_bytes));  // no whole page for a buffer
    auto bytes = rounded;
    auto now = m;
    for (const bool reserved : {true, true, false, false}) {
        auto grown = shard_memory::grow(now, of_rank, "more", huge_page_bytes);
        REQUIRE(grown);
        CHECK((*grown)->parts().back()->is_reserved() == reserved);
        CHECK((*grown)->is_reserved());
        CHECK((*grown)->shares_with(m.get()));
        now = *grown;
        bytes += huge_page_bytes;
        CHECK(now->size() == page_bytes + buffers * bytes);
        for (std::size_t i = 0; i < buffers; ++i) {
            auto* const at = now->data() + buffer_offset(i, bytes);
            CHECK(at[0] == static_cast<std::byte>(i + 1));
            CHECK(at[rounded - 1] == static_cast<std::byte>(i + 1));
            CHECK(at[bytes - 1] == std::byte{0});
            at[bytes - 1] = static_cast<std::byte>(bytes / huge_page_bytes);
        }
        m->data()[0] = static_cast<std::byte>(bytes / mib);
        CHECK(now->data()[0] == m->data()[0]);
    }
    CHECK(b.bytes(page_kind::reserved) == (pages_of_three + 2 * buffers) * huge_page_bytes);
    CHECK(b.budget->used() == (pages_of_three + 4 * buffers) * huge_page_bytes);
}

TEST_CASE("memory in reserved pages is the same for the daemon that takes it over", "[ckptd]") {
    const huge_page_pool pool(pages_of_three);
    if (!pool) return;
    budget_that_tells before, after;
    auto m = before.make();
    REQUIRE(m->is_reserved());
    fill(*m, 7);
    banyan::unique_fd kept(::fcntl(files_of(m).front()->fd(), F_DUPFD_CLOEXEC, 0));
    m.reset();
    auto file = shard_memory::adopt(after.budget, {keeper::contents::shards, 1, std::move(kept)});
    REQUIRE(file);
    CHECK((*file)->is_reserved());
    CHECK(after.bytes(page_kind::reserved) == pages_of_three * huge_page_bytes);
    CHECK(after.budget->used() == pages_of_three * huge_page_bytes);
    const auto again = shard_memory::join({*file}, reserved_shape(of_rank));
    REQUIRE(again);
    CHECK((*again)->size() == page_bytes + buffers * rounded);
    CHECK(is_filled((*again)->data(), (*again)->size(), 7));
    CHECK_FALSE(shard_memory::join({*file}, of_rank));  // its layout is another one
}

TEST_CASE("huge pages go back to the pool under a process that still has them", "[ckptd]") {
    const huge_page_pool pool(pages_of_three);
    if (!pool) return;
    budget_that_tells b;
    auto m = b.make();
    auto file = files_of(m).front();
    REQUIRE(file->is_reserved());
    void* at = ::mmap(nullptr, file->size(), PROT_READ | PROT_WRITE, MAP_SHARED, file->fd(), 0);
    REQUIRE(at != MAP_FAILED);
    const banyan::mapping holder(at, file->size());
    std::memset(at, 1, file->size());
    file->share();
    file.reset();
    m.reset();
    wait_until_gone(*b.budget);
    CHECK(huge_page_pool::free() == pages_of_three);
}

TEST_CASE("a rank that makes holes and takes the pages gives the daemon zeros, and no signal", "[ckptd]") {
    const huge_page_pool pool(pages_of_three);
    if (!pool) return;
    guard_from_missing_pages();
    budget_that_tells b;
    const auto m = b.make();
    REQUIRE(m->is_reserved());
    fill(*m, 3);
    const auto file = files_of(m).front();
    const auto hole = static_cast<off_t>(2 * huge_page_bytes);
    REQUIRE(::fallocate(file->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole, 4 * huge_page_bytes) ==
            0);
    REQUIRE(huge_page_pool::free() == 4);
    const auto takes = file_of_reserved("thief", 4 * huge_page_bytes);
    REQUIRE(takes);
    auto* const gone = m->data() + page_bytes + huge_page_bytes;  // the second page of the first buffer
    CHECK(gone[5] == std::byte{0});
    gone[5] = std::byte{1};
    CHECK(gone[5] == std::byte{1});
    CHECK(file->data()[hole + 5] == std::byte{0});  // it is mapped twice
    CHECK(chunk_checksums(m->part(page_bytes, rounded)).size() == 6);
}

TEST_CASE("holes in every second page are one mapping of zeros, and a mark", "[ckptd]") {
    const huge_page_pool pool(pages_of_three);
    if (!pool) return;
    guard_from_missing_pages();
    budget_that_tells b;
    const auto m = b.make();
    REQUIRE(m->is_reserved());
    fill(*m, 3);
    const auto file = files_of(m).front();
    int holes = 0;
    for (std::uint64_t page = 2; page < pages_of_three; page += 2, ++holes)
        REQUIRE(::fallocate(file->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            static_cast<off_t>(page * huge_page_bytes), huge_page_bytes) == 0);
    const auto takes = file_of_reserved("thief", static_cast<std::uint64_t>(holes) * huge_page_bytes);
    REQUIRE(takes);
    const auto before = mappings();
    CHECK_FALSE(m->is_holed());
    CHECK(chunk_checksums(m->part(0, page_bytes)).size() == 1);  // the header's page is there
    CHECK_FALSE(m->is_holed());
    CHECK(chunk_checksums(m->part(0, m->size())).size() == chunk_count(m->size()));
    CHECK(m->is_holed());
    CHECK(mappings() <= before + 4);
    for (std::size_t at = 0; at < m->size(); at += 509)
        if (m->data()[at] != std::byte{0}) FAIL("something of before is still seen");
    CHECK(b.make()->is_holed() == false);  // whatever had this slot
}

TEST_CASE("memory that cannot be guarded does not lie in reserved pages", "[ckptd]") {
    const huge_page_pool pool(2 * pages_of_three);
    if (!pool) return;
    budget_that_tells b;
    std::vector<guarded> others;
    const auto* const nothing = reinterpret_cast<const void*>(huge_page_bytes);
    const auto take_all = [&] {
        for (;;) {
            guarded one(nothing, 0);
            if (!one) return;
            others.push_back(std::move(one));
        }
    };
    const auto first = b.make();
    REQUIRE(first->is_reserved());
    take_all();
    CHECK_FALSE(b.make()->is_reserved());
    CHECK(b.told_of("as much as can be guarded"));
    CHECK_FALSE(shard_memory::grow(first, of_rank, "more", huge_page_bytes));
    banyan::unique_fd kept(::fcntl(files_of(first).front()->fd(), F_DUPFD_CLOEXEC, 0));
    CHECK_FALSE(shard_memory::adopt(b.budget, {keeper::contents::shards, 1, std::move(kept)}));
    others.pop_back();  // for the file, and none for what is mapped of it
    CHECK_FALSE(b.make()->is_reserved());
    others.clear();
    CHECK(b.make()->is_reserved());
}

TEST_CASE("memory lies in transparent huge pages where the kernel gives them", "[ckptd]") {
    const huge_page_pool pool(0);
    const transparent_policy advise("advise");
    if (!pool || !advise) return;
    budget_that_tells b;
    const auto m = b.make();
    CHECK_FALSE(m->is_reserved());
    CHECK(m->size() == page_bytes + buffers * round_to_page(each));
    CHECK(b.bytes(page_kind::transparent) + b.bytes(page_kind::ordinary) == m->size());
    // All but the last one, if the kernel finds them.
    CHECK(b.bytes(page_kind::transparent) % huge_page_bytes == 0);
    CHECK(b.bytes(page_kind::transparent) >= huge_page_bytes);
    CHECK(b.told_of("lie in transparent huge pages, and none in reserved ones: there are too few"));
    fill(*m, 4);
    CHECK(is_filled(m->data(), m->size(), 4));
    // The next daemon sees them, too.
    budget_that_tells after;
    auto file = shard_memory::adopt(
        after.budget, {keeper::contents::shards, 1, banyan::unique_fd(::fcntl(m->fd(), F_DUPFD_CLOEXEC, 0))});
    REQUIRE(file);
    CHECK(after.bytes(page_kind::transparent) == 0);
    map_huge_pages((*file)->part(0, (*file)->size()));
    (*file)->see_transparent(transparent_mappings());
    CHECK(after.bytes(page_kind::transparent) == b.bytes(page_kind::transparent));
    CHECK(is_filled((*file)->data(), (*file)->size(), 4));
}

TEST_CASE("what a daemon takes over is not gone through before it is used", "[ckptd]") {
    auto made = file_of_ordinary("banyan-test", 8 * huge_page_bytes, false);
    REQUIRE(made);
    std::ranges::fill(std::span(made->map.data(), made->map.size()), std::byte{3});
    auto file = file_of(banyan::unique_fd(::fcntl(made->fd.get(), F_DUPFD_CLOEXEC, 0)));
    REQUIRE(file);
    const auto page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto mapped_pages = [&] {
        std::size_t out = 0;
        const banyan::unique_fd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
        const auto first = reinterpret_cast<std::uintptr_t>(file->map.data()) / page_size;
        std::vector<std::uint64_t> entries(file->map.size() / page_size);
        const auto bytes = entries.size() * sizeof entries[0];
        REQUIRE(::pread(pagemap.get(), entries.data(), bytes, static_cast<off_t>(first * 8)) ==
                static_cast<ssize_t>(bytes));
        for (const auto e : entries) out += e >> 63;
        return out;
    };
    CHECK(mapped_pages() == 0);
    CHECK(std::ranges::all_of(std::span(file->map.data(), file->map.size()),
                              [](auto b) { return b == std::byte{3}; }));
    CHECK(mapped_pages() == file->map.size() / page_size);
}

}  // namespace test_pages
