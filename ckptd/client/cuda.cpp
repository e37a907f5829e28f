// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/cuda.hpp"

#include <mutex>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace banyan::ckpt::device {
namespace {

constexpr int context_attribute = 1, ordinal_attribute = 9;

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

}  // namespace

driver driver::find() {
    driver d;
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library) return d;
    const auto found = [&](auto& f, const char* name) {
        f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(::dlsym(library, name));
        return f != nullptr;
    };
    d.usable = found(d.attribute, "cuPointerGetAttribute") && found(d.to_host, "cuMemcpyDtoH_v2") &&
               found(d.to_host_on, "cuMemcpyDtoHAsync_v2") && found(d.to_device, "cuMemcpyHtoD_v2") &&
               found(d.pin, "cuMemHostRegister_v2") && found(d.unpin, "cuMemHostUnregister") &&
               found(d.current, "cuCtxGetCurrent") && found(d.use, "cuCtxSetCurrent") &&
               found(d.synchronize, "cuCtxSynchronize") && found(d.device, "cuDeviceGet") &&
               found(d.retain, "cuDevicePrimaryCtxRetain") &&
               found(d.release, "cuDevicePrimaryCtxRelease_v2") && found(d.make_stream, "cuStreamCreate") &&
               found(d.end_stream, "cuStreamDestroy_v2") && found(d.wait_for_stream, "cuStreamSynchronize") &&
               found(d.let_wait, "cuStreamWaitEvent") && found(d.make_event, "cuEventCreate") &&
               found(d.end_event, "cuEventDestroy_v2") && found(d.record, "cuEventRecord");
    return d;
}

// The process may load it late: looked for again when any library has come, since each look goes through the
// whole search path.
driver cuda() {
    static std::mutex turn;
    static auto d = driver::find();
    static auto seen = loaded();
    const std::scoped_lock lock(turn);
    if (!d.usable && loaded() != seen) {
        d = driver::find();
        seen = loaded();
    }
    return d;
}

in_context_of::in_context_of(const driver& by, const void* gpu) : by_(by) {
    by_.current(&before_);
    if (by_.attribute(&context_, context_attribute, address_of(gpu)) != success) context_ = nullptr;
    if (!context_) retain(gpu);
    if (context_) by_.use(context_);
}

in_context_of::~in_context_of() {
    if (context_) by_.use(before_);
    if (retained_) by_.release(device_);
}

void in_context_of::retain(const void* gpu) {
    int ordinal = 0;
    retained_ = by_.attribute(&ordinal, ordinal_attribute, address_of(gpu)) == success &&
                by_.device(&device_, ordinal) == success && by_.retain(&context_, device_) == success;
    if (!retained_) context_ = nullptr;
}

result<void> checked(code r, const char* what, std::size_t bytes) {
    if (r == success) return {};
    return fail(errc::unavailable,
                fmt::format("cannot copy {} bytes {} the GPU: CUDA error {}", bytes, what, r));
}

}  // namespace banyan::ckpt::device
