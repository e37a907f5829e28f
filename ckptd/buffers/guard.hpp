// SPDX-License-Identifier: BSD-3-Clause
//
// A rank can punch holes into the memory that it shares with the daemon, and its user can take the huge pages
// that come free: then the daemon's next look there is a SIGBUS. Where that is guarded the daemon sees zeros
// instead, in all of the memory from then on, and a mark: a sum that was made meanwhile may be one of zeros.
// What the rank sees is its own affair.
#pragma once

#include <cstddef>
#include <cstdint>

namespace banyan::ckpt {

/// From here on a page that is missing in a guarded range is none of SIGBUS. Any other SIGBUS ends the
/// process as before.
void guard_from_missing_pages();

/// A range of huge pages, for as long as this object lives. To be gone before the range is.
class guarded {
  public:
    static constexpr std::size_t most = 16384;
    guarded() = default;
    /// Not guarded where `most` are.
    guarded(const void* at, std::size_t bytes);
    guarded(guarded&& o) noexcept;
    guarded& operator=(guarded&& o) noexcept;
    ~guarded();
    explicit operator bool() const { return slot_ >= 0; }
    /// A page was missing there: it holds zeros of this process alone, in no budget. What was read before
    /// this was seen to be false is what lies in the pages.
    bool holed() const;

  private:
    int slot_ = -1;
};

}  // namespace banyan::ckpt
