# SPDX-License-Identifier: BSD-3-Clause
add_library(ckpt_count_crc MODULE count_crc.cpp)
target_link_libraries(ckpt_count_crc PRIVATE banyan_options ${CMAKE_DL_LIBS})
# Of the client its connection alone, for hundreds of ranks in one process.
add_executable(ckpt_bench ckpt_bench.cpp ckpt_fleet.cpp ckpt_rank.cpp ckpt_saves.cpp ckpt_flush.cpp ckpt_copies.cpp ckpt_buddy.cpp
  ckpt_checksums.cpp ckpt_commit.cpp ckpt_stall.cpp ${CMAKE_SOURCE_DIR}/ckptd/client/connection.cpp ${CMAKE_SOURCE_DIR}/ckptd/buffers/joined.cpp)
target_link_libraries(ckpt_bench PRIVATE banyan_ckpt banyan_ckpt_protocol banyan_credentials banyan_bench)
banyan_test_uses(ckpt_bench banyan-ckptd ckpt_count_crc)
