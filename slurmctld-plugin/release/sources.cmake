# SPDX-License-Identifier: GPL-2.0-or-later
# What the select plugin compiles for some releases alone.
set(release_sources)
if(BANYAN_SLURM_VERSION VERSION_LESS 25.05)
  # slurmctld asks its select plugin about steps.
  list(APPEND release_sources select/step_dispatch.cpp step/step_nodes.cpp step/step_order.cpp step/broken_steps.cpp)
endif()
if(BANYAN_SLURM_VERSION VERSION_LESS 22.06)
  list(APPEND release_sources step/finished_steps.cpp)
endif()
