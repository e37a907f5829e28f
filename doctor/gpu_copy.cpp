// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <sys/mman.h>

#include "ckptd/client/device.hpp"
#include "doctor/gpus.hpp"

namespace banyan::doctor {
namespace {

namespace device = ckpt::device;

constexpr std::size_t state = 4u << 20, room = 2 * state;

struct unmap {
    void operator()(std::byte* memory) const { ::munmap(memory, room); }
};

/// Two buffers of memory that is shared, as the daemon's is.
result<std::unique_ptr<std::byte, unmap>> buffers() {
    void* const out = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (out == MAP_FAILED) return fail_errno("cannot have memory for a copy", errno);
    return std::unique_ptr<std::byte, unmap>(static_cast<std::byte*>(out));
}

result<void> try_copy(const hardware::cuda& by, std::uint32_t gpu) {
    BANYAN_TRY(const auto name, by.bus_id(gpu));
    BANYAN_CHECK(by.use(gpu));
    BANYAN_TRY(const auto at, by.allocate(state));
    auto* const there = reinterpret_cast<void*>(at);
    BANYAN_TRY(const auto memory, buffers());
    std::byte *const from = memory.get(), *const to = from + state;
    for (std::size_t i = 0; i < state; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 251 + gpu);
    if (!device::owns(there))
        return fail(errc::unavailable, fmt::format("GPU {}: its memory is taken for the host's", name));
    const device::pinned fast(from, room, there);
    auto copied = device::copy_from_host(there, from, state);
    if (copied) copied = device::copy_to_host(to, there, state);
    if (!copied) return fail(errc::conflict, fmt::format("GPU {}: {}", name, copied.error().text()));
    if (std::memcmp(from, to, state) != 0)
        return fail(errc::conflict, fmt::format("GPU {}: what was copied there came back other", name));
    return {};
}

}  // namespace

result<std::uint32_t> try_copies(const std::string& cuda_library) {
    BANYAN_TRY(const auto by, hardware::cuda::open(cuda_library));
    for (std::uint32_t gpu = 0; gpu < by.count(); ++gpu) BANYAN_CHECK(try_copy(by, gpu));
    return by.count();
}

}  // namespace banyan::doctor
