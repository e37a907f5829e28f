// SPDX-License-Identifier: BSD-3-Clause
//
// A munged of one's own, for agents and controllers that talk to each other.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>

#include "common/child.hpp"
#include "common/munge.hpp"

namespace banyan::fault::testing {

/// As long as it lives, in a folder that is there.
class munge_daemon {
  public:
    explicit munge_daemon(const std::filesystem::path& dir) : dir_(dir / "munge") {
        std::filesystem::create_directories(dir_);
        // munged wants nobody else to be able to change what it uses.
        for (const auto& folder : {dir, dir_}) ::chmod(folder.c_str(), 0755);
        const auto key = (dir / "key").string();
        std::ofstream(key, std::ios::binary) << std::string(1024, 'k');
        ::chmod(key.c_str(), 0600);
        const unique_fd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
        child_setup quiet;
        quiet.out = quiet.err = nowhere.get();
        auto began =
            child::start({"munged", "--foreground", "--force", "--key-file", key, "--socket", socket(),
                          "--pid-file", in("pid"), "--log-file", in("log"), "--seed-file", in("seed")},
                         quiet);
        if (!began) throw std::runtime_error(began.error().text());
        process_.emplace(std::move(*began));
        for (int turn = 0; !munge::encode(socket(), "x"); ++turn) {
            if (turn == 1'200) throw std::runtime_error("munged does not answer");
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
    }
    std::string socket() const { return in("socket"); }

  private:
    std::string in(const char* name) const { return (dir_ / name).string(); }
    std::filesystem::path dir_;
    std::optional<child> process_;
};

}  // namespace banyan::fault::testing
