# SPDX-License-Identifier: BSD-3-Clause
# What banyan builds on: all from the distribution. What is only found and loaded at run time (CUDA) never stops a build.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED CONFIG)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(SQLite3 REQUIRED)
find_package(prometheus-cpp REQUIRED)
pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(TINYXML2 REQUIRED IMPORTED_TARGET tinyxml2)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

find_library(MUNGE_LIBRARY munge REQUIRED)
add_library(banyan_munge INTERFACE)
target_link_libraries(banyan_munge INTERFACE ${MUNGE_LIBRARY})

# NCCL's header at build time, its library by dlopen at run time: banyan-sweep's all-reduce. It may come from the PyPI package
# nvidia-nccl-cu13: pip install it, or unpack its nvidia/nccl somewhere.
set(BANYAN_NCCL "" CACHE PATH "Folder with include/nccl.h")
file(GLOB nccl_of_python LIST_DIRECTORIES true /usr/local/lib/python3*/dist-packages/nvidia/nccl /usr/lib/python3*/dist-packages/nvidia/nccl
  ${CMAKE_SOURCE_DIR}/build/deps/nccl)
find_path(BANYAN_NCCL_INCLUDE nccl.h HINTS ${BANYAN_NCCL} PATHS ${nccl_of_python} /usr/local /usr PATH_SUFFIXES include)
