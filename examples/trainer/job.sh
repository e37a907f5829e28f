#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#SBATCH --job-name=train
#SBATCH --no-kill
#
# Trains on the nodes of this job, and goes on by itself after a fault:
#     sbatch -N 9 --train-parallel=tp=2,pp=2,dp=4 --train-spares=1 --train-ckpt=every=1 job.sh --steps 1000
# Further arguments go to the trainer. BANYAN_BIN and BANYAN_TRAINER point to another build.
exec "${BANYAN_BIN:+$BANYAN_BIN/}banyan-run" "${BANYAN_TRAINER:-/usr/libexec/banyan/banyan-trainer}" "$@"
