#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes the folder with Debian 13's Slurm 24.11 that quality_bench asks for topology/block: about 400 MB, from Debian's package registry.
# Usage: placement_quality_trixie.sh [FOLDER]   (default build/deps/trixie; root and the package debootstrap are needed)
set -euo pipefail
folder=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/deps/trixie}
[[ ! -x $folder/usr/sbin/slurmctld ]] || exit 0
[[ $EUID == 0 ]] || { echo "root is needed to make $folder: run it with sudo" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
mkdir -p "$(dirname "$folder")"
debootstrap --variant=minbase --include=slurmctld,slurm-client,slurm-wlm-basic-plugins trixie "$folder"
# Slurm looks its own host name up, and the folder has a hosts file of its own.
cp /etc/hosts "$folder/etc/hosts"
