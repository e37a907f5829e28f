// SPDX-License-Identifier: BSD-3-Clause
//
// libcuda, as far as banyan calls it: GPUs, contexts, streams. Numbers and types as in cuda.h, which is not
// needed.
#include <cstdio>

#include "mock.hpp"

#pragma GCC visibility push(default)
extern "C" {

using namespace mock;

int cuInit(unsigned flags) {
    must(flags == 0, "the flags must be 0", "CUDA driver API, Initialization: cuInit");
    all().initialized = !is("none");
    return all().initialized ? success : no_device;
}
int cuDeviceGetCount(int* n) {
    const auto lock = turn();
    return *n = gpus(), success;
}
int cuDeviceGet(int* device, int at) {
    const auto lock = turn();
    must(at >= 0 && at < gpus(), "there is no GPU of that number",
         "CUDA driver API, Device Management: cuDeviceGet");
    return *device = at, success;
}
int cuDeviceGetPCIBusId(char* into, int size, int device) {
    const auto lock = turn();
    must(size >= 13, "13 bytes are needed for a bus id", "CUDA driver API, cuDeviceGetPCIBusId");
    return std::snprintf(into, static_cast<std::size_t>(size), "0000:%02X:00.0", 0x1A + device), success;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    const auto lock = turn();
    ++all().retained[device];
    return *context = reinterpret_cast<void*>(static_cast<long>(device) + 1), success;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    const auto lock = turn();
    must(all().retained[device]-- > 0, "that context was not retained",
         "CUDA driver API, Primary Context Management: cuDevicePrimaryCtxRelease");
    return success;
}
int cuCtxGetCurrent(void** context) {
    if (!all().initialized) return not_initialized;
    return *context = reinterpret_cast<void*>(current), success;
}
int cuCtxSetCurrent(void* context) {
    const auto lock = turn();
    const auto wanted = reinterpret_cast<long>(context);
    must(wanted == 0 || all().retained[static_cast<int>(wanted - 1)] > 0, "there is no such context",
         "CUDA driver API, CUDA_ERROR_INVALID_CONTEXT");
    return current = wanted, success;
}
int cuStreamCreate(void** out, unsigned) {
    const auto lock = turn();
    all().streams.push_back({current_gpu()});
    return *out = &all().streams.back(), success;
}
int cuStreamSynchronize(void* handle) {
    const auto lock = turn();
    find_stream(handle, current_gpu()).work();
    return success;
}
// Stream Management, cuStreamDestroy: what is queued is done all the same.
int cuStreamDestroy_v2(void* handle) {
    const auto lock = turn();
    must(handle != nullptr, "the default stream cannot be destroyed", "CUDA driver API, cuStreamDestroy");
    auto& s = find_stream(handle, current_gpu());
    s.work();
    return s.ended = true, success;
}
int cuStreamWaitEvent(void* handle, void* which, unsigned flags) {
    const auto lock = turn();
    must(flags == 0, "the flags must be 0", "CUDA driver API, cuStreamWaitEvent");
    auto& on = find_stream(handle, current_gpu());
    auto& e = find_event(which, current_gpu());
    if (e.on) on.queued.emplace_back([&e] { e.on->work(e.behind); });
    return success;
}
int cuEventCreate(void** out, unsigned) {
    const auto lock = turn();
    all().events.push_back({current_gpu()});
    return *out = &all().events.back(), success;
}
int cuEventRecord(void* which, void* handle) {
    const auto lock = turn();
    auto& e = find_event(which, current_gpu());
    e.on = &find_stream(handle, current_gpu());
    return e.behind = e.on->queued.size(), success;
}
int cuEventDestroy_v2(void* which) {
    const auto lock = turn();
    return find_event(which, current_gpu()).ended = true, success;
}
int cuCtxSynchronize() {
    const auto lock = turn();
    const int gpu = current_gpu();
    find_stream(nullptr, gpu).work();
    for (auto& s : all().streams)
        if (s.gpu == gpu) s.work();
    return success;
}
int cuGetErrorString(int why, const char** text) {
    *text = why == ecc_uncorrectable ? "uncorrectable ECC error encountered"
                                     : "no CUDA-capable device is detected";
    return success;
}
}
#pragma GCC visibility pop
