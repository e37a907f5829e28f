// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "test/scratch_path.hpp"

/// A folder for the files of one test, removed with it. Stands for a node's root, too.
struct scratch {
    std::filesystem::path path = banyan::testing::scratch_path("sweep");
    scratch() {
        std::filesystem::remove_all(path);
        std::filesystem::create_directories(path);
    }
    ~scratch() { std::filesystem::remove_all(path); }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;

    std::filesystem::path write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((path / name).parent_path());
        std::ofstream(path / name) << text;
        return path / name;
    }
};
