# SPDX-License-Identifier: BSD-3-Clause
add_executable(ckpt_bench ckpt_bench.cpp)
target_include_directories(ckpt_bench PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_definitions(ckpt_bench PRIVATE BANYAN_CKPTD="$<TARGET_FILE:banyan-ckptd>")
target_link_libraries(ckpt_bench PRIVATE banyan_ckpt banyan_ckpt_protocol banyan_options)
add_dependencies(ckpt_bench banyan-ckptd)
