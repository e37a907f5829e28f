// SPDX-License-Identifier: BSD-3-Clause
//
// The few functions and numbers of libcuda that are used are those of cuda.h, which keeps them: the library
// is built, and serves, wherever there is no CUDA.
#include "ckptd/client/device.hpp"

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace banyan::ckpt::device {
namespace {

using code = int;
using address = unsigned long long;
using context = void*;

constexpr code success = 0;
constexpr int context_attribute = 1, type_attribute = 2, managed_attribute = 8, ordinal_attribute = 9;
constexpr unsigned gpu_memory = 2, for_all_contexts = 1;

struct driver {
    code (*attribute)(void*, int, address) = nullptr;
    code (*to_host)(void*, address, std::size_t) = nullptr;
    code (*to_device)(address, const void*, std::size_t) = nullptr;
    code (*pin)(void*, std::size_t, unsigned) = nullptr;
    code (*unpin)(void*) = nullptr;
    code (*current)(context*) = nullptr;
    code (*use)(context) = nullptr;
    code (*device)(int*, int) = nullptr;
    code (*retain)(context*, int) = nullptr;
    code (*release)(int) = nullptr;
    bool usable = false;

    driver() {
        void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (!library) return;
        const auto find = [&](auto& f, const char* name) {
            f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(library, name));
            return f != nullptr;
        };
        usable = find(attribute, "cuPointerGetAttribute") && find(to_host, "cuMemcpyDtoH_v2") &&
                 find(to_device, "cuMemcpyHtoD_v2") && find(pin, "cuMemHostRegister_v2") &&
                 find(unpin, "cuMemHostUnregister") && find(current, "cuCtxGetCurrent") &&
                 find(use, "cuCtxSetCurrent") && find(device, "cuDeviceGet") &&
                 find(retain, "cuDevicePrimaryCtxRetain") && find(release, "cuDevicePrimaryCtxRelease_v2");
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
// whole search path.
driver cuda() {
    static std::mutex turn;
    static driver d;
    static auto seen = loaded();
    const std::scoped_lock lock(turn);
    if (!d.usable && loaded() != seen) {
        d = driver();
        seen = loaded();
    }
    return d;
}

address address_of(const void* ptr) { return reinterpret_cast<address>(ptr); }

// A context that has the memory, for the length of one call: the calling thread may have another one, or
// none. Memory of a pool, or mapped by the program, belongs to no context: its GPU's own one has it.
class in_context_of {
  public:
    in_context_of(const driver& by, const void* gpu) : by_(by) {
        by_.current(&before_);
        if (by_.attribute(&context_, context_attribute, address_of(gpu)) != success) context_ = nullptr;
        if (!context_) retain(gpu);
        if (context_) by_.use(context_);
    }
    ~in_context_of() {
        if (context_) by_.use(before_);
        if (retained_) by_.release(device_);
    }
    in_context_of(const in_context_of&) = delete;
    in_context_of& operator=(const in_context_of&) = delete;
    context which() const { return context_; }

  private:
    void retain(const void* gpu) {
        int ordinal = 0;
        retained_ = by_.attribute(&ordinal, ordinal_attribute, address_of(gpu)) == success &&
                    by_.device(&device_, ordinal) == success && by_.retain(&context_, device_) == success;
        if (!retained_) context_ = nullptr;
    }

    const driver& by_;
    context before_ = nullptr, context_ = nullptr;
    int device_ = 0;
    bool retained_ = false;
};

result<void> checked(code r, const char* what, std::size_t bytes) {
    if (r == success) return {};
    return fail(errc::unavailable,
                fmt::format("cannot copy {} bytes {} the GPU: CUDA error {}", bytes, what, r));
}

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
