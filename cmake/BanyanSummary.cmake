# SPDX-License-Identifier: BSD-3-Clause
# One summary of what was found and what is left out without it.

function(banyan_summary_line name value without)
  if(value)
    message(STATUS "  ${name}: ${value}")
  else()
    message(STATUS "  ${name}: not found; left out: ${without}")
  endif()
endfunction()

message(STATUS "banyan ${PROJECT_VERSION}")
if(BANYAN_SLURM)
  set(slurm_found "${BANYAN_SLURM_VERSION} (${BANYAN_SLURM_SOURCE})")
endif()
banyan_summary_line("Slurm" "${slurm_found}" "select and SPANK plugins, fault actions (run scripts/setup)")
if(NOT BANYAN_SANITIZE)
  banyan_summary_line("Zig" "${BANYAN_ZIG}" "a libbanyan_ckpt for systems other than this one (run scripts/setup)")
endif()
banyan_summary_line("MPI" "${BANYAN_MPIEXEC}" "the MPI example (run scripts/setup)")
