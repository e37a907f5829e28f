// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace banyan::testing {

/// A path in a folder that is this process's alone, readable by all users. The folder goes with the process.
/// A process id would not do as its name: one that was killed leaves its files, and its id comes again.
inline std::filesystem::path scratch_path(const std::string& name) {
    struct folder {
        const pid_t owner = ::getpid();  // a forked child leaves the folder to its parent
        std::string path = (std::filesystem::temp_directory_path() / "banyan-test-XXXXXX").string();
        folder() {
            if (!::mkdtemp(path.data()) || ::chmod(path.c_str(), 0755) != 0)
                throw std::system_error(errno, std::generic_category(), path);
        }
        ~folder() {
            std::error_code ignored;
            if (::getpid() == owner) std::filesystem::remove_all(path, ignored);
        }
    };
    static const folder own;
    return std::filesystem::path(own.path) / name;
}

}  // namespace banyan::testing
