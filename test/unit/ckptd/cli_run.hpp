// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-ckpt, run by a test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include "steps.hpp"
#include "test/built.hpp"

namespace ckptd_test {

struct said {
    int code = -1;
    std::string text;
    bool has(const std::string& what) const { return text.find(what) != std::string::npos; }
};

inline said run(const std::string& arguments, const std::string& by = "") {
    said out;
    auto* pipe = ::popen(
        (by + "timeout 60 " + banyan::testing::built("banyan-ckpt") + " " + arguments + " 2>&1").c_str(),
        "r");
    REQUIRE(pipe);
    char block[4096];
    for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) != 0;) out.text.append(block, n);
    const int status = ::pclose(pipe);
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    INFO(out.text);
    return out;
}

inline std::string folder(const temporary& t, std::uint64_t step) { return ckpt::step_folder(t.dir(), step); }

}  // namespace ckptd_test
