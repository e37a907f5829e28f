// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "ckptd/daemon/session.hpp"

namespace banyan::ckpt {

/// What is asked for while this is made counts it.
class in_the_making {
  public:
    in_the_making(session_ptr s, std::uint64_t bytes) : s_(std::move(s)), bytes_(bytes) {
        s_->bytes_in_the_making += bytes_;
    }
    in_the_making(const in_the_making&) = delete;
    ~in_the_making() { s_->bytes_in_the_making -= bytes_; }

  private:
    session_ptr s_;
    std::uint64_t bytes_;
};

}  // namespace banyan::ckpt
