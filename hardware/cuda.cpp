// SPDX-License-Identifier: BSD-3-Clause
//
// The few functions and numbers that are used are those of cuda.h, which has kept them since CUDA 7.
#include "hardware/cuda.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

#include "hardware/loaded.hpp"

namespace banyan::hardware {
namespace {

constexpr int cuda_success = 0, no_device = 100, ecc_uncorrectable = 214, system_not_ready = 802;
constexpr int most_devices = 4096;

}  // namespace

std::unexpected<error> cuda::failed(const std::string& doing, code why) const {
    const char* text = nullptr;
    if (f_.text(why, &text) != cuda_success || !text) text = "a number that it does not know";
    // What is broken, and not merely away.
    const bool broken = why == ecc_uncorrectable || why == system_not_ready || why == no_device;
    return fail(broken ? errc::conflict : errc::unavailable,
                fmt::format("{}: CUDA says {} ({})", doing, text, why),
                why == system_not_ready ? "does the fabric manager run?" : "");
}

result<void> cuda::done(const char* doing, code why) const {
    if (why == cuda_success) return {};
    return failed(doing, why);
}

result<cuda> cuda::open(const std::string& library) {
    // All GPUs, by their places, whatever the environment of a job or of a service says.
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail(errc::not_found, fmt::format("NVIDIA's library {} is not on this node", library),
                    "it comes with the driver");
    cuda out;
    auto& f = out.f_;
    if (!find_function(handle, "cuInit", f.init) || !find_function(handle, "cuDeviceGetCount", f.count) ||
        !find_function(handle, "cuDeviceGet", f.device) ||
        !find_function(handle, "cuDeviceGetPCIBusId", f.bus_id) ||
        !find_function(handle, "cuDevicePrimaryCtxRetain", f.retain) ||
        !find_function(handle, "cuCtxSetCurrent", f.set_current) ||
        !find_function(handle, "cuMemAlloc_v2", f.allocate) ||
        !find_function(handle, "cuMemHostAlloc", f.allocate_on_host) ||
        !find_function(handle, "cuMemFreeHost", f.free_on_host) ||
        !find_function(handle, "cuMemcpyHtoD_v2", f.to_gpu) ||
        !find_function(handle, "cuMemcpyDtoH_v2", f.from_gpu) ||
        !find_function(handle, "cuStreamCreate", f.make_stream) ||
        !find_function(handle, "cuStreamSynchronize", f.wait_for) ||
        !find_function(handle, "cuGetErrorString", f.text))
        return fail(errc::not_found, fmt::format("{} lacks functions that it has had since CUDA 7", library));
    BANYAN_CHECK(out.done("CUDA does not start", f.init(0)));
    int count = 0;
    BANYAN_CHECK(out.done("cannot count the GPUs", f.count(&count)));
    out.count_ = static_cast<std::uint32_t>(std::clamp(count, 0, most_devices));
    return out;
}

result<std::string> cuda::bus_id(std::uint32_t gpu) const {
    int device = 0;
    std::array<char, 32> name{};
    BANYAN_CHECK(done("cannot ask for a GPU", f_.device(&device, static_cast<int>(gpu))));
    BANYAN_CHECK(done("cannot ask for a GPU's place", f_.bus_id(name.data(), name.size() - 1, device)));
    std::string out(name.data());
    std::ranges::transform(out, out.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

result<void> cuda::use(std::uint32_t gpu) const {
    int device = 0;
    void* context = nullptr;
    BANYAN_CHECK(done("cannot ask for a GPU", f_.device(&device, static_cast<int>(gpu))));
    BANYAN_CHECK(done("cannot use a GPU", f_.retain(&context, device)));
    return done("cannot use a GPU", f_.set_current(context));
}

result<cuda::pointer> cuda::allocate(std::size_t bytes) const {
    pointer out = 0;
    BANYAN_CHECK(done("cannot have memory of a GPU", f_.allocate(&out, bytes)));
    return out;
}

result<void*> cuda::allocate_on_host(std::size_t bytes) const {
    void* out = nullptr;
    BANYAN_CHECK(done("cannot have pinned memory", f_.allocate_on_host(&out, bytes, 0)));
    return out;
}

void cuda::free_on_host(void* memory) const { (void)f_.free_on_host(memory); }

result<void> cuda::to_gpu(pointer to, const void* from, std::size_t bytes) const {
    return done("cannot copy to a GPU", f_.to_gpu(to, from, bytes));
}

result<void> cuda::from_gpu(void* to, pointer from, std::size_t bytes) const {
    return done("cannot copy from a GPU", f_.from_gpu(to, from, bytes));
}

result<cuda::stream> cuda::make_stream() const {
    constexpr unsigned non_blocking = 1;
    stream out = nullptr;
    BANYAN_CHECK(done("cannot make a stream", f_.make_stream(&out, non_blocking)));
    return out;
}

result<void> cuda::wait_for(stream s) const { return done("a GPU did not do its work", f_.wait_for(s)); }

}  // namespace banyan::hardware
