# SPDX-License-Identifier: BSD-3-Clause
add_executable(fault_bench fault_bench.cpp ${CMAKE_SOURCE_DIR}/test/fault_lines.cpp)
target_include_directories(fault_bench PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(fault_bench PRIVATE banyan_fault_core banyan_bench banyan_options)
add_executable(faultd_bench faultd_bench.cpp)
target_include_directories(faultd_bench PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(faultd_bench PRIVATE banyan_fault_daemon banyan_bench banyan_options)
