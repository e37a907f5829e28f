// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/keeper/ledger.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>

#include "common/crc32c.hpp"

namespace banyan::ckpt::keeper {
namespace {

constexpr std::uint32_t magic = 0x4c4e5942;  // "BYNL"
constexpr std::size_t least = 64 * 1024;

}  // namespace

bool ledger::is_whole(std::size_t i) const {
    if (!map_) return false;
    const auto& h = head_of(i);
    return h.magic == magic && h.bytes <= text_of(i).size() && crc32c(text_of(i).first(h.bytes)) == h.crc;
}

result<std::unique_ptr<ledger>> ledger::adopt(std::shared_ptr<custody> keeper, handed_over from) {
    auto out = std::make_unique<ledger>(std::move(keeper));
    out->number_ = from.number;
    struct stat st {};
    if (::fstat(from.fd.get(), &st) != 0 || static_cast<std::size_t>(st.st_size) < least)
        return fail(errc::invalid_input, "what was kept of a session is cut off");
    const auto bytes = static_cast<std::size_t>(st.st_size);
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, from.fd.get(), 0);
    if (at == MAP_FAILED) return fail_errno("cannot map what was kept of a session", errno);
    out->map_ = mapping(at, bytes);
    return out;
}

result<std::vector<std::byte>> ledger::read() const {
    const bool first = is_whole(0), second = is_whole(1);
    if (!first && !second) return fail(errc::invalid_input, "what was kept of a session is damaged");
    const std::size_t i = !first || (second && head_of(1).sequence > head_of(0).sequence) ? 1 : 0;
    const auto text = text_of(i).first(head_of(i).bytes);
    return std::vector(text.begin(), text.end());
}

result<void> ledger::make(std::size_t bytes) {
    unique_fd fd(::memfd_create("banyan-ledger", MFD_CLOEXEC));
    if (!fd || ::fchmod(fd.get(), 0600) != 0 || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
        return fail_errno("cannot make memory to remember a session", errno);
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
    if (at == MAP_FAILED) return fail_errno("cannot map memory to remember a session", errno);
    map_ = mapping(at, bytes);
    number_ = keeper_->hold(contents::ledger, fd.get());
    return {};
}

void ledger::drop() {
    if (map_) keeper_->drop(number_);
}

result<void> ledger::write(std::span<const std::byte> text) {
    if (!map_ || text.size() + sizeof(head) > half()) {
        ledger larger(keeper_);
        BANYAN_CHECK(larger.make(std::max(least, std::bit_ceil((text.size() + sizeof(head)) * 4))));
        // The new one is complete before the old one goes; between the two, whoever takes over has both.
        std::swap(map_, larger.map_);
        std::swap(number_, larger.number_);
        return write(text);
    }
    // Over the older one; over the one that is not whole where a writer was killed, whatever that one says.
    const bool second = is_whole(0) && (!is_whole(1) || head_of(0).sequence > head_of(1).sequence);
    const std::size_t i = second ? 1 : 0;
    auto& h = head_of(i);
    const auto sequence = head_of(1 - i).sequence + 1;
    h.magic = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(text_of(i).data(), text.data(), text.size());
    h.sequence = sequence;
    h.bytes = text.size();
    h.crc = crc32c(text);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    h.magic = magic;
    return {};
}

}  // namespace banyan::ckpt::keeper
