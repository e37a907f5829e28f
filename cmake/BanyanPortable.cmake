# SPDX-License-Identifier: BSD-3-Clause
# A library that other programs' processes load, on whatever system: one file with its C++ library in it, for an old C library.
# Zig's compiler (clang, with the symbols of every glibc) makes it so; without Zig g++ does, for the C library of this host.

set(BANYAN_GLIBC 2.28)  # of RHEL 8 and of conda's Python
set(BANYAN_ZIG_DIR "${CMAKE_SOURCE_DIR}/build/deps/zig" CACHE PATH "Where scripts/setup has put Zig, which builds libbanyan_ckpt for older systems")
if(EXISTS ${BANYAN_ZIG_DIR}/ziglang/zig AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT BANYAN_SANITIZE)
  set(BANYAN_ZIG ${BANYAN_ZIG_DIR}/ziglang/zig)
endif()

# Zig brings the C library's headers: of this host's it is to see those alone that are named here.
set(BANYAN_PLAIN_HEADERS ${CMAKE_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${BANYAN_PLAIN_HEADERS})
find_path(BANYAN_FMT_HEADERS fmt/format.h REQUIRED)
find_path(BANYAN_JSON_HEADERS nlohmann/json.hpp REQUIRED)
file(CREATE_LINK ${BANYAN_FMT_HEADERS}/fmt ${BANYAN_PLAIN_HEADERS}/fmt SYMBOLIC)
file(CREATE_LINK ${BANYAN_JSON_HEADERS}/nlohmann ${BANYAN_PLAIN_HEADERS}/nlohmann SYMBOLIC)

# banyan_portable(TARGET): of a shared library that links no other.
function(banyan_portable target)
  target_include_directories(${target} SYSTEM PRIVATE ${BANYAN_PLAIN_HEADERS})
  if(BANYAN_ZIG)
    # CMake calls what it knows as a compiler by a launcher; this one calls Zig in its place.
    execute_process(COMMAND ${BANYAN_ZIG} version OUTPUT_VARIABLE BANYAN_ZIG_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-libgcc-file-name OUTPUT_VARIABLE BANYAN_LIBGCC OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    set(BANYAN_ZIG_TARGET ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.${BANYAN_GLIBC})
    list(JOIN banyan_launcher " " BANYAN_ZIG_LAUNCHER)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/zig-clang++.in ${CMAKE_BINARY_DIR}/zig-clang++ @ONLY USE_SOURCE_PERMISSIONS)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/zig-in-place.in ${CMAKE_BINARY_DIR}/zig-in-place @ONLY USE_SOURCE_PERMISSIONS)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${CMAKE_BINARY_DIR}/zig-in-place;compile"
      CXX_LINKER_LAUNCHER "${CMAKE_BINARY_DIR}/zig-in-place;link")
  elseif(NOT BANYAN_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
