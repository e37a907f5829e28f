// SPDX-License-Identifier: BSD-3-Clause
#include "host_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>

#include "mock.hpp"

namespace mock {
namespace {

constexpr std::uintptr_t page = 4096;

/// What is mapped there to read and write: the files with their places, or anonymous memory, each once
/// however the kernel has cut it; "" where some of it is not.
std::string mapped(std::uintptr_t from, std::uintptr_t to) {
    std::ifstream maps("/proc/self/maps");
    std::string line, out, last;
    auto covered = from / page * page;
    while (covered < to && std::getline(maps, line)) {
        std::uintptr_t begin = 0, end = 0, offset = 0;
        char rights[5] = {}, device[16] = {}, inode[24] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %15s %23s", &begin, &end, rights, &offset, device,
                        inode) != 6)
            return {};
        if (end <= covered) continue;
        if (begin > covered || rights[0] != 'r' || rights[1] != 'w') return {};
        // The address at which the file's first byte would be is the same for all pieces of one mapping.
        const bool of_file = inode != std::string_view("0");
        const auto piece =
            std::string(device) + ":" + inode + "@" + std::to_string(of_file ? begin - offset : 0) + " ";
        if (piece != std::exchange(last, piece)) out += piece;
        covered = end;
    }
    return covered < to ? std::string() : out;
}

}  // namespace

// CUDA driver API, Memory Management, cuMemHostRegister: "page-locks the memory range", so it is memory that
// is there, and a page is locked once (CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED).
void host_memory::lock(const void* at, std::size_t bytes, made_by how) {
    constexpr auto source = "CUDA driver API, cuMemHostRegister";
    must(bytes > 0, "a range of no bytes cannot be registered", source);
    const auto from = reinterpret_cast<std::uintptr_t>(at);
    range r{from, from + bytes, how, mapped(from, from + bytes)};
    must(!r.backing.empty(), "memory that is not mapped to read and write cannot be registered", source);
    for (const auto& l : locked_)
        must(r.to <= l.from / page * page || l.to <= r.from / page * page, "a page is registered already",
             source);
    locked_.push_back(std::move(r));
}

// cuMemHostUnregister: "The base address must be the same one specified to cuMemHostRegister()";
// cuMemFreeHost: memory "which must have been returned by a previous call".
void host_memory::unlock(const void* at, made_by how) {
    const auto from = reinterpret_cast<std::uintptr_t>(at);
    const auto it =
        std::ranges::find_if(locked_, [&](const range& l) { return l.from == from && l.how == how; });
    if (how == made_by::registering)
        must(it != locked_.end(), "no range that begins there is registered",
             "CUDA driver API, cuMemHostUnregister");
    else
        must(it != locked_.end(), "that memory is not of cuMemHostAlloc", "CUDA driver API, cuMemFreeHost");
    locked_.erase(it);
}

// CUDA driver API, API synchronization behavior: "Memory regions requested must be either entirely registered
// with CUDA, or in the case of host pageable transfers, not registered at all." A range of two registrations
// gets CUDA_ERROR_INVALID_VALUE, too (driver 580.159.04). Locked pages are those that were there when they
// were locked (cuMemHostRegister).
void host_memory::copy(const void* at, std::size_t bytes) const {
    const auto from = reinterpret_cast<std::uintptr_t>(at), to = from + bytes;
    for (const auto& l : locked_) {
        must(mapped(l.from, l.to) == l.backing,
             "registered memory was unmapped, or moved, before it was unregistered",
             "CUDA driver API, cuMemHostRegister");
        if (to <= l.from || from >= l.to) continue;
        must(from >= l.from && to <= l.to,
             "a copy reaches from one registered range into another, or out of it",
             "CUDA driver API, API synchronization behavior");
    }
}

}  // namespace mock
