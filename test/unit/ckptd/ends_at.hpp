// SPDX-License-Identifier: BSD-3-Clause
//
// A program that ends, or stops, at a call of its own: ends_at.cpp says which calls those are.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/built.hpp"

namespace ckptd_test {

class ends_at {
  public:
    ends_at() {
        std::string pattern = (std::filesystem::temp_directory_path() / "banyan-ends-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
    }
    ~ends_at() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    ends_at(const ends_at&) = delete;

    /// What the program is run by.
    std::vector<std::string> before() const {
        return {"env", "LD_PRELOAD=" + banyan::testing::built("ckptd_ends_at"),
                "ENDS_AT=" + folder_.string()};
    }
    /// From now on: before the call of this number.
    void call(const std::string& kind, int number, int signal) const {
        const auto text = std::to_string(number) + " " + std::to_string(signal);
        // In one piece, however soon it is read.
        std::ofstream(folder_ / "next") << text;
        std::filesystem::rename(folder_ / "next", folder_ / kind);
    }
    bool has_come(const std::string& kind) const { return !std::filesystem::exists(folder_ / kind); }
    void never(const std::string& kind) const { std::filesystem::remove(folder_ / kind); }

  private:
    std::filesystem::path folder_;
};

}  // namespace ckptd_test
