#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#SBATCH --job-name=gpt
#SBATCH --no-kill
#
# The same by torchrun, one a node, which starts the node's ranks. From this folder:
#     sbatch -N 3 --ntasks-per-node=1 --gpus-per-node=2 --train-parallel=dp=4 --train-spares=1 --train-ckpt=dir=/lustre/gpt torchrun.sh
# Arguments go to train.py. PYTHON is the one that has torch and banyan_ckpt.
exec banyan-run "${PYTHON:-python3}" -m torch.distributed.run train.py "$@"
