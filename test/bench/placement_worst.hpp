// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "test/bench/figures.hpp"

namespace banyan::bench {

/// How long slurmctld would be held up by `requests` random and adversarial ones on fabrics of 12,800 hosts
/// (test/random_requests.hpp). Prints the request that takes longest to stderr.
void measure_worst(figures& out, int requests);

}  // namespace banyan::bench
