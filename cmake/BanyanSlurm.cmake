# SPDX-License-Identifier: BSD-3-Clause
# The Slurm that is built for: library, public headers and plugin folder of this system, or of a tree that is given; private headers of
# a configured source of the very same release (scripts/setup brings Debian 12's). Without a source the rest of banyan builds all the same.
# The cluster of a build with a tree runs on that tree (scripts/lib/banyan_cluster/installed.py reads it in the cache).
set(BANYAN_SLURM_SOURCE "${CMAKE_SOURCE_DIR}/build/deps/slurm" CACHE PATH "Configured source of the Slurm that is built for; empty = none")
set(BANYAN_SLURM_TREE "" CACHE PATH "Root below which that Slurm is installed, its DESTDIR; empty = this system")

# banyan_slurm_release(OUT FOLDER): "22.05.8", as slurm/slurm_version.h in FOLDER has it.
function(banyan_slurm_release out folder)
  file(STRINGS ${folder}/slurm/slurm_version.h line REGEX "^#define[ \t]+SLURM_VERSION_NUMBER")
  if(NOT line MATCHES "0x(..)(..)(..)")
    message(FATAL_ERROR "${folder}/slurm/slurm_version.h tells no release of Slurm")
  endif()
  math(EXPR number "10000 * 0x${CMAKE_MATCH_1} + 100 * 0x${CMAKE_MATCH_2} + 0x${CMAKE_MATCH_3}")
  string(REGEX REPLACE "^(..)(..)0?(.+)$" "\\1.\\2.\\3" number ${number})
  set(${out} ${number} PARENT_SCOPE)
endfunction()

set(slurm_where)
if(BANYAN_SLURM_TREE)
  get_filename_component(BANYAN_SLURM_TREE "${BANYAN_SLURM_TREE}" ABSOLUTE)  # without a slash at its end
  set(CMAKE_FIND_ROOT_PATH ${BANYAN_SLURM_TREE})
  set(slurm_where ONLY_CMAKE_FIND_ROOT_PATH)
endif()
find_library(SLURM_LIBRARY slurm PATHS /usr/lib64 ${slurm_where})
find_path(SLURM_INCLUDE_DIR slurm/slurm.h ${slurm_where})
set(slurm_libraries /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64 /usr/lib)
if(SLURM_LIBRARY)
  get_filename_component(beside ${SLURM_LIBRARY} DIRECTORY)
  list(PREPEND slurm_libraries ${beside})
endif()
find_path(SLURM_PLUGIN_DIR select_cons_tres.so PATHS ${slurm_libraries} PATH_SUFFIXES slurm-wlm slurm NO_DEFAULT_PATH ${slurm_where})
unset(CMAKE_FIND_ROOT_PATH)

if(BANYAN_SLURM_TREE)
  foreach(part SLURM_LIBRARY SLURM_INCLUDE_DIR SLURM_PLUGIN_DIR)
    string(FIND "${${part}}" "${BANYAN_SLURM_TREE}/usr/" at)
    if(NOT at EQUAL 0)
      message(FATAL_ERROR "${part} is ${${part}}, and not below BANYAN_SLURM_TREE=${BANYAN_SLURM_TREE}, where usr/lib/libslurm.so, "
        "usr/include/slurm/slurm.h and usr/lib/slurm/select_cons_tres.so are expected, as from `configure --prefix=/usr` and "
        "`make install DESTDIR=…`. A build folder is for one Slurm: take a new one for another")
    endif()
  endforeach()
  # Where the plugins stand on a system on which that Slurm is installed.
  string(REPLACE "${BANYAN_SLURM_TREE}/" "/" SLURM_PLUGIN_DIR ${SLURM_PLUGIN_DIR})
endif()

set(BANYAN_SLURM OFF)
if(SLURM_LIBRARY AND SLURM_INCLUDE_DIR)
  add_library(banyan_libslurm_headers INTERFACE)
  target_include_directories(banyan_libslurm_headers SYSTEM INTERFACE ${SLURM_INCLUDE_DIR})
  add_library(banyan_libslurm INTERFACE)
  target_link_libraries(banyan_libslurm INTERFACE banyan_libslurm_headers ${SLURM_LIBRARY})
  if(BANYAN_SLURM_SOURCE AND EXISTS ${BANYAN_SLURM_SOURCE}/config.h)
    set(BANYAN_SLURM ON)
    banyan_slurm_release(installed ${SLURM_INCLUDE_DIR})
    banyan_slurm_release(source ${BANYAN_SLURM_SOURCE})
    if(NOT installed STREQUAL source)
      message(FATAL_ERROR "${SLURM_INCLUDE_DIR}/slurm is of Slurm ${installed}, and the source in ${BANYAN_SLURM_SOURCE} of ${source}: "
        "name a source of ${installed} in which configure has run (-DBANYAN_SLURM_SOURCE=…; empty = no plugins)")
    endif()
    file(STRINGS ${BANYAN_SLURM_SOURCE}/META slurm_version REGEX "^  Version:")
    string(REGEX REPLACE ".*Version:[ \t]*" "" BANYAN_SLURM_VERSION "${slurm_version}")
  endif()
endif()

# As --version says it.
if(BANYAN_SLURM_VERSION)
  set(BANYAN_VERSION_TEXT "${PROJECT_VERSION} (Slurm ${BANYAN_SLURM_VERSION})")
else()
  set(BANYAN_VERSION_TEXT "${PROJECT_VERSION} (without Slurm)")
endif()
