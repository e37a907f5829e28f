// SPDX-License-Identifier: BSD-3-Clause
//
// A text of any length in memory that a keeper holds, rewritten as a whole: a writer that is killed at any
// moment leaves the one before or the new one. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ckptd/keeper/custody.hpp"
#include "common/result.hpp"

namespace banyan::ckpt::keeper {

class ledger {
  public:
    explicit ledger(std::shared_ptr<custody> keeper) : keeper_(std::move(keeper)) {}
    /// One that was handed over.
    static result<std::unique_ptr<ledger>> adopt(std::shared_ptr<custody> keeper, handed_over from);
    ~ledger() { drop(); }
    ledger(const ledger&) = delete;

    /// The newest text that was written whole.
    result<std::vector<std::byte>> read() const;
    result<void> write(std::span<const std::byte> text);

  private:
    struct head {
        std::uint64_t sequence, bytes;
        std::uint32_t crc, magic;
    };
    std::size_t half() const { return map_.size() / 2; }
    head& head_of(std::size_t i) const { return *reinterpret_cast<head*>(map_.data() + i * half()); }
    std::span<std::byte> text_of(std::size_t i) const {
        return {map_.data() + i * half() + sizeof(head), half() - sizeof(head)};
    }
    bool is_whole(std::size_t i) const;
    result<void> make(std::size_t bytes);
    void drop();

    std::shared_ptr<custody> keeper_;
    mapping map_;
    std::uint64_t number_ = 0;
};

}  // namespace banyan::ckpt::keeper
