// SPDX-License-Identifier: BSD-3-Clause
//
// libcuda, as far as banyan calls it: memory and copies.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include "mock.hpp"

namespace mock {
namespace {

void* map(std::size_t bytes, int rights) {
    void* const out = ::mmap(nullptr, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (out == MAP_FAILED) std::abort();
    return out;
}

code allocate(unsigned long long* out, std::size_t bytes, bool pooled) {
    must(bytes > 0, "memory of no bytes cannot be had", "CUDA driver API, cuMemAlloc");
    block b{reinterpret_cast<std::uintptr_t>(map(bytes, PROT_NONE)), bytes, current_gpu(), pooled};
    b.content = static_cast<std::byte*>(map(bytes, PROT_READ | PROT_WRITE));
    all().blocks.push_back(b);
    return *out = b.at, success;
}

void begin_copy() {
    if (current_gpu() != 1) return;  // GPU 1 is the bad one
    if (is("hang"))
        for (;;) ::pause();
    if (is("crash")) std::signal(SIGSEGV, SIG_DFL), std::raise(SIGSEGV);
    if (is("slow")) std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

/// The GPU's side of a copy, which it may read or write now.
std::byte* gpu_side(unsigned long long at, std::size_t bytes) {
    auto& b = find_block(reinterpret_cast<const void*>(at), bytes, current_gpu());
    must(!b.in_flight, "a stream writes that memory, and was not waited for",
         "CUDA driver API, Stream Management: cuStreamSynchronize");
    return b.content + (at - b.at);
}

const block* block_at(unsigned long long at) {
    const auto it = std::ranges::find_if(all().blocks, [&](const block& b) { return b.has(at, 1); });
    return it == all().blocks.end() ? nullptr : &*it;
}

}  // namespace
}  // namespace mock

#pragma GCC visibility push(default)
extern "C" {

using namespace mock;

// Unified Addressing, cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE for what CUDA does not know; memory of
// a pool belongs to no context (CUDA programming guide, stream ordered allocation, pointer attributes).
int cuPointerGetAttribute(void* out, int what, unsigned long long at) {
    if (!all().initialized) return not_initialized;
    const auto lock = turn();
    const auto* const b = block_at(at);
    if (!b) return invalid_value;
    if (what == 1)
        *static_cast<void**>(out) =
            b->pooled ? nullptr : reinterpret_cast<void*>(static_cast<long>(b->gpu) + 1);
    if (what == 2) *static_cast<unsigned*>(out) = 2;
    if (what == 8) *static_cast<unsigned*>(out) = 0;
    if (what == 9) *static_cast<int*>(out) = b->gpu;
    return success;
}
int cuMemAlloc_v2(unsigned long long* out, std::size_t bytes) {
    const auto lock = turn();
    return allocate(out, bytes, false);
}
int cuMemAllocAsync(unsigned long long* out, std::size_t bytes, void*) {
    const auto lock = turn();
    return allocate(out, bytes, true);
}
int cuMemHostAlloc(void** out, std::size_t bytes, unsigned) {
    const auto lock = turn();
    (void)current_gpu();
    *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return all().host.lock(*out, bytes, host_memory::made_by::allocating), success;
}
int cuMemFreeHost(void* memory) {
    const auto lock = turn();
    (void)current_gpu();
    all().host.unlock(memory, host_memory::made_by::allocating);
    return std::free(memory), success;
}
int cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned) {
    const auto lock = turn();
    (void)current_gpu();
    return all().host.lock(at, bytes, host_memory::made_by::registering), success;
}
int cuMemHostUnregister(void* at) {
    const auto lock = turn();
    (void)current_gpu();
    return all().host.unlock(at, host_memory::made_by::registering), success;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
    const auto lock = turn();
    begin_copy();
    auto* const there = gpu_side(to, bytes);
    all().host.copy(from, bytes);
    if (is("ecc") && current == 2) return ecc_uncorrectable;
    std::memcpy(there, from, bytes);
    if (is("copy") && current == 2) there[bytes / 2] ^= std::byte{1};
    return success;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
    const auto lock = turn();
    begin_copy();
    const auto* const there = gpu_side(from, bytes);
    all().host.copy(to, bytes);
    if (is("ecc") && current == 2) return ecc_uncorrectable;
    return std::memcpy(to, there, bytes), success;
}
// Both are done when somebody waits for the stream, with what is there then.
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* handle) {
    const auto lock = turn();
    begin_copy();
    const int gpu = current_gpu();
    (void)find_block(reinterpret_cast<const void*>(from), bytes, gpu);
    all().host.copy(to, bytes);
    if (is("ecc") && current == 2) return ecc_uncorrectable;
    find_stream(handle, gpu).queued.emplace_back([=] {
        const auto& b = find_block(reinterpret_cast<const void*>(from), bytes, gpu);
        std::memcpy(to, b.content + (from - b.at), bytes);
    });
    return success;
}
int cuMemsetD8Async(unsigned long long at, unsigned char to, std::size_t bytes, void* handle) {
    const auto lock = turn();
    const int gpu = current_gpu();
    (void)find_block(reinterpret_cast<const void*>(at), bytes, gpu);
    find_stream(handle, gpu).queued.emplace_back([=] {
        const auto& b = find_block(reinterpret_cast<const void*>(at), bytes, gpu);
        std::memset(b.content + (at - b.at), to, bytes);
    });
    return success;
}
}
#pragma GCC visibility pop
