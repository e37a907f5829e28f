// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <catch2/catch.hpp>
#include <sys/mman.h>

#include "test/built.hpp"
#include "test/nvidia/driver.hpp"
#include "test/refused.hpp"

namespace nvidia_rules {

using banyan::testing::driver;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

/// Memory of the host, by whole pages.
inline std::byte* memory(std::size_t bytes) {
    void* const out = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(out != MAP_FAILED);
    return static_cast<std::byte*>(out);
}

inline void* stream(const driver& d) {
    void* out = nullptr;
    d.call("cuStreamCreate", &out, 1u);
    return out;
}

/// With a driver that is started, and GPU 0 in use.
inline bool is_refused(const char* rule, const std::function<void(const driver&)>& work) {
    const auto said = banyan::testing::refused([&] { work(driver(banyan::testing::built("mock_nvidia"))); });
    if (said.find(rule) == std::string::npos) UNSCOPED_INFO("said: " << said);
    return said.find(rule) != std::string::npos;
}

}  // namespace nvidia_rules
