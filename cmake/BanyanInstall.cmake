# SPDX-License-Identifier: BSD-3-Clause
# What goes where, and into which package. A component is a package: plugins, ckptd, faultd, tools, library, devel (BanyanPackages.cmake).
#
# Programs, libraries, pages and units follow CMAKE_INSTALL_PREFIX. Configuration, state, sockets and logs are the system's at any
# prefix: /etc/banyan, /var/lib/banyan, /run/banyan, /var/log/banyan. Text that names a program is written for /usr in the source
# and adapted here, so that the programs' defaults (common/build_info.cpp), units, samples and pages agree.

set(BANYAN_LIBEXECDIR ${CMAKE_INSTALL_FULL_LIBEXECDIR}/banyan)
if(NOT BANYAN_UNITDIR)
  set(BANYAN_UNITDIR ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
endif()
set(BANYAN_DOCDIR ${CMAKE_INSTALL_FULL_DATADIR}/doc/banyan)

# Another prefix at the time of installation would part the programs from what was built into them.
install(CODE "
  if(NOT \"\${CMAKE_INSTALL_PREFIX}\" STREQUAL \"${CMAKE_INSTALL_PREFIX}\")
    message(FATAL_ERROR \"banyan was configured for ${CMAKE_INSTALL_PREFIX}, which its programs, units and samples name: \"
      \"configure it again with -DCMAKE_INSTALL_PREFIX=\${CMAKE_INSTALL_PREFIX}, or set DESTDIR for a tree that is packed later\")
  endif()" ALL_COMPONENTS)

# banyan_adapted(OUT FILE): FILE's text with the prefix of this build, as a file of the same name in the build tree.
function(banyan_adapted out file)
  get_filename_component(file ${file} ABSOLUTE)
  file(RELATIVE_PATH inside ${CMAKE_SOURCE_DIR} ${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REPLACE "/usr/libexec/banyan" "${BANYAN_LIBEXECDIR}" text "${text}")
  string(REPLACE "/usr/bin/banyan-" "${CMAKE_INSTALL_FULL_BINDIR}/banyan-" text "${text}")
  string(REPLACE "/usr/share/banyan" "${CMAKE_INSTALL_FULL_DATADIR}/banyan" text "${text}")
  string(REPLACE "/usr/share/doc/banyan" "${BANYAN_DOCDIR}" text "${text}")
  file(WRITE ${CMAKE_BINARY_DIR}/adapted/${inside} "${text}")
  set(${out} ${CMAKE_BINARY_DIR}/adapted/${inside} PARENT_SCOPE)
endfunction()

# banyan_install_text(COMPONENT DESTINATION [PROGRAM] FILES ...): adapted texts.
function(banyan_install_text component destination)
  cmake_parse_arguments(arg "PROGRAM" "" "FILES" ${ARGN})
  set(kind FILES)
  if(arg_PROGRAM)
    set(kind PROGRAMS)
  endif()
  foreach(file ${arg_FILES})
    banyan_adapted(text ${file})
    install(${kind} ${text} DESTINATION ${destination} COMPONENT ${component})
  endforeach()
endfunction()

# banyan_install_page(COMPONENT FILE): a manual page, compressed as distributions have them.
function(banyan_install_page component file)
  banyan_adapted(page ${file})
  execute_process(COMMAND gzip -9nc ${page} OUTPUT_FILE ${page}.gz COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^.*\\." "" section ${file})
  install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()

# banyan_install_config(COMPONENT /FOLDER FILE): a file that belongs to the admin once it is there.
function(banyan_install_config component folder file)
  banyan_adapted(text ${file})
  get_filename_component(name ${file} NAME)
  install(CODE "
    if(NOT EXISTS \"\$ENV{DESTDIR}${folder}/${name}\")
      file(INSTALL DESTINATION \"${folder}\" TYPE FILE FILES \"${text}\")
    endif()" COMPONENT ${component})
  set_property(GLOBAL APPEND PROPERTY banyan_config_${component} ${folder}/${name})
endfunction()
