# SPDX-License-Identifier: BSD-3-Clause
# How every target of banyan is compiled, and the helpers that declare one.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(BANYAN_WERROR "Treat warnings as errors" OFF)
set(BANYAN_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them; empty for none")

option(BANYAN_QUICK "Optimise libraries alone: compiling the rest takes half the time" OFF)

find_program(BANYAN_CCACHE ccache)
if(BANYAN_CCACHE)
  # Paths below the source tree do not count, so that all clones and worktrees on a machine share the cache.
  set(banyan_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${BANYAN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${banyan_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${banyan_launcher})
endif()

add_library(banyan_options INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 offers std::expected to compilers that name C++20's final concepts; clang 16 has them and does not say so.
  target_compile_options(banyan_options INTERFACE -D__cpp_concepts=202002L -Wno-builtin-macro-redefined -Wno-macro-redefined)
endif()
# __FILE__ without the place of the clone: another clone finds the unit in the cache.
target_compile_options(banyan_options INTERFACE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_compile_options(banyan_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor $<$<BOOL:${BANYAN_WERROR}>:-Werror>)
# GCC 12 sees overlaps in std::string at -O3 that are not there (GCC bug 105651).
target_compile_options(banyan_options INTERFACE $<$<CONFIG:Release>:-Wno-restrict>)
# All sources of a target in one unit, for the demo: what one source keeps to itself the next one sees, and may shadow, and g++ takes
# it for a header's. A function that nobody calls any more has lost its calls to one of another source: an error.
if(CMAKE_UNITY_BUILD)
  target_compile_options(banyan_options INTERFACE -Wno-shadow -Werror=unused-function $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# Root's programs beside users' code. All but Slurm's plugins (BANYAN_LAZY) are bound when they are loaded. Without optimisation the
# checks of FORTIFY only warn.
target_link_options(banyan_options INTERFACE LINKER:-z,relro $<$<NOT:$<BOOL:$<TARGET_PROPERTY:BANYAN_LAZY>>>:LINKER:-z,now>)
if(NOT BANYAN_SANITIZE)
  target_compile_options(banyan_options INTERFACE -fstack-protector-strong
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)
endif()
if(BANYAN_SANITIZE)
  target_compile_options(banyan_options INTERFACE -fsanitize=${BANYAN_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(banyan_options INTERFACE -fsanitize=${BANYAN_SANITIZE})
  if(BANYAN_SANITIZE STREQUAL "thread")
    # ThreadSanitizer does not see fences. Asio's stand beside a mutex that it does see, the one of a slot's header orders memory
    # for another process.
    target_compile_options(banyan_options INTERFACE -Wno-tsan)
  endif()
endif()
# g++ takes the empty part of a std::optional for uninitialised: 14 where it inlines emplace, 12 where the sanitizers' checks stand between.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (BANYAN_SANITIZE OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
  target_compile_options(banyan_options INTERFACE -Wno-maybe-uninitialized)
endif()

# Sources that the build makes, without what else their targets need: scripts/tidy reads them.
add_custom_target(generated)

# All that is installed, without the tests: what a package needs. Installing builds nothing more.
add_custom_target(programs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# banyan_check_inline(TARGET...): what tests run millions of times has the checks of its memory in line, not as calls.
function(banyan_check_inline)
  if(BANYAN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE --param=asan-instrumentation-with-call-threshold=7000)
    endforeach()
  endif()
endfunction()

# banyan_own_code(TARGET): what a program adds to the libraries, or tests them with, is compiled quickly where a build asks for that.
function(banyan_own_code target)
  if(BANYAN_QUICK OR BANYAN_SANITIZE)
    target_compile_options(${target} PRIVATE -O0 -U_FORTIFY_SOURCE)
  endif()
endfunction()

# banyan_library(NAME SOURCES... [PUBLIC_LIBS ...]): a static library of one part; its headers are included as "part/x.hpp".
function(banyan_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  endif()
  target_link_libraries(${name} PUBLIC ${arg_LIBS} PRIVATE banyan_options)
endfunction()

# banyan_program(NAME SOURCES ... LIBS ... DESTINATION dir [COMPONENT package]): a tool (bin) or a daemon (libexec/banyan).
function(banyan_program name)
  cmake_parse_arguments(arg "" "DESTINATION;COMPONENT" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} banyan_options)
  banyan_own_code(${name})
  if(arg_DESTINATION)
    if(NOT arg_COMPONENT)
      set(arg_COMPONENT tools)
    endif()
    install(TARGETS ${name} DESTINATION ${arg_DESTINATION} COMPONENT ${arg_COMPONENT})
    add_dependencies(programs ${name})
  endif()
endfunction()

# What scripts/test builds: the programs of all tests, and what these start.
add_custom_target(tests)
# The build whose programs the tests on clusters install: Slurm's daemons do not load what has sanitizers in it.
set(BANYAN_PROGRAMS "${CMAKE_BINARY_DIR}" CACHE PATH "Build whose programs the tests on clusters run")

# banyan_test_helper(NAME): a target that tests start or load.
function(banyan_test_helper name)
  add_dependencies(tests ${name})
endfunction()

# banyan_test_uses(NAME TARGET ...): a test starts or loads these, and asks test/built.hpp where they are.
function(banyan_test_uses name)
  add_dependencies(${name} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY BANYAN_BUILT ${ARGN})
endfunction()

# banyan_write_built(): where the build has what tests use, as one source; called after the last banyan_test_uses().
function(banyan_write_built)
  get_property(targets GLOBAL PROPERTY BANYAN_BUILT)
  list(REMOVE_DUPLICATES targets)
  foreach(target ${targets})
    string(APPEND files "        {\"${target}\", \"$<TARGET_FILE:${target}>\"},\n")
  endforeach()
  configure_file(${CMAKE_SOURCE_DIR}/cmake/built.cpp.in ${CMAKE_BINARY_DIR}/built.cpp.in @ONLY)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/built.cpp INPUT ${CMAKE_BINARY_DIR}/built.cpp.in)
endfunction()

# banyan_catch_program(NAME SOURCES ... LIBS ...): a Catch2 program. Its sources share one unit where a build joins them, hence each has a
# namespace of its own.
function(banyan_catch_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} banyan_built banyan_catch_main banyan_options)
  banyan_own_code(${name})
  banyan_test_helper(${name})
endfunction()

# banyan_catch_test(NAME LABEL PROGRAM WORD...): what ctest runs of it.
function(banyan_catch_test name label program)
  add_test(NAME ${name} COMMAND ${program} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT 300 PROCESSORS 2)
  if(BANYAN_SANITIZE)
    set_tests_properties(${name} PROPERTIES
      # What tests preload comes before the sanitizer's runtime.
      ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=1:verify_asan_link_order=0;UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
  endif()
endfunction()

# banyan_unit_test(NAME SOURCES ... LIBS ...): a program that is one test, with the label "unit"; "daemon" where it starts daemons of ours.
function(banyan_unit_test name)
  banyan_catch_program(${name} ${ARGN})
  banyan_catch_test(${name} unit ${name})
endfunction()
function(banyan_daemon_test name)
  banyan_catch_program(${name} ${ARGN})
  banyan_catch_test(${name} daemon ${name})
endfunction()

# banyan_python_test(NAME FILE LABELS SECONDS [WORDS word...] [ENVIRONMENT NAME=value...]): a Python program, ended after SECONDS.
function(banyan_python_test name file labels seconds)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  cmake_parse_arguments(arg "" "" "WORDS;ENVIRONMENT" ${ARGN})
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${arg_WORDS})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${seconds}
    ENVIRONMENT "BANYAN_BUILD=${BANYAN_PROGRAMS};BANYAN_HELPERS=${CMAKE_BINARY_DIR};PYTHONUNBUFFERED=1;${arg_ENVIRONMENT}")
endfunction()
