// SPDX-License-Identifier: BSD-3-Clause
//
// The pages that memory for shards is made of: huge ones that the site has reserved (hugetlb), huge ones that
// the kernel puts together (transparent), ordinary ones. docs/decisions/020 says when which.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "ckptd/buffers/joined.hpp"
#include "ckptd/buffers/rank_memory.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

enum class page_kind : std::uint8_t { reserved, transparent, ordinary };
constexpr std::array<std::string_view, 3> page_kind_names{"reserved", "transparent", "ordinary"};
using bytes_by_kind = std::array<std::uint64_t, page_kind_names.size()>;

/// Which huge pages are asked for, what of them came, and what is told of that. Thread-safe.
class page_choice {
  public:
    /// `huge`: they are asked for at all.
    explicit page_choice(bool huge) : huge_(huge) {}
    bool huge() const { return huge_; }
    /// Hears of each cause once. To be set before memory is made.
    std::function<void(const std::string&)> say;
    void tell(const std::string& cause, const std::string& text);

    void add(const bytes_by_kind& bytes);
    void remove(const bytes_by_kind& bytes);
    std::uint64_t bytes(page_kind kind) const { return bytes_[static_cast<std::size_t>(kind)]; }

  private:
    const bool huge_;
    std::array<std::atomic<std::uint64_t>, page_kind_names.size()> bytes_{};
    std::mutex lock_;
    std::set<std::string> told_;
};

/// Why memory is not in huge pages of a kind: what may be told once, and this time's numbers.
struct no_such_pages {
    std::string cause, numbers;
};

/// A file of memory: allocated, its size sealed, mapped.
struct memory_file {
    unique_fd fd;
    mapping map;
    bytes_by_kind pages{};
    /// Which of the pages that are ordinary for all that is known are transparent ones.
    void see_transparent(std::uint64_t bytes);
};

/// `bytes`: whole huge pages. They are reserved before any is touched, so that it is all or nothing; nothing
/// leaves the pool where there are too few.
std::expected<memory_file, no_such_pages> file_of_reserved(const std::string& name, std::uint64_t bytes);
/// Of ordinary pages; with `transparent` the kernel is asked for huge ones first.
result<memory_file> file_of_ordinary(const std::string& name, std::uint64_t bytes, bool transparent);
/// Maps a file that was made by another process. Its pages come into the mapping when they are used.
result<memory_file> file_of(unique_fd fd);
/// A piece at a time: other threads can map and unmap meanwhile.
void unmap(mapping memory);

/// Whether the kernel gives shared memory huge pages where it is asked to.
std::expected<void, no_such_pages> transparent_pages();
/// Brings those of a memory that is there into its mapping; of other pages one in so many comes with them.
void map_huge_pages(std::span<std::byte> memory);
/// What lies in such and was used, of each mapping of this process by its address. For that the kernel goes
/// through all their pages.
std::map<std::uintptr_t, std::uint64_t> transparent_mappings();
/// The same of the mapping that begins there, and it goes no further.
std::uint64_t transparent_in_mapping(const void* at);
/// Pages that the pool of reserved ones has, and may add. Nothing: it could not be seen.
std::optional<std::uint64_t> pages_of_pool();

/// How memory of `plain`, with `each` bytes in every buffer, lies in reserved pages: each buffer begins one.
/// The header is the last ordinary page of the first one.
joined_shape reserved_shape(const joined_shape& plain);
std::uint64_t bytes_of(const joined_shape& shape, std::uint64_t each);
/// Rounding up costs a few percent at most.
bool is_worth_reserved(const joined_shape& plain, std::uint64_t each);

}  // namespace banyan::ckpt
