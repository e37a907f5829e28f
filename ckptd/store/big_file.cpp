// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/big_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/store/background.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t at_once = 3;  // chunks: one is written, one is looked at, one waits for the device

}  // namespace

result<big_file> big_file::create(int folder, const std::string& name, std::span<const std::byte> memory,
                                  const share_modes& modes, const std::string& shown) {
    ::unlinkat(folder, name.c_str(), 0);  // what a killed predecessor left
    if (reinterpret_cast<std::uintptr_t>(memory.data()) % least_page_bytes == 0) {
        if (auto fd = create_file(folder, name, O_WRONLY | O_DIRECT, modes, shown))
            return big_file(std::move(*fd), memory, true, shown);
        ::unlinkat(folder, name.c_str(), 0);  // some file systems create the file before they refuse the flag
    }
    BANYAN_TRY(auto fd, create_file(folder, name, O_WRONLY, modes, shown));
    return big_file(std::move(fd), memory, false, shown);
}

// Through the page cache from here on; the fsync at the end covers it. The flag is the open file's: threads
// that write meanwhile write through the cache, too.
result<void> big_file::leave_direct() {
    if (::fcntl(fd_.get(), F_SETFL, 0) == 0) return {};
    return fail_errno(fmt::format("cannot write {}", shown_), errno);
}

result<void> big_file::put(std::span<const std::byte> data, std::uint64_t at) {
    bool again = direct_;
    while (!data.empty()) {
        const auto n = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        // A device whose sectors are larger than a page, or a short write that ended beside one.
        if (n < 0 && errno == EINVAL && std::exchange(again, false)) {
            BANYAN_CHECK(leave_direct());
            continue;
        }
        if (n <= 0) return fail_errno(fmt::format("cannot write {}", shown_), n < 0 ? errno : ENOSPC);
        data = data.subspan(static_cast<std::size_t>(n));
        at += static_cast<std::uint64_t>(n);
    }
    return {};
}

result<void> big_file::write_chunk(std::size_t chunk) {
    const auto at = chunk * chunk_bytes;
    auto data = memory_.subspan(at, std::min(chunk_bytes, memory_.size() - at));
    if (direct_) data = data.first(data.size() / least_page_bytes * least_page_bytes);
    return put(data, at);
}

// What is left of the last page.
result<void> big_file::write_end() {
    const auto rest = memory_.size() % least_page_bytes;
    BANYAN_CHECK(leave_direct());
    return put(memory_.last(rest), memory_.size() - rest);
}

result<void> big_file::write(const look& each) {
    const auto chunks = chunk_count(memory_.size());
    // Of a direct write the device reads the memory itself: only afterwards a look says what it has read.
    const auto look_at = [&](std::size_t i) {
        const auto at = i * chunk_bytes;
        return each(i, memory_.subspan(at, std::min(chunk_bytes, memory_.size() - at)));
    };
    const bool has_end = direct_ && memory_.size() % least_page_bytes != 0;
    std::atomic<std::size_t> next{0};
    std::mutex lock;
    result<void> whole;
    const auto take_turns = [&] {
        for (auto i = next++; i < chunks; i = next++) {
            auto done = write_chunk(i);
            if (done && !(has_end && i + 1 == chunks)) done = look_at(i);
            if (done) continue;
            next = chunks;
            const std::scoped_lock held(lock);
            if (whole) whole = std::move(done);
        }
    };
    std::vector<std::jthread> threads;
    try {
        // They have this thread's identity, and no right to take another.
        while (threads.size() < std::min(at_once, chunks))
            threads.emplace_back([&] {
                lower_priority();
                take_turns();
            });
    } catch (const std::system_error&) {
        // It takes longer with fewer threads.
    }
    if (threads.empty()) take_turns();
    threads.clear();
    if (whole && has_end) whole = write_end();
    if (whole && has_end) whole = look_at(chunks - 1);
    if (whole && ::fsync(fd_.get()) != 0) whole = fail_errno(fmt::format("cannot sync {}", shown_), errno);
    return whole;
}

}  // namespace banyan::ckpt
