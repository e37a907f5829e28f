// SPDX-License-Identifier: GPL-2.0-or-later
#include <catch2/catch.hpp>

#include "slurmctld-plugin/fabric/gpu_kinds.hpp"

using namespace banyan::slurm;

TEST_CASE("of a node's Gres the GPUs, wherever they are plugged in", "[slurmctld]") {
    CHECK(gpus_in("gpu:h100:8(S:0-1),nvme:2") == "gpu:h100:8");
    CHECK(gpus_in("nvme:2,gpu:a100:2,gpu:a30:1") == "gpu:a100:2,gpu:a30:1");
    CHECK(gpus_in("gpu") == "gpu");
    CHECK(gpus_in("gpumem:80").empty());
    CHECK(gpus_in("").empty());
}

TEST_CASE("nodes with the same GPUs have one number, the first the lowest", "[slurmctld]") {
    gpu_kinds kinds;
    CHECK(kinds.number_of("gpu:h100:8,nvme:2") == 0);
    CHECK(kinds.number_of("gpu:a100:8") == 1);
    CHECK(kinds.number_of("gpu:h100:8(S:0)") == 0);
    CHECK(kinds.number_of("gpu:h100:4") == 2);
    CHECK(kinds.number_of("") == 3);
}
