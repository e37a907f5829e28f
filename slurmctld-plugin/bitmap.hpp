// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <memory>

#include "slurm_compat.hpp"

namespace banyan::slurm {

struct bitmap_deleter {
    void operator()(bitstr_t* b) const { bit_free(b); }
};
using bitmap = std::unique_ptr<bitstr_t, bitmap_deleter>;

}  // namespace banyan::slurm
