// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include "common/clock.hpp"
#include "common/crc32c.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr auto leave_timeout = std::chrono::seconds(10);  // of memory that is on its way back
constexpr auto leave_timeout_of_pages =
    std::chrono::seconds(1);  // of huge ones, without which it works as well
constexpr auto look_again = std::chrono::milliseconds(5);

// What the kernel could give without swapping; 0 when it does not say.
std::uint64_t memory_available() {
    const auto text = read_file("/proc/meminfo", 64 * 1024);
    if (!text) return 0;
    const auto at = text->find("MemAvailable:");
    if (at == std::string::npos) return 0;
    const auto line = trim(std::string_view(*text).substr(at + 13, text->find('\n', at) - at - 13));
    const auto kib = parse_number(line.substr(0, line.find(' ')));
    return kib ? *kib * 1024 : 0;
}

no_such_pages no_guard() {
    return {"what lies in them already is as much as can be guarded",
            fmt::format(": {} ranges", guarded::most)};
}

// The last owner is often the daemon's one thread, and to give gigabytes back takes the kernel a while. What
// others hold as a file it may take for ever: whoever writes there has the inode locked, and a write can wait
// for pages of his that never come.
void let_go(shard_memory* memory) {
    constexpr std::size_t at_once = 64u << 20;
    if (memory->shared() || memory->size() > at_once) {
        const std::uint32_t reserved = memory->is_reserved() ? 1 : 0;
        const auto budget = memory->budget();
        ++budget->leaving;
        budget->leaving_reserved += reserved;
        try {
            std::thread([memory, budget, reserved] {
                delete memory;
                budget->leaving_reserved -= reserved;
                --budget->leaving;
            }).detach();
            return;
        } catch (const std::system_error&) {
            budget->leaving_reserved -= reserved;  // no thread: then here
            --budget->leaving;
        }
    }
    delete memory;
}

// What is leaving makes room in a moment, unless somebody keeps it from leaving.
result<void> reserve(memory_budget& budget, const std::string& name, std::uint64_t bytes) {
    const auto until = clock::now() + leave_timeout;
    for (;;) {
        const bool more_soon = budget.leaving != 0 && clock::now() < until;
        auto reserved = budget.reserve(bytes, name);
        if (reserved || !more_soon) return reserved;
        clock::sleep_for(look_again);
    }
}

// One with a header has it at the end of the first page, and so is mapped once more.
result<std::shared_ptr<shard_memory>> laid_out(std::shared_ptr<shard_memory> file,
                                               const joined_shape& shape) {
    if (shape.header == 0) return file;
    return shard_memory::join({std::move(file)}, shape);
}

}  // namespace

result<void> memory_budget::reserve(std::uint64_t bytes, const std::string& what) {
    auto used = used_.load();
    do {
        if (bytes > limit_ || used > limit_ - bytes)
            return fail(errc::exhausted,
                        fmt::format("{} needs {}, but {} of the daemon's {} are in use", what,
                                    format_bytes(bytes), format_bytes(used), format_bytes(limit_)),
                        "raise memory_limit in [ckptd] of banyan.conf");
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return {};
}

shard_memory::shard_memory(std::shared_ptr<memory_budget> budget, memory_file file, std::uint64_t number)
    : budget_(std::move(budget)), file_(std::move(file)), map_(std::move(file_.map)), number_(number) {
    budget_->pages.add(file_.pages);
}

/// How the file of one memory comes to be.
struct memory_maker {
    using made = std::shared_ptr<shard_memory>;
    static made of_file(std::shared_ptr<memory_budget> budget, memory_file file);
    /// Whole reserved pages.
    static std::expected<made, no_such_pages> reserved(const std::shared_ptr<memory_budget>& budget,
                                                       const std::string& name, std::uint64_t bytes);
    static result<made> ordinary(std::shared_ptr<memory_budget> budget, const std::string& name,
                                 std::uint64_t bytes, const no_such_pages& unreserved);
};

std::shared_ptr<shard_memory> memory_maker::of_file(std::shared_ptr<memory_budget> budget, memory_file file) {
    const auto number =
        budget->keeper() ? budget->keeper()->hold(keeper::contents::shards, file.fd.get()) : 0;
    auto out =
        std::shared_ptr<shard_memory>(new shard_memory(std::move(budget), std::move(file), number), let_go);
    if (out->is_reserved()) out->guard_ = guarded(out->map_.data(), out->map_.size());
    return out;
}

std::expected<std::shared_ptr<shard_memory>, no_such_pages> memory_maker::reserved(
    const std::shared_ptr<memory_budget>& budget, const std::string& name, std::uint64_t bytes) {
    // As above: pages that are leaving are in the pool in a moment. One that is too small gives nothing then.
    const auto pool = pages_of_pool();
    const bool may_come = !pool || *pool >= bytes / huge_page_bytes;
    const auto until = clock::now() + leave_timeout_of_pages;
    for (;;) {
        const bool more_soon = may_come && budget->leaving_reserved != 0 && clock::now() < until;
        no_such_pages why{"rounded up to whole ones it would be more than memory_limit", ""};
        if (budget->reserve(bytes, name)) {
            if (auto file = file_of_reserved(name, bytes)) {
                auto made = of_file(budget, std::move(*file));
                if (made->is_guarded()) return made;
                return std::unexpected(no_guard());
            } else {
                why = std::move(file).error();
            }
            budget->release(bytes);
        }
        if (!more_soon) return std::unexpected(std::move(why));
        clock::sleep_for(look_again);
    }
}

result<std::shared_ptr<shard_memory>> memory_maker::ordinary(std::shared_ptr<memory_budget> budget,
                                                             const std::string& name, std::uint64_t bytes,
                                                             const no_such_pages& unreserved) {
    BANYAN_CHECK(reserve(*budget, name, bytes));
    const auto give_up = [&](std::unexpected<error> e) {
        budget->release(bytes);
        return e;
    };
    const auto available = memory_available();
    if (available != 0 && bytes > available)
        return give_up(fail(errc::exhausted, fmt::format("{} needs {}, but the node has {} left", name,
                                                         format_bytes(bytes), format_bytes(available))));
    auto& pages = budget->pages;
    const bool large = pages.huge() && bytes >= huge_page_bytes;
    std::expected<void, no_such_pages> transparent;
    if (large) transparent = transparent_pages();
    auto file = file_of_ordinary(name, bytes, large && transparent);
    if (!file) return give_up(std::unexpected(std::move(file).error()));
    const auto huge = file->pages[static_cast<std::size_t>(page_kind::transparent)];
    if (large && transparent)
        pages.tell(
            fmt::format("transparent, {}, {}", huge != 0, unreserved.cause),
            fmt::format("{}: {} of {} lie in transparent huge pages, and none in reserved ones: {}{}", name,
                        format_bytes(huge), format_bytes(bytes), unreserved.cause, unreserved.numbers));
    else if (large)
        pages.tell(
            fmt::format("ordinary, {}, {}", transparent.error().cause, unreserved.cause),
            fmt::format("{}: its {} lie in ordinary pages. No reserved huge ones: {}{}. No transparent "
                        "ones: {}",
                        name, format_bytes(bytes), unreserved.cause, unreserved.numbers,
                        transparent.error().cause));
    return of_file(std::move(budget), std::move(*file));
}

result<std::shared_ptr<shard_memory>> shard_memory::make(std::shared_ptr<memory_budget> budget,
                                                         std::string name, std::uint64_t bytes) {
    return memory_maker::ordinary(std::move(budget), name, bytes, {"its layout cannot have them", ""});
}

std::uint64_t shard_memory::bytes_to_make(const memory_budget& budget, const joined_shape& shape,
                                          std::uint64_t each, std::uint64_t most) {
    const auto ordinary = bytes_of(shape, round_to_page(each));
    const auto huge = bytes_of(reserved_shape(shape), round_up(each, huge_page_bytes));
    return budget.pages.huge() && is_worth_reserved(shape, each) && huge <= most ? huge : ordinary;
}

result<std::shared_ptr<shard_memory>> shard_memory::make(std::shared_ptr<memory_budget> budget,
                                                         std::string name, const joined_shape& shape,
                                                         std::uint64_t each, std::uint64_t most) {
    const auto ordinary = bytes_of(shape, round_to_page(each));
    if (!budget->pages.huge()) return make(std::move(budget), std::move(name), ordinary);
    const auto in_huge = reserved_shape(shape);
    const auto huge = bytes_of(in_huge, round_up(each, huge_page_bytes));
    no_such_pages why;
    if (most == 0)
        why = {"the process has a library that cannot map them", ""};
    else if (!is_worth_reserved(shape, each))
        why = {"rounded up to whole ones it would be too much larger", ": " + format_bytes(huge)};
    else if (huge > most)
        why = {"rounded up to whole ones it would be more than the job may have", ""};
    else if (auto made = memory_maker::reserved(budget, name, huge); !made)
        why = std::move(made).error();
    else if (auto whole = laid_out(std::move(*made), in_huge); !whole)
        why = {"they cannot be mapped", ": " + whole.error().text()};
    else {
        budget->pages.tell("reserved",
                           fmt::format("{}: its {} lie in reserved huge pages", name, format_bytes(huge)));
        return whole;
    }
    return memory_maker::ordinary(std::move(budget), name, ordinary, why);
}

result<std::shared_ptr<shard_memory>> shard_memory::adopt(std::shared_ptr<memory_budget> budget,
                                                          keeper::handed_over from) {
    auto file = file_of(std::move(from.fd));
    if (!file) {  // nobody else would let go of it
        if (budget->keeper()) budget->keeper()->drop(from.number);
        return std::unexpected(std::move(file).error());
    }
    budget->count(file->map.size());
    auto out = std::shared_ptr<shard_memory>(
        new shard_memory(std::move(budget), std::move(*file), from.number), let_go);
    if (out->is_reserved()) out->guard_ = guarded(out->map_.data(), out->map_.size());
    out->share();  // perhaps: a rank's process may have it
    if (!out->is_guarded()) return fail(errc::exhausted, no_guard().cause);
    return out;
}

bool shard_memory::is_reserved() const {
    if (parts_.empty()) return file_.pages[static_cast<std::size_t>(page_kind::reserved)] != 0;
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->is_reserved(); });
}

bool shard_memory::is_holed() const {
    return guard_.holed() ||
           std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->is_holed(); });
}

void shard_memory::see_transparent(const std::map<std::uintptr_t, std::uint64_t>& seen) {
    const auto found = seen.find(reinterpret_cast<std::uintptr_t>(map_.data()));
    if (found == seen.end()) return;
    budget_->pages.remove(file_.pages);
    file_.see_transparent(found->second);
    budget_->pages.add(file_.pages);
}

result<std::shared_ptr<shard_memory>> shard_memory::grow(const std::shared_ptr<shard_memory>& from,
                                                         const joined_shape& shape, std::string name,
                                                         std::uint64_t more) {
    auto parts = files_of(from);
    const auto bytes = shape.buffers * more;
    const joined_shape whole{from->shape_.lead() + shape.header, shape.buffers};
    // What lies in reserved pages may go on in others; in a layout of ordinary pages reserved ones have no
    // place.
    if (from->is_reserved()) {
        if (auto added = memory_maker::reserved(from->budget_, name, bytes)) {
            parts.push_back(std::move(*added));
        } else {
            BANYAN_TRY(auto other, memory_maker::ordinary(from->budget_, name, bytes, added.error()));
            parts.push_back(std::move(other));
        }
    } else {
        BANYAN_TRY(auto added, make(from->budget_, std::move(name), bytes));
        parts.push_back(std::move(added));
    }
    return join(std::move(parts), whole);
}

// The pages are there: this process looks at them off the ranks' way, so nothing is populated.
result<std::shared_ptr<shard_memory>> shard_memory::join(std::vector<std::shared_ptr<shard_memory>> parts,
                                                         const joined_shape& shape) {
    const auto wrong =
        fail(errc::invalid_input, "memory that is no whole number of buffers cannot be joined");
    if (parts.empty() || parts.size() > max_parts || shape.buffers == 0) return wrong;
    std::vector<std::uint64_t> each;
    const bool reserved =
        std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p && p->is_reserved(); });
    const auto unit = reserved ? huge_page_bytes : page_bytes;
    for (const auto& p : parts) {
        const auto before = each.empty() ? shape.header : 0;
        if (!p || !p->parts_.empty() || before % unit != 0 || p->size() <= before ||
            (p->size() - before) % (shape.buffers * unit) != 0)
            return wrong;
        each.push_back((p->size() - before) / shape.buffers);
    }
    BANYAN_TRY(auto whole, joined_space(shape, each));
    for (const auto& piece : joined_pieces(shape, each)) {
        void* at = ::mmap(whole.data() + piece.to, piece.bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, parts[piece.part]->fd(), static_cast<off_t>(piece.from));
        if (at == MAP_FAILED) return fail_errno("cannot map memory that has grown", errno);
    }
    const auto budget = parts.front()->budget_;
    const auto number = parts.front()->number_;
    memory_file mapped;
    mapped.map = std::move(whole);
    auto out = std::shared_ptr<shard_memory>(new shard_memory(budget, std::move(mapped), number), let_go);
    out->parts_ = std::move(parts);
    out->shape_ = shape;
    if (reserved) out->guard_ = guarded(out->map_.data(), out->map_.size());
    if (!out->is_guarded()) return fail(errc::exhausted, no_guard().cause);
    return out;
}

std::vector<std::shared_ptr<shard_memory>> files_of(const std::shared_ptr<shard_memory>& memory) {
    return memory->parts().empty() ? std::vector{memory} : memory->parts();
}

// A client may keep its descriptor, a mapping, or pass either on: nothing tells us. So the pages go, not only
// our hold on them; what a holder writes there later are pages of its own cgroup. F_SEAL_SEAL keeps a client
// from forbidding it with a seal.
shard_memory::~shard_memory() {
    if (!parts_.empty()) {  // each of them frees its own, which it cannot as long as it is mapped here
        guard_ = guarded();
        unmap(std::move(map_));
        return;
    }
    const auto bytes = size();
    budget_->pages.remove(file_.pages);
    if (budget_->keeper()) budget_->keeper()->drop(number_);
    if (shared_) ::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
    guard_ = guarded();
    unmap(std::move(map_));
    file_.fd.reset();
    budget_->release(bytes);
}

std::vector<std::uint32_t> chunk_checksums(std::span<const std::byte> data) {
    std::vector<std::uint32_t> out;
    out.reserve(chunk_count(data.size()));
    for (std::size_t at = 0; at < data.size(); at += chunk_bytes)
        out.push_back(crc32c(data.subspan(at, std::min(chunk_bytes, data.size() - at))));
    return out;
}

std::vector<std::uint32_t> copy_with_checksums(std::span<std::byte> to, std::span<const std::byte> from) {
    constexpr std::size_t at_once = 16 * 1024;  // is summed up while it is in the cache
    std::vector<std::uint32_t> out(chunk_count(from.size()));
    for (std::size_t at = 0; at < from.size(); at += at_once) {
        const auto part = to.subspan(at, std::min(at_once, from.size() - at));
        std::memcpy(part.data(), from.data() + at, part.size());
        auto& sum = out[at / chunk_bytes];
        sum = crc32c(part, sum);
    }
    return out;
}

}  // namespace banyan::ckpt
