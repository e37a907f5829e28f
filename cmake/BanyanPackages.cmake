# SPDX-License-Identifier: BSD-3-Clause
# The packages, as CPack makes them (scripts/package): one for each component. Their scripts, copyright and changelog are in
# etc/packages. Nothing is started when a package is installed, and Slurm's own daemons are never touched.

set(components tools ckptd faultd library devel)
set(package_tools banyan-tools)
set(package_ckptd banyan-ckptd)
set(package_faultd banyan-faultd)
set(package_library libbanyan-ckpt)
set(package_devel libbanyan-ckpt-dev)
set(package_plugins banyan-slurm-plugins)
set(about_tools "tools for training clusters: fabric, checkpoints, faults"
  "banyan-topo shows and checks an InfiniBand fabric, banyan-ckpt and
banyan-fault the daemons. banyan-run starts a job's step again after a fault. With
the configuration that all of banyan reads, its runbooks and manual pages.")
set(about_ckptd "checkpoint daemon of a training cluster's node"
  "banyan-ckptd keeps the newest training state of a node's ranks in memory, on
a second node and in storage. It is started by the first job that wants it,
or as a service.")
set(about_faultd "fault daemon of a training cluster: agents and controller"
  "banyan-faultd turns kernel log lines and changes of the fabric into
incidents, and takes nodes out. It begins in dry run and is started by
nobody but the administrator.")
set(about_library "library for training processes to save their state"
  "A process hands its state to the checkpoint daemon of its node and goes on
training.")
set(about_devel "library for training processes to save their state: header"
  "Header, pkg-config file and CMake package of libbanyan-ckpt.")
set(about_plugins "plugins for Slurm that place training jobs and keep their state"
  "The select, job_submit and SPANK plugins, for exactly one release of Slurm.
Neither slurmctld nor slurmd is restarted when they are installed.")
set(section_tools admin)
set(section_ckptd admin)
set(section_faultd admin)
set(section_library libs)
set(section_devel libdevel)
set(section_plugins admin)

# A plugin fits one micro release of Slurm. Whose package that is the package manager knows; a Slurm that no package has brought is
# the administrator's to match, as file name and version of the package say.
if(BANYAN_SLURM)
  list(APPEND components plugins)
  string(REGEX MATCH "^([0-9]+\\.[0-9]+)\\.([0-9]+)" slurm_micro "${BANYAN_SLURM_VERSION}")
  math(EXPR next_micro "${CMAKE_MATCH_2} + 1")
  set(slurm_next ${CMAKE_MATCH_1}.${next_micro})
  execute_process(COMMAND dpkg-query -S ${BANYAN_SLURM_TREE}${SLURM_PLUGIN_DIR}/select_cons_tres.so OUTPUT_VARIABLE slurm_owner ERROR_QUIET)
  string(REGEX REPLACE "[:,].*" "" slurm_owner "${slurm_owner}")
  string(STRIP "${slurm_owner}" slurm_owner)
  set(BANYAN_SLURM_DEB "${slurm_owner}" CACHE STRING "Debian package that brings the Slurm of the plugins; empty = none")
  set(BANYAN_SLURM_RPM slurm CACHE STRING "RPM package that brings the Slurm of the plugins; empty = none")
  set(slurm_suffix slurm${BANYAN_SLURM_VERSION})
  string(REGEX REPLACE "[^A-Za-z0-9.]" "." slurm_suffix "${slurm_suffix}")
  set(deb_release 1+${slurm_suffix})
  set(rpm_release 1.${slurm_suffix})
else()
  set(deb_release 1)
  set(rpm_release 1)
endif()
set(BANYAN_DEB_VERSION ${PROJECT_VERSION}-${deb_release})

set(CPACK_PACKAGE_NAME banyan)
set(CPACK_PACKAGE_VENDOR "the banyan authors")
# Whom those who get the packages can ask: the site that builds them. Mail to example.org reaches nobody.
set(BANYAN_MAINTAINER "maintainer not set <not-set@example.org>" CACHE STRING "Maintainer of the packages: \"NAME <MAIL@HOST>\"")
if(NOT BANYAN_MAINTAINER MATCHES "^[^<>@,%\n]+ <[^<>@,% \n]+@[^<>@,% \n]+>$")
  message(FATAL_ERROR "BANYAN_MAINTAINER is '${BANYAN_MAINTAINER}': write -DBANYAN_MAINTAINER='NAME <MAIL@HOST>', "
    "without a comma or a percent sign in it")
endif()
set(CPACK_PACKAGE_CONTACT "${BANYAN_MAINTAINER}")
# CPack puts a summary that is not its default before each package's own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_GENERATOR DEB)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${deb_release})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
if(BANYAN_SLURM AND NOT slurm_owner)
  get_filename_component(slurm_libraries ${SLURM_LIBRARY} DIRECTORY)  # where only a Slurm of no package has its library
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${slurm_libraries})
endif()
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE ${rpm_release})
set(CPACK_RPM_PACKAGE_LICENSE "BSD-3-Clause")
set(CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __requires_exclude ^select_cons_tres[.]so.*$\n%global __provides_exclude_from .*/slurm.*/.*[.]so$\n%define _build_id_links none\n%global packager ${BANYAN_MAINTAINER}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /etc /etc/logrotate.d /var /var/lib /var/log ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_PREFIX}/lib ${CMAKE_INSTALL_FULL_LIBDIR}
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/cmake ${CMAKE_INSTALL_PREFIX}/lib/systemd ${BANYAN_UNITDIR}
  ${CMAKE_INSTALL_PREFIX}/lib/tmpfiles.d ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR}
  ${CMAKE_INSTALL_FULL_DATADIR} ${CMAKE_INSTALL_FULL_DATADIR}/doc ${CMAKE_INSTALL_FULL_MANDIR} ${CMAKE_INSTALL_FULL_MANDIR}/man1
  ${CMAKE_INSTALL_FULL_MANDIR}/man5 ${CMAKE_INSTALL_FULL_MANDIR}/man7 ${CMAKE_INSTALL_FULL_MANDIR}/man8
  ${CMAKE_INSTALL_FULL_DATADIR}/bash-completion ${CMAKE_INSTALL_FULL_DATADIR}/bash-completion/completions)
if(SLURM_PLUGIN_DIR)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION ${SLURM_PLUGIN_DIR})
endif()

set(scripts ${CMAKE_SOURCE_DIR}/etc/packages)
configure_file(${scripts}/changelog.in packages/changelog @ONLY)
execute_process(COMMAND gzip -9nf changelog WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/packages)

# What both kinds of packages ask before the plugins go. rpmbuild would read a % as its own.
if(SLURM_PLUGIN_DIR)
  string(REGEX REPLACE "/lib[^/]*/.*$" "/etc" SLURM_ETC "${SLURM_PLUGIN_DIR}")
  set(REMOVAL remove)
  set(REMOVE "apt-get remove")
  configure_file(${scripts}/plugins-stay.sh packages/plugins/prerm @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(REMOVAL 0)
  set(REMOVE "dnf remove")
  configure_file(${scripts}/plugins-stay.sh packages/plugins/preun.in @ONLY)
  file(READ ${CMAKE_BINARY_DIR}/packages/plugins/preun.in preun)
  string(REPLACE "%" "%%" preun "${preun}")
  file(CONFIGURE OUTPUT packages/plugins/preun CONTENT "${preun}" @ONLY)
endif()

# banyan_package(COMPONENT): name, words, scripts and what every Debian package must have.
function(banyan_package component)
  string(TOUPPER ${component} key)
  list(GET about_${component} 0 summary)
  list(GET about_${component} 1 text)
  set(name ${package_${component}})
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section_${component}} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_RPM_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_RPM_${key}_PACKAGE_SUMMARY "${summary}" PARENT_SCOPE)
  set(CPACK_RPM_${key}_PACKAGE_DESCRIPTION "${text}" PARENT_SCOPE)

  file(GLOB control ${scripts}/deb/${component}/*)
  if(EXISTS ${CMAKE_BINARY_DIR}/packages/${component}/prerm)
    list(APPEND control ${CMAKE_BINARY_DIR}/packages/${component}/prerm)
  endif()
  get_property(config GLOBAL PROPERTY banyan_config_${component})
  if(config)
    list(JOIN config "\n" lines)
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/packages/${component}/conffiles CONTENT "${lines}\n")
    list(APPEND control ${CMAKE_BINARY_DIR}/packages/${component}/conffiles)
    list(TRANSFORM config PREPEND "%config(noreplace) ")
    set(CPACK_RPM_${key}_USER_FILELIST "${config}" PARENT_SCOPE)
  endif()
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA "${control}" PARENT_SCOPE)
  foreach(pair post:POST_INSTALL preun:PRE_UNINSTALL postun:POST_UNINSTALL)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 file)
    list(GET pair 1 when)
    foreach(script ${scripts}/rpm/${component}.${file} ${CMAKE_BINARY_DIR}/packages/${component}/${file})
      if(EXISTS ${script})
        set(CPACK_RPM_${key}_${when}_SCRIPT_FILE ${script} PARENT_SCOPE)
      endif()
    endforeach()
  endforeach()

  install(FILES ${scripts}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
  install(FILES ${CMAKE_BINARY_DIR}/packages/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    RENAME changelog.Debian.gz COMPONENT ${component})
endfunction()

foreach(component ${components})
  banyan_package(${component})
endforeach()

# Programs of one release go together: they share configuration and what goes over the wire.
function(banyan_needs component deb rpm)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${deb}" PARENT_SCOPE)
  set(CPACK_RPM_${key}_PACKAGE_REQUIRES "${rpm}" PARENT_SCOPE)
endfunction()
set(same_deb "(= ${BANYAN_DEB_VERSION})")
set(same_rpm "= ${PROJECT_VERSION}-${rpm_release}")
banyan_needs(tools "libbanyan-ckpt ${same_deb}" "libbanyan-ckpt ${same_rpm}")
banyan_needs(ckptd "banyan-tools ${same_deb}" "banyan-tools ${same_rpm}")
banyan_needs(faultd "banyan-tools ${same_deb}" "banyan-tools ${same_rpm}")
banyan_needs(devel "libbanyan-ckpt ${same_deb}" "libbanyan-ckpt ${same_rpm}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS infiniband-diags)
if(BANYAN_SLURM)
  set(deb "banyan-tools ${same_deb}")
  set(rpm "banyan-tools ${same_rpm}")
  if(BANYAN_SLURM_DEB)
    string(APPEND deb ", ${BANYAN_SLURM_DEB} (>= ${slurm_micro}), ${BANYAN_SLURM_DEB} (<< ${slurm_next}~)")
  endif()
  if(BANYAN_SLURM_RPM)
    string(APPEND rpm ", ${BANYAN_SLURM_RPM} >= ${slurm_micro}, ${BANYAN_SLURM_RPM} < ${slurm_next}")
  endif()
  banyan_needs(plugins "${deb}" "${rpm}")
  set(CPACK_DEBIAN_PLUGINS_PACKAGE_RECOMMENDS banyan-ckptd)
  set(CPACK_RPM_PLUGINS_PACKAGE_LICENSE "BSD-3-Clause AND GPL-2.0-or-later")
endif()
include(CPack)
