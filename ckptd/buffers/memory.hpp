// SPDX-License-Identifier: BSD-3-Clause
//
// The daemon's memory for shards: sealed memfds under one limit for the whole daemon, made ready (allocated
// and mapped) before anybody waits for them, and checksums over them. Blocking: from the daemon on its worker
// pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/buffers/guard.hpp"
#include "ckptd/buffers/joined.hpp"
#include "ckptd/buffers/pages.hpp"
#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/keeper/custody.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// How much memory the daemon may hold. Thread-safe.
class memory_budget {
  public:
    /// `keeper`: who holds the memory beside this process; null without one. `huge`: in huge pages, where
    /// there are.
    explicit memory_budget(std::uint64_t limit, std::shared_ptr<keeper::custody> keeper = nullptr,
                           bool huge = false)
        : pages(huge), limit_(limit), keeper_(std::move(keeper)) {}
    const std::shared_ptr<keeper::custody>& keeper() const { return keeper_; }
    std::uint64_t limit() const { return limit_; }
    std::uint64_t used() const { return used_; }
    /// Takes `bytes` or says with numbers why not.
    result<void> reserve(std::uint64_t bytes, const std::string& what);
    /// What is there already, whatever the limit says now.
    void count(std::uint64_t bytes) { used_ += bytes; }
    void release(std::uint64_t bytes) { used_ -= bytes; }
    /// Blocks that are on their way back to the kernel, still in used().
    std::atomic<std::uint32_t> leaving{0};
    std::atomic<std::uint32_t> leaving_reserved{0};  ///< of these, what is of reserved huge pages
    page_choice pages;

  private:
    const std::uint64_t limit_;
    const std::shared_ptr<keeper::custody> keeper_;
    std::atomic<std::uint64_t> used_{0};
};

struct memory_maker;

/// One memfd, mapped and populated, or several that are joined to one memory. A file's size is fixed by
/// seals: a rank that maps it cannot shrink it under us.
class shard_memory {
  public:
    /// Of pages that need no layout of their own: ordinary ones, transparent huge ones where there are.
    static result<std::shared_ptr<shard_memory>> make(std::shared_ptr<memory_budget> budget, std::string name,
                                                      std::uint64_t bytes);
    /// A header, if any, and buffers of at least `each` bytes, in the best pages that there are; in reserved
    /// huge ones only where that takes `most` bytes at most.
    static result<std::shared_ptr<shard_memory>> make(std::shared_ptr<memory_budget> budget, std::string name,
                                                      const joined_shape& shape, std::uint64_t each,
                                                      std::uint64_t most);
    /// What that may take.
    static std::uint64_t bytes_to_make(const memory_budget& budget, const joined_shape& shape,
                                       std::uint64_t each, std::uint64_t most);
    /// Of the daemon before this one. Counts against the budget, and is not refused.
    static result<std::shared_ptr<shard_memory>> adopt(std::shared_ptr<memory_budget> budget,
                                                       keeper::handed_over from);
    /// Each of the buffers of `from` with so many bytes more (whole units of it), which alone are allocated;
    /// what lies in `from` lies in both, and `from` stays as it is for whoever has it.
    static result<std::shared_ptr<shard_memory>> grow(const std::shared_ptr<shard_memory>& from,
                                                      const joined_shape& shape, std::string name,
                                                      std::uint64_t more);
    /// One memory of several.
    static result<std::shared_ptr<shard_memory>> join(std::vector<std::shared_ptr<shard_memory>> parts,
                                                      const joined_shape& shape);
    /// Frees the pages, also under a process that still holds the descriptor or maps it.
    ~shard_memory();
    shard_memory(const shard_memory&) = delete;
    shard_memory& operator=(const shard_memory&) = delete;

    const std::shared_ptr<memory_budget>& budget() const { return budget_; }
    int fd() const { return file_.fd.get(); }
    /// Says that a descriptor has left this process: from here on others can keep the file alive.
    void share() { shared_ = true; }
    bool shared() const { return shared_; }
    /// Its name at the keeper; 0 without one.
    std::uint64_t number() const { return number_; }
    /// From the header on.
    std::size_t size() const { return map_.size() - shape_.lead(); }
    /// Whether it is, in part at least, of reserved huge pages: a process has to map it in such.
    bool is_reserved() const;
    /// A page of it was missing: what is seen here are zeros, and nothing may be written (guard.hpp).
    bool is_holed() const;
    /// What each of its buffers has to be a multiple of.
    std::uint64_t unit() const { return is_reserved() ? huge_page_bytes : page_bytes; }
    /// Of the file of a daemon before this one: which of its pages are transparent.
    void see_transparent(const std::map<std::uintptr_t, std::uint64_t>& seen);
    /// Of which it is joined; empty where it is one file.
    const std::vector<std::shared_ptr<shard_memory>>& parts() const { return parts_; }
    const joined_shape& shape() const { return shape_; }  ///< where it is joined; what has a lead always is
    /// Whether one has grown out of the other: what is in a buffer of both lies in the same pages.
    bool shares_with(const shard_memory* other) const { return other && base() == other->base(); }
    std::byte* data() const { return map_.data() + shape_.lead(); }
    std::span<std::byte> part(std::size_t offset, std::size_t bytes) const {
        return {data() + offset, bytes};
    }

  private:
    shard_memory(std::shared_ptr<memory_budget> budget, memory_file file, std::uint64_t number);
    friend struct memory_maker;
    /// Reserved pages are nothing without: whoever shares them can end this process.
    bool is_guarded() const { return !is_reserved() || guard_; }
    const shard_memory* base() const { return parts_.empty() ? this : parts_.front().get(); }

    std::shared_ptr<memory_budget> budget_;
    memory_file file_;
    mapping map_;
    guarded guard_;
    const std::uint64_t number_;
    bool shared_ = false;
    std::vector<std::shared_ptr<shard_memory>> parts_;
    joined_shape shape_;
};

/// The files of a memory, itself where it is one.
std::vector<std::shared_ptr<shard_memory>> files_of(const std::shared_ptr<shard_memory>& memory);

/// CRC-32C of each chunk_bytes of `data`; the last may be shorter.
std::vector<std::uint32_t> chunk_checksums(std::span<const std::byte> data);
/// Copies `from` to `to`, which is as long, and returns the same of what has got there.
std::vector<std::uint32_t> copy_with_checksums(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace banyan::ckpt
