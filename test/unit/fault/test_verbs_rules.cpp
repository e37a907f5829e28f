// SPDX-License-Identifier: BSD-3-Clause
//
// The mock of libibverbs refuses whoever breaks a rule of the real one: each rule is broken here once.
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "test/built.hpp"
#include "test/refused.hpp"
#include "test/scratch_path.hpp"

#undef ibv_get_device_list

namespace test_verbs_rules {

namespace {

/// The mock, with two devices.
class verbs {
  public:
    verbs() {
        std::filesystem::create_directories(folder_);
        for (const char* name : {"mlx5_1", "mlx5_0"}) ::mkfifo((folder_ / name).c_str(), 0600);
        ::setenv("MOCK_VERBS", folder_.c_str(), 1);
    }
    ~verbs() { std::filesystem::remove_all(folder_); }

    template <class F>
    auto* find(const char* name) const {
        return reinterpret_cast<F*>(::dlsym(library_, name));
    }
    ibv_device** list() const {
        int count = 0;
        return find<ibv_device**(int*)>("ibv_get_device_list")(&count);
    }
    void free(ibv_device** all) const { find<void(ibv_device**)>("ibv_free_device_list")(all); }
    ibv_context* open(ibv_device* one) const {
        return find<ibv_context*(ibv_device*)>("ibv_open_device")(one);
    }
    void close(ibv_context* c) const { find<int(ibv_context*)>("ibv_close_device")(c); }
    void ack(ibv_async_event* e) const { find<void(ibv_async_event*)>("ibv_ack_async_event")(e); }
    void event(ibv_context* of, ibv_async_event* into) const {
        const banyan::unique_fd fifo(::open((folder_ / "mlx5_0").c_str(), O_RDWR | O_CLOEXEC));
        const int told[2] = {IBV_EVENT_PORT_ERR, 1};
        if (::write(fifo.get(), told, sizeof told) == sizeof told)
            find<int(ibv_context*, ibv_async_event*)>("ibv_get_async_event")(of, into);
    }

  private:
    std::filesystem::path folder_ = banyan::testing::scratch_path("verbs-rules");
    void* library_ = ::dlopen(banyan::testing::built("mock_verbs").c_str(), RTLD_NOW | RTLD_LOCAL);
};

bool is_refused(const char* rule, const std::function<void(const verbs&)>& work) {
    const verbs v;
    const auto said = banyan::testing::refused([&] { work(v); });
    if (said.find(rule) == std::string::npos) UNSCOPED_INFO("said: " << said);
    return said.find(rule) != std::string::npos;
}

}  // namespace

TEST_CASE("the mock lists HCAs by their names, and lets pass what keeps the rules", "[verbs]") {
    const verbs v;
    auto** const all = v.list();
    CHECK(std::string(all[0]->name) == "mlx5_0");
    CHECK(std::string(all[1]->name) == "mlx5_1");
    auto* const c = v.open(all[0]);
    v.free(all);
    ibv_async_event e{};
    v.event(c, &e);
    v.ack(&e);
    v.close(c);
}

TEST_CASE("rules of libibverbs", "[verbs]") {
    CHECK(is_refused("before its list is freed", [](const verbs& v) {
        auto** const all = v.list();
        auto* const one = all[0];
        v.free(all), v.open(one);
    }));
    CHECK(is_refused("is freed", [](const verbs& v) {
        auto** const all = v.list();
        v.free(all), v.free(all);
    }));
    CHECK(is_refused("is not open", [](const verbs& v) {
        auto* const c = v.open(v.list()[0]);
        v.close(c), v.close(c);
    }));
    CHECK(is_refused("is not open", [](const verbs& v) {
        auto* const c = v.open(v.list()[0]);
        ibv_async_event e{};
        v.close(c), v.event(c, &e);
    }));
    CHECK(is_refused("was not acknowledged", [](const verbs& v) {
        auto* const c = v.open(v.list()[0]);
        ibv_async_event e{};
        v.event(c, &e), v.close(c);
    }));
    CHECK(is_refused("was not acknowledged", [](const verbs& v) {
        auto* const c = v.open(v.list()[0]);
        ibv_async_event e{};
        v.event(c, &e), v.event(c, &e);
    }));
    CHECK(is_refused("no such event", [](const verbs& v) {
        auto* const c = v.open(v.list()[0]);
        ibv_async_event e{};
        v.event(c, &e), v.ack(&e), v.ack(&e);
    }));
}

}  // namespace test_verbs_rules
