// SPDX-License-Identifier: BSD-3-Clause
//
// A mock of libcuda and libnccl for nodes without a GPU: memory of a GPU is the host's. BANYAN_MOCK_GPUS says
// how many there are, BANYAN_MOCK what is wrong: hang, crash, copy, sum, slow (GPU 1), ecc, none,
// reduce-hang.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

bool is(std::string_view what) {
    const char* set = std::getenv("BANYAN_MOCK");
    return set && what == set;
}
int gpus() {
    const char* set = std::getenv("BANYAN_MOCK_GPUS");
    return set ? std::atoi(set) : 2;
}
long current = 0;  // the context is the GPU's number and one
struct reduction {
    const float* in;
    float* out;
    std::size_t count;
};
std::vector<reduction> group;

void on_a_copy() {
    if (current != 2) return;  // GPU 1 is the bad one
    if (is("hang"))
        for (;;) ::pause();
    if (is("crash")) std::signal(SIGSEGV, SIG_DFL), std::raise(SIGSEGV);
    if (is("slow")) std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
int cuInit(unsigned) { return is("none") ? 100 : 0; }
int cuDeviceGetCount(int* n) { return *n = gpus(), 0; }
int cuDeviceGet(int* device, int at) { return *device = at, 0; }
int cuDeviceGetPCIBusId(char* into, int size, int device) {
    return std::snprintf(into, static_cast<std::size_t>(size), "0000:%02X:00.0", 0x1A + device), 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    return *context = reinterpret_cast<void*>(static_cast<long>(device) + 1), 0;
}
int cuCtxSetCurrent(void* context) { return current = reinterpret_cast<long>(context), 0; }
int cuMemAlloc_v2(unsigned long long* out, std::size_t bytes) {
    return *out = reinterpret_cast<unsigned long long>(std::malloc(bytes)), 0;
}
int cuMemHostAlloc(void** out, std::size_t bytes, unsigned) { return *out = std::malloc(bytes), 0; }
int cuMemFreeHost(void* memory) { return std::free(memory), 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
    on_a_copy();
    if (is("ecc") && current == 2) return 214;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    if (is("copy") && current == 2) reinterpret_cast<char*>(to)[bytes / 2] ^= 1;
    return 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
    on_a_copy();
    return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), 0;
}
int cuStreamCreate(void** out, unsigned) { return *out = nullptr, 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuGetErrorString(int code, const char** text) {
    *text = code == 214 ? "uncorrectable ECC error encountered" : "no CUDA-capable device is detected";
    return 0;
}

int ncclCommInitAll(void** comms, int, const int*) { return comms[0] = nullptr, 0; }
int ncclGroupStart() { return group.clear(), 0; }
int ncclAllReduce(const void* in, void* out, std::size_t count, int, int, void*, void*) {
    return group.push_back({static_cast<const float*>(in), static_cast<float*>(out), count}), 0;
}
int ncclGroupEnd() {
    if (is("reduce-hang"))
        for (;;) ::pause();
    if (is("reduce-error")) return 2;
    for (std::size_t i = 0; i < group.front().count; ++i) {
        float sum = 0;
        for (const auto& r : group) sum += r.in[i];
        for (const auto& r : group) r.out[i] = sum;
    }
    if (is("sum")) group.back().out[group.back().count - 1] += 1;
    return 0;
}
const char* ncclGetErrorString(int) { return "unhandled system error"; }
}
#pragma GCC visibility pop
