// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel's huge pages, as a test needs them: set for as long as an object lives, and put back. One test
// of the machine at a time. Who may not set them, or gets none, skips with the reason.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "common/fd.hpp"

namespace ckptd_test {

class kernel_setting {
  public:
    kernel_setting(std::string path, const std::string& value) : path_(std::move(path)) {
        // Held until the process ends, for it may set several.
        static const banyan::unique_fd lock(
            ::open("/tmp/.banyan-test-huge-pages", O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (lock) ::flock(lock.get(), LOCK_EX);
        before_ = read();
        if (const auto from = before_.find('['); from != std::string::npos)
            before_ = before_.substr(from + 1, before_.find(']') - from - 1);
        write(value);
    }
    ~kernel_setting() { write(before_); }
    kernel_setting(const kernel_setting&) = delete;
    std::string read() const {
        std::ifstream in(path_);
        std::string line;
        std::getline(in, line);
        return line;
    }
    void write(const std::string& value) const { std::ofstream(path_) << value << std::flush; }

  private:
    std::string path_, before_;
};

/// So many reserved huge pages are free, and no more.
class huge_page_pool {
  public:
    explicit huge_page_pool(std::uint64_t free) : setting_(dir() + "nr_hugepages", std::to_string(free)) {
        const bool there = number("free_hugepages") == free && number("nr_hugepages") == free;
        if (!there || number("resv_hugepages") != 0 || number("nr_overcommit_hugepages") != 0)
            WARN("skipped: there are not just " << free
                                                << " free huge pages, and this process cannot have that");
        else
            there_ = true;
    }
    explicit operator bool() const { return there_; }
    static std::uint64_t free() { return number("free_hugepages") - number("resv_hugepages"); }

  private:
    static std::string dir() { return "/sys/kernel/mm/hugepages/hugepages-2048kB/"; }
    static std::uint64_t number(const char* name) {
        std::ifstream in(dir() + name);
        std::uint64_t out = 0;
        in >> out;
        return out;
    }
    kernel_setting setting_;
    bool there_ = false;
};

/// Transparent huge pages in shared memory.
class transparent_policy {
  public:
    explicit transparent_policy(const std::string& word)
        : setting_("/sys/kernel/mm/transparent_hugepage/shmem_enabled", word) {
        there_ = setting_.read().find("[" + word + "]") != std::string::npos;
        if (!there_) WARN("skipped: this process cannot set shmem_enabled to " << word);
    }
    explicit operator bool() const { return there_; }

  private:
    kernel_setting setting_;
    bool there_ = false;
};

}  // namespace ckptd_test
