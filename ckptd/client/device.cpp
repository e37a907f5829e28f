// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/device.hpp"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "ckptd/client/cuda.hpp"

namespace banyan::ckpt::device {
namespace {

constexpr int type_attribute = 2, managed_attribute = 8;
constexpr unsigned gpu_memory = 2, for_all_contexts = 1;

}  // namespace

bool owns(const void* ptr) {
    const auto by = cuda();
    if (!by.usable) return false;
    unsigned type = 0, managed = 0;
    if (by.attribute(&type, type_attribute, address_of(ptr)) != success) return false;
    if (by.attribute(&managed, managed_attribute, address_of(ptr)) == success && managed != 0) return false;
    return type == gpu_memory;
}

bool has_driver() { return cuda().usable; }

bool is_mapped(const void* ptr, std::size_t bytes) {
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(ptr), last = first + bytes - 1;
    const auto has = [](std::uintptr_t at) {
        unsigned char resident = 0;
        // ENOMEM alone says that there is nothing.
        return ::mincore(reinterpret_cast<void*>(at - at % page), 1, &resident) == 0 || errno != ENOMEM;
    };
    return last >= first && has(first) && (last / page == first / page || has(last));
}

result<void> copy_to_host(void* host, const void* gpu, std::size_t bytes) {
    const auto by = cuda();
    const in_context_of here(by, gpu);
    return checked(by.to_host(host, address_of(gpu), bytes), "from", bytes);
}

result<void> copy_from_host(void* gpu, const void* host, std::size_t bytes) {
    const auto by = cuda();
    const in_context_of here(by, gpu);
    return checked(by.to_device(address_of(gpu), host, bytes), "to", bytes);
}

pinned::pinned(void* host, std::size_t bytes, const void* gpu) : by_(::getpid()) {
    const auto by = cuda();
    if (!by.usable) return;
    const in_context_of here(by, gpu);
    if (by.pin(host, bytes, for_all_contexts) != success) return;
    host_ = host;
    context_ = here.which();
}

pinned::pinned(pinned&& other) noexcept
    : host_(std::exchange(other.host_, nullptr)), context_(other.context_), by_(other.by_) {}

// By the context that pinned it: the thread that lets go of it may have none, and the driver would refuse.
pinned::~pinned() {
    if (!host_ || by_ != ::getpid()) return;
    const auto by = cuda();
    context before = nullptr;
    by.current(&before);
    by.use(context_);
    by.unpin(host_);
    by.use(before);
}

}  // namespace banyan::ckpt::device
