#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#SBATCH --job-name=gpt
#SBATCH --no-kill
#
# Trains the GPT on the nodes of this job, and goes on by itself after a fault. From this folder:
#     sbatch -N 3 --ntasks-per-node=2 --train-parallel=dp=4 --train-spares=1 --train-ckpt=dir=/lustre/gpt,every=1,flush=50 job.sh --parallel fsdp2
# Arguments go to train.py. PYTHON is the one that has torch and banyan_ckpt.
exec banyan-run "${PYTHON:-python3}" train.py "$@"
