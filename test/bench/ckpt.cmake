# SPDX-License-Identifier: BSD-3-Clause
add_executable(ckpt_bench ckpt_bench.cpp)
target_compile_definitions(ckpt_bench PRIVATE BANYAN_CKPTD="$<TARGET_FILE:banyan-ckptd>")
target_link_libraries(ckpt_bench PRIVATE banyan_ckpt banyan_ckpt_protocol banyan_bench)
add_dependencies(ckpt_bench banyan-ckptd)
