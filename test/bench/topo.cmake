# SPDX-License-Identifier: BSD-3-Clause
add_executable(topo_bench topo_bench.cpp topo_mixed.cpp topo_score.cpp topo_speed.cpp topo_commands.cpp)
banyan_test_uses(topo_bench banyan-topo)
target_link_libraries(topo_bench PRIVATE banyan_topo_generate nlohmann_json::nlohmann_json banyan_bench)
