# SPDX-License-Identifier: BSD-3-Clause
"""A rank of an MPI program as far as its PMI goes: asks slurmstepd, over the descriptor that mpi/pmi2 leaves it, which ranks share a node,
and prints "map RANK NODE ANSWER". The lines are those of PMI 1, which the plugin speaks too, and which MPI libraries ask the same of."""

import os


def ask(line):
    os.write(int(os.environ["PMI_FD"]), line.encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += os.read(int(os.environ["PMI_FD"]), 4096)
    words = answer.decode().split()
    return {key: value for key, _, value in (word.partition("=") for word in words)}


ask("cmd=init pmi_version=1 pmi_subversion=1")
kvs = ask("cmd=get_my_kvsname")["kvsname"]
mapping = ask(f"cmd=get kvsname={kvs} key=PMI_process_mapping")["value"]
ask("cmd=finalize")
print("map", os.environ["PMI_RANK"], os.environ["SLURMD_NODENAME"], mapping, flush=True)
