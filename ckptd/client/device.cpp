// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/device.hpp"

#ifdef BANYAN_CUDA
#include <algorithm>
#include <cstdint>

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace banyan::ckpt::device {
namespace {

constexpr std::size_t pin_step = 1u << 30;

#define BANYAN_TEXT_(x) #x
#define BANYAN_TEXT(x) BANYAN_TEXT_(x)  // cuda.h maps names to versioned ones; the library has those

struct driver {
    decltype(&cuPointerGetAttribute) attribute = nullptr;
    decltype(&cuMemcpyDtoH) to_host = nullptr;
    decltype(&cuMemcpyHtoD) to_device = nullptr;
    decltype(&cuMemHostRegister) pin = nullptr;
    decltype(&cuMemHostUnregister) unpin = nullptr;
    decltype(&cuCtxGetCurrent) current = nullptr;
    decltype(&cuCtxSetCurrent) use = nullptr;
    bool usable = false;

    driver() {
        void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (!library) return;
        const auto find = [&](auto& f, const char* name) {
            f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(library, name));
            return f != nullptr;
        };
        usable = find(attribute, BANYAN_TEXT(cuPointerGetAttribute)) &&
                 find(to_host, BANYAN_TEXT(cuMemcpyDtoH)) && find(to_device, BANYAN_TEXT(cuMemcpyHtoD)) &&
                 find(pin, BANYAN_TEXT(cuMemHostRegister)) && find(unpin, BANYAN_TEXT(cuMemHostUnregister)) &&
                 find(current, BANYAN_TEXT(cuCtxGetCurrent)) && find(use, BANYAN_TEXT(cuCtxSetCurrent));
    }
};

// How many libraries the process has loaded so far.
unsigned long long loaded() {
    unsigned long long adds = 0;
    const auto look = [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
    };
    ::dl_iterate_phdr(look, &adds);
    return adds;
}

// The process may load it late: looked for again when any library has come, since each look goes through the
// whole search path. Calls take turns.
const driver& cuda() {
    static driver d;
    static auto seen = loaded();
    if (!d.usable && loaded() != seen) {
        d = driver();
        seen = loaded();
    }
    return d;
}

CUdeviceptr address(const void* ptr) { return reinterpret_cast<CUdeviceptr>(ptr); }

// The region's own context for the length of one copy: the saving thread may have another one, or none.
class in_context_of {
  public:
    explicit in_context_of(const void* ptr) {
        CUcontext wanted = nullptr;
        cuda().current(&before_);
        if (cuda().attribute(&wanted, CU_POINTER_ATTRIBUTE_CONTEXT, address(ptr)) == CUDA_SUCCESS &&
            wanted != nullptr)
            cuda().use(wanted);
    }
    ~in_context_of() { cuda().use(before_); }
    in_context_of(const in_context_of&) = delete;
    in_context_of& operator=(const in_context_of&) = delete;

  private:
    CUcontext before_ = nullptr;
};

result<void> checked(CUresult r, const char* what, std::size_t bytes) {
    if (r == CUDA_SUCCESS) return {};
    return fail(errc::unavailable, fmt::format("cannot copy {} bytes {} the GPU: CUDA error {}", bytes, what,
                                               static_cast<int>(r)));
}

}  // namespace

bool owns(const void* ptr) {
    if (!cuda().usable) return false;
    unsigned type = 0, managed = 0;
    if (cuda().attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(ptr)) != CUDA_SUCCESS) return false;
    if (cuda().attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address(ptr)) == CUDA_SUCCESS &&
        managed != 0)
        return false;
    return type == CU_MEMORYTYPE_DEVICE;
}

result<void> copy_to_host(void* host, const void* gpu, std::size_t bytes) {
    const in_context_of context(gpu);
    return checked(cuda().to_host(host, address(gpu), bytes), "from", bytes);
}

result<void> copy_from_host(void* gpu, const void* host, std::size_t bytes) {
    const in_context_of context(gpu);
    return checked(cuda().to_device(address(gpu), host, bytes), "to", bytes);
}

void pin(void* host, std::size_t bytes, const void* gpu) {
    if (!cuda().usable) return;
    const in_context_of context(gpu);
    for (std::size_t at = 0; at < bytes; at += pin_step)
        cuda().pin(static_cast<char*>(host) + at, std::min(pin_step, bytes - at),
                   CU_MEMHOSTREGISTER_PORTABLE);
}

void unpin(void* host, std::size_t bytes) {
    if (!cuda().usable) return;
    for (std::size_t at = 0; at < bytes; at += pin_step) cuda().unpin(static_cast<char*>(host) + at);
}

}  // namespace banyan::ckpt::device

#else

namespace banyan::ckpt::device {

bool owns(const void*) { return false; }
result<void> copy_to_host(void*, const void*, std::size_t) {
    return fail(errc::internal, "built without CUDA");
}
result<void> copy_from_host(void*, const void*, std::size_t) {
    return fail(errc::internal, "built without CUDA");
}
void pin(void*, std::size_t, const void*) {}
void unpin(void*, std::size_t) {}

}  // namespace banyan::ckpt::device
#endif
