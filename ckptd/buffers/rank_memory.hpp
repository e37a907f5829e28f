// SPDX-License-Identifier: BSD-3-Clause
//
// What lies in the memory that a rank and its node's daemon share: one page of headers, then the buffers,
// each a whole number of pages. (Of huge pages that were reserved the header page is the last one of the
// first: so the buffers, whole huge pages then, begin one each.) A buffer is written under a sequence number
// (odd while writing); its nonce, derived from step, generation and sequence, is written last, so that a
// header of an older save never passes for this one. Each word has one writer: the daemon writes `released`
// and the words of rank_memory_header, but for warnings_read and rank_beat, which are the rank's. A rank may
// overwrite a buffer only when it was never sealed or when the daemon released exactly that sequence. Neither
// side trusts a length it reads here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "ckptd/protocol/local_protocol.hpp"

namespace banyan::ckpt {

/// The page's first word: "BANBUFF", and the protocol of the daemon that made it.
constexpr std::uint64_t rank_memory_magic(std::uint32_t protocol = local_protocol.newest) {
    return 0x464655424e4142 | std::uint64_t{protocol} << 56;
}
/// Whether this release understands the page.
constexpr bool is_rank_memory(std::uint64_t magic) {
    const auto protocol = static_cast<std::uint32_t>(magic >> 56);
    return magic == rank_memory_magic(protocol) && local_protocol.has(protocol);
}
/// The unit of the layout: the largest page that a kernel has, of those for ARM some 64 KiB.
#ifdef __aarch64__
constexpr std::size_t page_bytes = 64u << 10;
#else
constexpr std::size_t page_bytes = 4096;
#endif
constexpr std::size_t least_page_bytes = 4096;  ///< the smallest one; the unit of what is stored
constexpr std::size_t huge_page_bytes = 2u << 20;
constexpr std::size_t max_buffers = 8;

using shared_word = std::atomic<std::uint64_t>;
static_assert(shared_word::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

struct alignas(64) buffer_header {
    shared_word sequence;  ///< odd while being written, 0 = never written
    shared_word step;
    shared_word generation;  ///< of the writer
    shared_word bytes;       ///< of the shard image in the buffer
    shared_word nonce;       ///< written last
    shared_word released;    ///< by the daemon: the sequence that may be overwritten
};

struct rank_memory_header {
    std::uint64_t magic;  ///< rank_memory_magic()
    std::uint32_t buffers;
    std::uint32_t rank;
    std::uint64_t buffer_bytes;
    std::uint64_t job;
    shared_word memory_step;      ///< newest step complete in memory on all ranks, plus 1
    shared_word replicated_step;  ///< the same with a second copy of every shard, plus 1
    shared_word durable_step;     ///< newest step committed in storage, plus 1
    std::atomic<std::uint32_t>
        event;  ///< futex: grows whenever a word above or a buffer's `released` changes
    std::atomic<std::uint32_t> warning_count;
    std::array<char, 512> warning;  ///< the newest warning, NUL-terminated
    std::array<buffer_header, max_buffers> buffer;
    /// Not 0: the steps in the buffers wait for other nodes, and will for long. Whoever finds none free need
    /// not wait for one.
    std::atomic<std::uint32_t> stalled;
    /// The generation in which the ranks train. A process that was given its state in an older one has to ask
    /// for it again: what it saves counts no more.
    shared_word round;
    /// By the rank: the warning_count up to which it has read. The next warning waits for it.
    std::atomic<std::uint32_t> warnings_read;
    /// Grows with every tick of the daemon; 0: of one that does not count them.
    shared_word beat;
    shared_word seals_wanted;  ///< how often somebody has asked that the ranks save
    /// By the rank alone, in lines of its own.
    struct alignas(64) heartbeat {
        shared_word at_ns;  ///< of the machine's steady clock; 0: the rank has not said anything
        shared_word step;
        std::atomic<std::uint32_t> phase;
        /// How long it has stood at one step and phase so far, by the phase's number modulo theirs. The
        /// first time does not count as long: it compiles and warms up.
        struct stay {
            shared_word longest_ns;
            shared_word count;
        };
        std::array<stay, 16> stays;
        stay& stay_in(std::uint32_t of) { return stays[of % stays.size()]; }
        const stay& stay_in(std::uint32_t of) const { return stays[of % stays.size()]; }
    } rank_beat;
};
static_assert(sizeof(rank_memory_header) <= page_bytes);

/// In place of a phase, for a rank that says nothing but by its saves.
constexpr std::uint32_t phase_of_saves = UINT32_MAX;

/// By the rank.
inline void write_beat(rank_memory_header::heartbeat& beat, std::uint64_t step, std::uint32_t phase,
                       std::uint64_t now_ns) {
    if (const auto since = beat.at_ns.load(std::memory_order_relaxed); since != 0) {
        auto& stay = beat.stay_in(beat.phase.load(std::memory_order_relaxed));
        const auto count = stay.count.load(std::memory_order_relaxed);
        if (count != 0 && now_ns - since > stay.longest_ns.load(std::memory_order_relaxed))
            stay.longest_ns.store(now_ns - since, std::memory_order_relaxed);
        stay.count.store(count + 1, std::memory_order_relaxed);
    }
    beat.step.store(step, std::memory_order_relaxed);
    beat.phase.store(phase, std::memory_order_relaxed);
    beat.at_ns.store(now_ns, std::memory_order_release);
}

/// By a process that has just attached: what one before it has said is not its own.
inline void forget_beats(rank_memory_header::heartbeat& beat) {
    beat.at_ns.store(0, std::memory_order_release);
    for (auto& stay : beat.stays) {
        stay.longest_ns.store(0, std::memory_order_relaxed);
        stay.count.store(0, std::memory_order_relaxed);
    }
}

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}
constexpr std::size_t round_to_page(std::size_t bytes) { return round_up(bytes, page_bytes); }
constexpr std::size_t rank_memory_bytes(std::size_t buffers, std::size_t buffer_bytes) {
    return page_bytes + buffers * buffer_bytes;
}
constexpr std::size_t buffer_offset(std::size_t buffer, std::size_t buffer_bytes) {
    return page_bytes + buffer * buffer_bytes;
}

/// Ties a header's fields to each other (splitmix64's finalizer over their mix).
constexpr std::uint64_t buffer_nonce(std::uint64_t sequence, std::uint64_t step, std::uint64_t generation,
                                     std::uint64_t bytes) {
    std::uint64_t z =
        sequence * 0x9e3779b97f4a7c15 ^ step * 0xbf58476d1ce4e5b9 ^ generation * 0x94d049bb133111eb ^ bytes;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

struct buffer_view {
    std::uint64_t sequence = 0, step = 0, generation = 0, bytes = 0;
    bool operator==(const buffer_view&) const = default;
};

/// The buffer's header when it is sealed and whole; nothing while it is written, torn or empty.
inline std::optional<buffer_view> read_buffer(const buffer_header& h) {
    buffer_view v;
    v.sequence = h.sequence.load(std::memory_order_acquire);
    v.step = h.step.load(std::memory_order_relaxed);
    v.generation = h.generation.load(std::memory_order_relaxed);
    v.bytes = h.bytes.load(std::memory_order_relaxed);
    const auto nonce = h.nonce.load(std::memory_order_acquire);
    if (v.sequence == 0 || v.sequence % 2 != 0 || h.sequence.load(std::memory_order_acquire) != v.sequence)
        return std::nullopt;
    if (nonce != buffer_nonce(v.sequence, v.step, v.generation, v.bytes)) return std::nullopt;
    return v;
}

/// Whether a rank may write into the buffer.
inline bool buffer_is_free(const buffer_header& h) {
    const auto sequence = h.sequence.load(std::memory_order_acquire);
    return sequence % 2 != 0 || sequence == 0 || h.released.load(std::memory_order_acquire) == sequence;
}

inline void begin_write(buffer_header& h) {
    h.sequence.store(h.sequence.load(std::memory_order_relaxed) / 2 * 2 + 1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Seals the buffer and returns its sequence. A torn predecessor's number is never used again.
inline std::uint64_t end_write(buffer_header& h, std::uint64_t step, std::uint64_t generation,
                               std::uint64_t bytes) {
    const auto sequence = h.sequence.load(std::memory_order_relaxed) + 1;
    h.step.store(step, std::memory_order_relaxed);
    h.generation.store(generation, std::memory_order_relaxed);
    h.bytes.store(bytes, std::memory_order_relaxed);
    h.sequence.store(sequence, std::memory_order_release);
    h.nonce.store(buffer_nonce(sequence, step, generation, bytes), std::memory_order_release);
    return sequence;
}

/// For the daemon: takes a free buffer for itself. It is neither free nor sealed until end_fill().
inline void begin_fill(buffer_header& h) {
    h.nonce.store(0, std::memory_order_release);
    h.sequence.store((h.sequence.load(std::memory_order_relaxed) / 2 + 1) * 2, std::memory_order_seq_cst);
}

/// Seals what the daemon has put there and returns its sequence.
inline std::uint64_t end_fill(buffer_header& h, std::uint64_t step, std::uint64_t generation,
                              std::uint64_t bytes) {
    const auto sequence = h.sequence.load(std::memory_order_relaxed);
    h.step.store(step, std::memory_order_relaxed);
    h.generation.store(generation, std::memory_order_relaxed);
    h.bytes.store(bytes, std::memory_order_relaxed);
    h.nonce.store(buffer_nonce(sequence, step, generation, bytes), std::memory_order_release);
    return sequence;
}

}  // namespace banyan::ckpt
