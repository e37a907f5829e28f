// SPDX-License-Identifier: BSD-3-Clause
//
// A sweep of the GPUs of a mock.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "sweep/run.hpp"
#include "test/built.hpp"
#include "test/scratch_path.hpp"

namespace gpu_sweep {

using namespace banyan;
using namespace banyan::sweep;
using std::chrono::seconds;

struct mock {
    explicit mock(const char* wrong, const char* gpus = "2") {
        ::setenv("BANYAN_MOCK", wrong, 1);
        ::setenv("BANYAN_MOCK_GPUS", gpus, 1);
    }
    ~mock() { ::unsetenv("BANYAN_MOCK"), ::unsetenv("BANYAN_MOCK_GPUS"); }
};

/// As the program does it: in a child process, which may hang or die.
inline report swept(const std::string& name, settings asked,
                    std::chrono::steady_clock::duration within = seconds(60)) {
    const std::filesystem::path root = banyan::testing::scratch_path("rates");
    std::filesystem::create_directories(root / "run");
    sweep_options o;
    asked.pcie = std::max(asked.pcie, 1u);
    asked.allreduce = std::max(asked.allreduce, 1u);
    o.checks = choose(asked, {name}).value();
    o.where.asked = asked;
    o.where.root = root;
    o.where.measure_for = std::chrono::milliseconds(20);
    o.where.cuda = o.where.nccl = banyan::testing::built("mock_nvidia");
    o.where.gpu_bytes = 1u << 20;
    o.even_if_busy = true;
    o.measuring = within;
    auto out = sweep_node(o, [] { return false; });
    std::filesystem::remove_all(root);
    return out;
}

inline finding found(const std::string& name, settings asked = {},
                     std::chrono::steady_clock::duration within = seconds(60)) {
    return swept(name, std::move(asked), within).at(0).found;
}

inline std::string text(const finding& f) {
    std::string out;
    for (const auto& s : f.what) out += s + "\n";
    return out;
}

}  // namespace gpu_sweep
