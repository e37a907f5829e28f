// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "test/bench/figures.hpp"

namespace banyan::bench {

/// How long slurmctld would be held up by `questions` random and adversarial ones on fabrics of 12,800 hosts
/// (test/placement_questions.hpp). Prints the question that takes longest to stderr.
void measure_worst(figures& out, int questions);

}  // namespace banyan::bench
