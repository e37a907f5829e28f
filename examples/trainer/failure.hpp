// SPDX-License-Identifier: BSD-3-Clause
//
// How a rank ends when it cannot go on: a training step has nobody to hand an error to, so whatever stops it
// is thrown as one failure and caught once in main, which prints it and ends with status 1. The peers see the
// closed connections and do the same.
#pragma once

#include <stdexcept>
#include <string>

namespace trainer {

class failure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// `what: Connection refused` from an errno.
failure failure_errno(const std::string& what, int err);

}  // namespace trainer
