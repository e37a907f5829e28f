// SPDX-License-Identifier: BSD-3-Clause
//
// NVIDIA's driver library, libcuda, by dlopen: banyan is built, and runs, where there is none. What it gives
// belongs to the process: a look, which ends soon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace banyan::hardware {

inline constexpr const char* cuda_library = "libcuda.so.1";

/// The GPUs of this node in the order of their places on the bus; one of them is in use at a time.
class cuda {
  public:
    using pointer = unsigned long long;  ///< of a GPU's memory
    using stream = void*;

    /// not_found: there is no such library. conflict: it says that no program can use the GPUs.
    static result<cuda> open(const std::string& library);

    std::uint32_t count() const { return count_; }
    /// "0000:1b:00.0"
    result<std::string> bus_id(std::uint32_t gpu) const;
    result<void> use(std::uint32_t gpu) const;

    // Of the GPU in use.
    result<pointer> allocate(std::size_t bytes) const;
    result<void*> allocate_on_host(std::size_t bytes) const;  ///< pinned
    void free_on_host(void* memory) const;
    result<void> to_gpu(pointer to, const void* from, std::size_t bytes) const;
    result<void> from_gpu(void* to, pointer from, std::size_t bytes) const;
    result<stream> make_stream() const;
    result<void> wait_for(stream s) const;

  private:
    using code = int;
    struct functions {
        code (*init)(unsigned) = nullptr;
        code (*count)(int*) = nullptr;
        code (*device)(int*, int) = nullptr;
        code (*bus_id)(char*, int, int) = nullptr;
        code (*retain)(void**, int) = nullptr;
        code (*set_current)(void*) = nullptr;
        code (*allocate)(pointer*, std::size_t) = nullptr;
        code (*allocate_on_host)(void**, std::size_t, unsigned) = nullptr;
        code (*free_on_host)(void*) = nullptr;
        code (*to_gpu)(pointer, const void*, std::size_t) = nullptr;
        code (*from_gpu)(void*, pointer, std::size_t) = nullptr;
        code (*make_stream)(stream*, unsigned) = nullptr;
        code (*wait_for)(stream) = nullptr;
        code (*text)(code, const char**) = nullptr;
    };

    std::unexpected<error> failed(const std::string& doing, code why) const;
    result<void> done(const char* doing, code why) const;

    functions f_;
    std::uint32_t count_ = 0;
};

}  // namespace banyan::hardware
