// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/buffers/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/crc32c.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr auto leave_timeout = std::chrono::seconds(10);  // of memory that is on its way back

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

// The last owner is often the daemon's one thread, and to give gigabytes back takes the kernel a while. What
// others hold as a file it may take for ever: whoever writes there has the inode locked, and a write can wait
// for pages of his that never come.
void let_go(shard_memory* memory) {
    constexpr std::size_t at_once = 64u << 20;
    if (memory->shared() || memory->size() > at_once) {
        ++memory->budget()->leaving;
        try {
            std::thread([memory, budget = memory->budget()] {
                delete memory;
                --budget->leaving;
            }).detach();
            return;
        } catch (const std::system_error&) {
            --memory->budget()->leaving;  // no thread: then here
        }
    }
    delete memory;
}

}  // namespace

result<void> memory_budget::reserve(std::uint64_t bytes, const std::string& what) {
    auto used = used_.load();
    do {
        if (bytes > limit_ || used > limit_ - bytes)
            return fail(errc::exhausted,
                        fmt::format("{} needs {}, but {} of the daemon's {} are in use", what,
                                    format_bytes(bytes), format_bytes(used), format_bytes(limit_)),
                        "raise memory_limit in [ckptd] of banyan.conf, or use fewer buffers");
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return {};
}

result<std::shared_ptr<shard_memory>> shard_memory::make(std::shared_ptr<memory_budget> budget,
                                                         std::string name, std::uint64_t bytes) {
    // What is leaving makes room in a moment, unless somebody keeps it from leaving.
    const auto until = std::chrono::steady_clock::now() + leave_timeout;
    for (;;) {
        const bool more_soon = budget->leaving != 0 && std::chrono::steady_clock::now() < until;
        auto reserved = budget->reserve(bytes, name);
        if (reserved) break;
        if (!more_soon) return std::unexpected(std::move(reserved).error());
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const auto give_up = [&](std::unexpected<error> e) {
        budget->release(bytes);
        return e;
    };
    const auto available = memory_available();
    if (available != 0 && bytes > available)
        return give_up(fail(errc::exhausted, fmt::format("{} needs {}, but the node has {} left", name,
                                                         format_bytes(bytes), format_bytes(available))));
    unique_fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) return give_up(fail_errno(fmt::format("cannot make {}", name), errno));
    // Its mode is 0777 by default: whoever gets at /proc/PID/fd could open it.
    if (::fchmod(fd.get(), 0600) != 0)
        return give_up(fail_errno(fmt::format("cannot close {} to others", name), errno));
    // Allocated before it is mapped: a full node is an error here, not a SIGBUS later.
    if (const int e = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); e != 0)
        return give_up(fail_errno(fmt::format("cannot allocate {} for {}", format_bytes(bytes), name), e));
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return give_up(fail_errno(fmt::format("cannot seal the size of {}", name), errno));
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
    if (at == MAP_FAILED) return give_up(fail_errno(fmt::format("cannot map {}", name), errno));
    const auto number = budget->keeper() ? budget->keeper()->hold(keeper::contents::shards, fd.get()) : 0;
    return std::shared_ptr<shard_memory>(
        new shard_memory(std::move(budget), std::move(fd), mapping(at, bytes), number), let_go);
}

result<std::shared_ptr<shard_memory>> shard_memory::adopt(std::shared_ptr<memory_budget> budget,
                                                          keeper::handed_over from) {
    struct stat st {};
    if (::fstat(from.fd.get(), &st) != 0) return fail_errno("cannot look at memory that was kept", errno);
    const auto bytes = static_cast<std::size_t>(st.st_size);
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, from.fd.get(), 0);
    if (at == MAP_FAILED) return fail_errno("cannot map memory that was kept", errno);
    budget->count(bytes);
    auto out = std::shared_ptr<shard_memory>(
        new shard_memory(std::move(budget), std::move(from.fd), mapping(at, bytes), from.number), let_go);
    out->share();  // perhaps: a rank's process may have it
    return out;
}

result<std::shared_ptr<shard_memory>> shard_memory::grow(const std::shared_ptr<shard_memory>& from,
                                                         const joined_shape& shape, std::string name,
                                                         std::uint64_t more) {
    auto parts = files_of(from);
    BANYAN_TRY(auto added, make(from->budget_, std::move(name), shape.buffers * more));
    parts.push_back(std::move(added));
    return join(std::move(parts), shape);
}

// The pages are there: this process looks at them off the ranks' way, so nothing is populated.
result<std::shared_ptr<shard_memory>> shard_memory::join(std::vector<std::shared_ptr<shard_memory>> parts,
                                                         const joined_shape& shape) {
    const auto wrong =
        fail(errc::invalid_input, "memory that is no whole number of buffers cannot be joined");
    if (parts.empty() || parts.size() > max_parts || shape.buffers == 0) return wrong;
    std::vector<std::uint64_t> each;
    for (const auto& p : parts) {
        const auto before = each.empty() ? shape.header : 0;
        if (!p || !p->parts_.empty() || p->size() <= before ||
            (p->size() - before) % (shape.buffers * page_bytes) != 0)
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
    auto out = std::shared_ptr<shard_memory>(new shard_memory(budget, unique_fd(), std::move(whole), number),
                                             let_go);
    out->parts_ = std::move(parts);
    out->shape_ = shape;
    return out;
}

std::vector<std::shared_ptr<shard_memory>> files_of(const std::shared_ptr<shard_memory>& memory) {
    return memory->parts().empty() ? std::vector{memory} : memory->parts();
}

// A client may keep its descriptor, a mapping, or pass either on: nothing tells us. So the pages go, not only
// our hold on them; what a holder writes there later are pages of its own cgroup. F_SEAL_SEAL keeps a client
// from forbidding it with a seal.
shard_memory::~shard_memory() {
    if (!parts_.empty()) return;  // each of them frees its own
    const auto bytes = size();
    if (budget_->keeper()) budget_->keeper()->drop(number_);
    if (shared_)
        ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
    map_ = mapping();
    fd_.reset();
    budget_->release(bytes);
}

std::size_t chunk_count(std::uint64_t bytes) { return (bytes + chunk_bytes - 1) / chunk_bytes; }

std::span<std::byte> chunk_of(std::span<std::byte> data, std::size_t index) {
    const auto from = index * chunk_bytes;
    return data.subspan(from, std::min(chunk_bytes, data.size() - from));
}

std::vector<std::uint32_t> chunk_checksums(std::span<const std::byte> data) {
    std::vector<std::uint32_t> out;
    out.reserve(chunk_count(data.size()));
    for (std::size_t at = 0; at < data.size(); at += chunk_bytes)
        out.push_back(crc32c(data.subspan(at, std::min(chunk_bytes, data.size() - at))));
    return out;
}

}  // namespace banyan::ckpt
