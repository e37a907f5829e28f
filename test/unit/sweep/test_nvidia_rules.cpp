// SPDX-License-Identifier: BSD-3-Clause
//
// The mock of NVIDIA's libraries refuses whoever breaks a rule of the real ones: each rule is broken here
// once.
#include <dlfcn.h>

#include "common/child.hpp"
#include "nvidia_rules.hpp"
#include "test/built.hpp"

namespace test_nvidia_rules {

using namespace nvidia_rules;
using banyan::testing::refused;

namespace {

int pin(const driver& d, void* at, std::size_t bytes) {
    return d.call("cuMemHostRegister_v2", at, bytes, 0u);
}

int from_gpu(const driver& d, void* to, const void* gpu, std::size_t bytes) {
    return d.call("cuMemcpyDtoH_v2", to, reinterpret_cast<unsigned long long>(gpu), bytes);
}

}  // namespace

TEST_CASE("what keeps the rules is not refused", "[nvidia]") {
    CHECK(refused([] {
              const driver d(banyan::testing::built("mock_nvidia"));
              auto* const host = memory(mib);
              void* const gpu = d.allocate(mib);
              pin(d, host, mib), from_gpu(d, host + kib, gpu, 16 * kib);
              d.call("cuMemHostUnregister", static_cast<void*>(host));
              pin(d, host, mib);
          }).empty());
}

TEST_CASE("rules of registered memory", "[nvidia]") {
    CHECK(is_refused("from one registered range into another", [](const driver& d) {
        auto* const host = memory(2 * mib);
        pin(d, host, mib), pin(d, host + mib, mib);
        from_gpu(d, host + mib - kib, d.allocate(mib), 2 * kib);
    }));
    CHECK(is_refused("or out of it", [](const driver& d) {
        auto* const host = memory(2 * mib);
        pin(d, host, mib);
        from_gpu(d, host + mib - kib, d.allocate(mib), 2 * kib);
    }));
    CHECK(is_refused("registered already", [](const driver& d) {
        auto* const host = memory(2 * mib);
        pin(d, host, mib), pin(d, host + mib - kib, mib);
    }));
    CHECK(is_refused("registered already", [](const driver& d) {  // two ranges of one page
        auto* const host = memory(mib);
        pin(d, host, 100), pin(d, host + 200, 100);
    }));
    CHECK(is_refused("no bytes", [](const driver& d) { pin(d, memory(mib), 0); }));
    CHECK(is_refused("not mapped", [](const driver& d) {
        auto* const host = memory(2 * mib);
        ::munmap(host + mib, mib);
        pin(d, host, 2 * mib);
    }));
    CHECK(is_refused("not mapped", [](const driver& d) {
        auto* const host = memory(2 * mib);
        ::mprotect(host, mib, PROT_NONE);
        pin(d, host, 2 * mib);
    }));
    CHECK(is_refused("no range that begins there", [](const driver& d) {
        auto* const host = memory(mib);
        pin(d, host, mib), d.call("cuMemHostUnregister", static_cast<void*>(host + 4 * kib));
    }));
    CHECK(is_refused("before it was unregistered", [](const driver& d) {
        auto* const host = memory(mib);
        pin(d, host, mib), ::munmap(host, mib);
        d.get(d.allocate(kib), kib);
    }));
    CHECK(is_refused("not of cuMemHostAlloc",
                     [](const driver& d) { d.call("cuMemFreeHost", static_cast<void*>(memory(kib))); }));
}

TEST_CASE("rules of contexts", "[nvidia]") {
    CHECK(is_refused("the calling thread has no context", [](const driver& d) {
        void* const gpu = d.allocate(kib);
        d.use(-1), d.get(gpu, kib);
    }));
    CHECK(is_refused("the calling thread has no context", [](const driver& d) {
        auto* const host = memory(mib);
        pin(d, host, mib), d.use(-1), d.call("cuMemHostUnregister", static_cast<void*>(host));
    }));
    CHECK(is_refused("of another context", [](const driver& d) {
        void* const gpu = d.allocate(kib);
        d.use(1), d.get(gpu, kib);
    }));
    CHECK(is_refused("there is no such context",
                     [](const driver& d) { d.call("cuCtxSetCurrent", reinterpret_cast<void*>(9L)); }));
    CHECK(is_refused("not retained", [](const driver& d) { d.call("cuDevicePrimaryCtxRelease_v2", 1); }));
}

TEST_CASE("rules of GPUs and their memory", "[nvidia]") {
    CHECK(refused([] {
              int n = 0;
              void* const library =
                  ::dlopen(banyan::testing::built("mock_nvidia").c_str(), RTLD_NOW | RTLD_LOCAL);
              reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"))(&n);
          }).find("cuInit comes before") != std::string::npos);
    CHECK(is_refused("no GPU of that number", [](const driver& d) {
        int device = 0;
        d.call("cuDeviceGet", &device, 2);
    }));
    CHECK(is_refused("13 bytes", [](const driver& d) {
        char name[12];
        d.call("cuDeviceGetPCIBusId", static_cast<char*>(name), 12, 0);
    }));
    CHECK(is_refused("no bytes", [](const driver& d) { d.allocate(0); }));
    CHECK(is_refused("no memory of a GPU has all", [](const driver& d) { d.get(d.allocate(kib), kib + 1); }));
}

TEST_CASE("memory of a GPU cannot be read without a copy", "[nvidia]") {
    const auto ended = banyan::run_forked([] {
        std::signal(SIGSEGV, SIG_DFL);
        return *static_cast<volatile char*>(driver(banyan::testing::built("mock_nvidia")).allocate(kib));
    });
    REQUIRE(ended);
    CHECK(ended->code != 0);
}

}  // namespace test_nvidia_rules
