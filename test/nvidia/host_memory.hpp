// SPDX-License-Identifier: BSD-3-Clause
//
// The host's memory as the driver knows it: what is page-locked, and by which call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mock {

class host_memory {
  public:
    enum class made_by { registering, allocating };

    void lock(const void* at, std::size_t bytes, made_by how);
    void unlock(const void* at, made_by how);
    /// The host's side of a copy.
    void copy(const void* at, std::size_t bytes) const;

  private:
    struct range {
        std::uintptr_t from = 0, to = 0;
        made_by how{};
        std::string backing{};  ///< what was mapped there then
    };
    std::vector<range> locked_;
};

}  // namespace mock
