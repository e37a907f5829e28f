# SPDX-License-Identifier: BSD-3-Clause
"""The development cluster: a real Slurm of many slurmds and a real subnet manager on a simulated fabric, on one host.

layout     where everything lies, and what was chosen at `up` (state.json)
files      the text of every configuration file
installed  banyan as a package would install it, from a build
namespace  the mounts that the cluster lives in: banyan installed in /usr, names in /etc/hosts
process    starting, finding and ending processes
fabric     ibsim, opensm and the console
parts      the parts in the order in which they start, and how each says that it answers
cli        the commands
"""


class ClusterError(Exception):
    """A failure that the user reads: what happened, and what to try."""
