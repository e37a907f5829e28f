// SPDX-License-Identifier: BSD-3-Clause
//
// The mock of NVML refuses whoever breaks a rule of the real one: each rule is broken here once.
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include "test/built.hpp"
#include "test/refused.hpp"

namespace test_nvml_rules {

namespace {

class nvml {
  public:
    template <class... Words>
    int call(const char* name, Words... words) const {
        auto* const f = reinterpret_cast<int (*)(Words...)>(::dlsym(library_, name));
        if (!f) throw std::runtime_error(name);
        return f(words...);
    }
    void start() const { call("nvmlInit_v2"); }
    void* gpu(unsigned index) const {
        void* out = nullptr;
        call("nvmlDeviceGetHandleByIndex_v2", index, &out);
        return out;
    }
    int errors(void* gpu, int type = 1, int counter = 0) const {
        unsigned long long out = 0;
        return call("nvmlDeviceGetTotalEccErrors", gpu, type, counter, &out);
    }
    int link(void* gpu, unsigned number) const {
        int active = 0;
        return call("nvmlDeviceGetNvLinkState", gpu, number, &active);
    }

  private:
    void* library_ = ::dlopen(banyan::testing::built("fake_nvml").c_str(), RTLD_NOW | RTLD_LOCAL);
};

/// With two GPUs, of which the second one is lost.
bool is_refused(const char* rule, const std::function<void(const nvml&)>& work) {
    const auto said = banyan::testing::refused([&] {
        ::setenv("FAKE_NVML", "wl", 1);
        work(nvml());
    });
    if (said.find(rule) == std::string::npos) UNSCOPED_INFO("said: " << said);
    return said.find(rule) != std::string::npos;
}

}  // namespace

TEST_CASE("rules of NVML", "[nvml]") {
    CHECK(is_refused("nvmlInit_v2 comes before", [](const nvml& n) { n.gpu(0); }));
    CHECK(is_refused("nvmlInit_v2 comes before", [](const nvml& n) {
        n.start();
        void* const gpu = n.gpu(0);
        n.call("nvmlShutdown"), n.errors(gpu);
    }));
    CHECK(is_refused("no GPU of that index", [](const nvml& n) { n.start(), n.gpu(2); }));
    CHECK(is_refused("that is no handle", [](const nvml& n) { n.start(), n.errors(n.gpu(1)); }));
    CHECK(is_refused("errors are corrected or not", [](const nvml& n) { n.start(), n.errors(n.gpu(0), 2); }));
    CHECK(is_refused("volatile or aggregate", [](const nvml& n) { n.start(), n.errors(n.gpu(0), 1, 2); }));
    CHECK(is_refused("no links of that number", [](const nvml& n) { n.start(), n.link(n.gpu(0), 36); }));
    CHECK(is_refused("which structure", [](const nvml& n) {
        unsigned told[9] = {};  // without its version
        n.start(), n.call("nvmlDeviceGetGpuFabricInfoV", n.gpu(0), static_cast<void*>(told));
    }));
    CHECK(is_refused("without room", [](const nvml& n) {
        unsigned room = 1;
        n.start(),
            n.call("nvmlDeviceGetComputeRunningProcesses_v3", n.gpu(0), &room, static_cast<void*>(nullptr));
    }));
    CHECK(banyan::testing::refused([] {
              ::setenv("FAKE_NVML", "wl", 1);
              const nvml n;
              n.start(), n.errors(n.gpu(0)), n.link(n.gpu(0), 1);
          }).empty());
}

}  // namespace test_nvml_rules
