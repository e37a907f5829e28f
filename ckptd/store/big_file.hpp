// SPDX-License-Identifier: BSD-3-Clause
//
// Writing gigabytes into one new file at the speed of the device: past the page cache where the file system
// can, several chunks under way at once, so that one is looked at while others are written, and out of the
// way of the training: the threads have the lowest priority that they can have, for the processor and for the
// disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "ckptd/store/user_dir.hpp"
#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

class big_file {
  public:
    /// A new file `name` in `folder`; what is there under that name goes. `memory` is what will be written:
    /// for direct writes it has to lie on a page. `shown` is the path for messages.
    static result<big_file> create(int folder, const std::string& name, std::span<const std::byte> memory,
                                   const share_modes& modes, const std::string& shown);

    /// Called with the number of a chunk when it has been written, from several threads; an error ends the
    /// whole. What is changed before or while it is written is seen; so is, for nothing, what is changed
    /// then.
    using look = std::function<result<void>(std::size_t chunk, std::span<const std::byte> data)>;
    /// Writes all of `memory` with the rights of the calling thread and waits until it is on the device.
    /// After an error nothing is known of the file's content.
    result<void> write(const look& each);

  private:
    big_file(unique_fd fd, std::span<const std::byte> memory, bool direct, std::string shown)
        : fd_(std::move(fd)), memory_(memory), direct_(direct), shown_(std::move(shown)) {}
    result<void> put(std::span<const std::byte> data, std::uint64_t at);
    result<void> write_chunk(std::size_t chunk);
    result<void> write_end();
    result<void> leave_direct();

    unique_fd fd_;
    std::span<const std::byte> memory_;
    bool direct_;
    std::string shown_;
};

}  // namespace banyan::ckpt
