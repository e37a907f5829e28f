// SPDX-License-Identifier: BSD-3-Clause
//
// Ownership of file descriptors and mappings.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace banyan {

/// Owns one file descriptor; closes it. Movable, not copyable.
class unique_fd {
  public:
    unique_fd() = default;
    explicit unique_fd(int fd) : fd_(fd) {}
    unique_fd(unique_fd&& o) noexcept : fd_(o.release()) {}
    unique_fd& operator=(unique_fd&& o) noexcept {
        if (this != &o) reset(o.release());
        return *this;
    }
    ~unique_fd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

  private:
    int fd_ = -1;
};

/// Owns one mmap'ed range; unmaps it. Movable, not copyable.
class mapping {
  public:
    mapping() = default;
    mapping(void* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
    mapping(mapping&& o) noexcept
        : address_(std::exchange(o.address_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
    mapping& operator=(mapping&& o) noexcept {
        if (this != &o) {
            unmap();
            address_ = std::exchange(o.address_, nullptr);
            bytes_ = std::exchange(o.bytes_, 0);
        }
        return *this;
    }
    ~mapping() { unmap(); }

    std::byte* data() const { return static_cast<std::byte*>(address_); }
    std::size_t size() const { return bytes_; }
    explicit operator bool() const { return address_ != nullptr; }

  private:
    void unmap() {
        if (address_) ::munmap(address_, bytes_);
    }
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace banyan
