# SPDX-License-Identifier: BSD-3-Clause
add_executable(placement_bench placement_bench.cpp placement_worst.cpp ../random_requests.cpp)
target_link_libraries(placement_bench PRIVATE banyan_topo_generate banyan_topo banyan_bench)
