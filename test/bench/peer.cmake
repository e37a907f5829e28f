# SPDX-License-Identifier: BSD-3-Clause
add_executable(peer_bench peer_bench.cpp)
target_link_libraries(peer_bench PRIVATE banyan_peer banyan_bench banyan_options)
