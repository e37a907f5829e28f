// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace banyan::ckpt {

/// A failure as the C interface reports it.
struct outcome {
    int code = 0;
    std::string text;
};

}  // namespace banyan::ckpt
