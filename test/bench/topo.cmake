# SPDX-License-Identifier: BSD-3-Clause
add_executable(topo_bench topo_bench.cpp topo_mixed.cpp topo_score.cpp topo_speed.cpp)
target_link_libraries(topo_bench PRIVATE banyan_topo_generate CLI11::CLI11 banyan_options)
