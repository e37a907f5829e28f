// SPDX-License-Identifier: BSD-3-Clause
//
// A plan for the tests of its texts: four slots of two ranks, two spares.
#pragma once

#include "train/plan.hpp"

namespace banyan::train::test {

inline plan example_plan() {
    plan p;
    p.job = 77;
    p.generation = 3;
    p.restart = 1;
    p.shape = "tp=2,pp=2,dp=2";
    p.ranks_per_node = 2;
    p.nodes = {"n03", "n01", "n02", "n07"};
    p.addrs = {"127.0.1.3", "127.0.1.1", "127.0.1.2", "127.0.1.7"};
    p.spares = {"n09", "n05"};
    p.spare_addrs = {"127.0.1.9", "127.0.1.5"};
    p.former = {"n03", "n11"};
    p.former_addrs = {"127.0.1.3", "127.0.1.11"};
    p.buddies = {2, 3, 0, 1};
    p.model = topo::model_size{4096, 32, 8192, 16};
    p.later = better_later{60, 45};
    p.spread = "groups=g1:4 straddling-pp=0/2";
    return p;
}

}  // namespace banyan::train::test
