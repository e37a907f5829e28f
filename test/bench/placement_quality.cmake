# SPDX-License-Identifier: BSD-3-Clause
add_executable(quality_bench placement_quality.cpp placement_quality_bound.cpp placement_quality_bytes.cpp placement_quality_case.cpp placement_quality_day.cpp
                             placement_quality_fabric.cpp placement_quality_oracle.cpp placement_quality_outcome.cpp placement_quality_peers.cpp placement_quality_slurm.cpp
                             ../every_rank.cpp)
target_link_libraries(quality_bench PRIVATE banyan_topo nlohmann_json::nlohmann_json banyan_bench)
# Fifty of the cases, without what needs other programs.
banyan_test_helper(quality_bench)
banyan_catch_test(quality_of_some unit quality_bench --every 10 --no-slurm --no-oracle --no-day)
