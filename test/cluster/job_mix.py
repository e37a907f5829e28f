# SPDX-License-Identifier: BSD-3-Clause
"""Job options by the dice: everything that changes which nodes a job gets, alone and together, as the equality tests submit it."""

import collections
import random

Submission = collections.namedtuple("Submission", "options tags after cancel test_only")
GATE = "--licenses=gate"
# after: (type, index of an earlier submission) of a dependency, or None. cancel: cancelled while it may still be pending.


class JobMix:
    def __init__(self, seed, names, het, train_share=0.0):
        self.dice = random.Random(seed)
        self.names, self.het, self.train_share = names, het, train_share
        self.made = 0
        self.priorities = self.dice.sample(range(1000, 1_000_000), 20_000)  # never two alike: a tie would be broken by time

    def submission(self):
        dice = self.dice
        index = self.made
        self.made += 1
        tags = set()
        # Whole minutes, and never two alike for long: a second more or less between two clusters must not change their order of ends.
        options = [f"--priority={self.priorities[index]}", f"--time={60 + 7 * (index % 997)}", f"--job-name=j{index % 5}"]
        if self.train_share and dice.random() < self.train_share:
            options += self.train(tags)
        elif self.het and dice.random() < 0.06:
            tags.add("het")
            options += self.part(tags) + [":"] + self.part(tags)
            if dice.random() < 0.3:
                options += [":"] + self.part(tags)
        else:
            options += self.part(tags)
            if dice.random() < 0.08:
                tags.add("array")
                options.append(f"--array=1-{dice.randint(2, 5)}" + dice.choice(["", "%2"]))
        after = None
        if index and dice.random() < 0.1 and "het" not in tags:
            after = (dice.choice(["after", "afterany", "afterok", "afternotok"]), dice.randrange(max(0, index - 40), index))
            tags.add("dependency")
            options.append("--kill-on-invalid-dep=yes")
        elif dice.random() < 0.03 and "het" not in tags:
            tags.add("singleton")
            options.append("--dependency=singleton")
        cancel = dice.random() < 0.1
        if cancel:
            tags.add("cancelled")
        test_only = not tags & {"dependency", "array", "singleton", "cancelled", "train"} and dice.random() < 0.12
        if test_only:
            tags = tags | {"test-only"}
        return Submission(options, frozenset(tags), after, cancel, test_only)

    # -- one component ---------------------------------------------------------------------------------------------------------

    def part(self, tags):
        """Size, then up to three more options. Some combinations Slurm refuses: then both clusters must."""
        dice = self.dice
        options = [GATE, *self.size(tags)]
        more = [self.exclusive, self.named, self.excluded, self.contiguous, self.switches, self.constraint, self.gres_partial, self.gres_full,
                self.gpus, self.memory, self.cpus, self.partition, self.oversubscribe, self.reservation, self.layout]
        for function in dice.sample(more, dice.choice([0, 1, 1, 2, 2, 3])):
            options += function(tags)
        return options

    def nodes(self):
        # Most jobs are small, some take the cluster.
        return min(len(self.names), max(1, round(2 ** self.dice.uniform(0, self.dice.choice([2, 3, 4, 5.6])))))

    def size(self, tags):
        dice, kind = self.dice, self.dice.random()
        if kind < 0.5:
            return [f"--nodes={self.nodes()}"]
        if kind < 0.6:
            low = self.nodes()
            tags.add("range of nodes")
            return [f"--nodes={low}-{low + dice.randint(1, 4)}"] + (["--use-min-nodes"] if dice.random() < 0.5 else [])
        if kind < 0.8:
            tags.add("-n")
            return [f"--ntasks={dice.randint(1, 60)}"]
        tags.add("tasks per node")
        return [f"--nodes={self.nodes()}", f"--ntasks-per-node={dice.choice([1, 2, 4, 8, 16])}"]

    def exclusive(self, tags):
        tags.add("exclusive")
        return ["--exclusive"]

    def some(self, low, high):
        return ",".join(sorted(self.dice.sample(self.names, self.dice.randint(low, high))))

    def named(self, tags):
        tags.add("-w")
        return [f"--nodelist={self.some(1, 3)}"]

    def excluded(self, tags):
        tags.add("-x")
        return [f"--exclude={self.some(1, 12)}"]

    def contiguous(self, tags):
        tags.add("contiguous")
        return ["--contiguous"]

    def switches(self, tags):
        tags.add("switches")
        return [f"--switches={self.dice.randint(1, 3)}@10:00:00"]

    def constraint(self, tags):
        tags.add("constraint")
        return ["--constraint=" + self.dice.choice(["a", "b", "rack0", "a&rack1", "a|rack2", "[rack0|rack1]", "[a*1&b*1]", "rack0|rack2"])]

    def gres_partial(self, tags):
        tags.add("gres partial")
        return [f"--gres=gpu:{self.dice.randint(1, 7)}"]

    def gres_full(self, tags):
        tags.add("gres full")
        return ["--gres=gpu:8"]

    def gpus(self, tags):
        tags.add("gpus")
        dice = self.dice
        return dice.choice([[f"--gpus={dice.randint(1, 20)}"], [f"--gpus-per-node={dice.randint(1, 8)}"],
                            [f"--gpus-per-task={dice.randint(1, 2)}", f"--ntasks={dice.randint(1, 12)}"]])

    def memory(self, tags):
        tags.add("mem")
        return self.dice.choice([[f"--mem={self.dice.choice([1000, 9000, 31000, 60000])}"], [f"--mem-per-cpu={self.dice.choice([100, 3000])}"],
                                 ["--mem=0"], ["--mem-per-gpu=4000"]])

    def cpus(self, tags):
        tags.add("-c")
        return [f"--cpus-per-task={self.dice.choice([1, 2, 3, 5, 8, 16])}"]

    def partition(self, tags):
        name = self.dice.choice(["whole", "shared", "urgent", "whole", "shared", "main,shared"])
        tags.add(f"partition {name}")
        return [f"--partition={name}"]

    def oversubscribe(self, tags):
        tags.add("oversubscribe")
        return ["--oversubscribe", "--partition=shared"]

    def reservation(self, tags):
        tags.add("reservation")
        return [f"--reservation={self.dice.choice(['hosts', 'count'])}"]

    def layout(self, tags):
        tags.add("layout")
        return self.dice.choice([["--spread-job"], ["--distribution=cyclic"], ["--ntasks-per-socket=2"], ["--sockets-per-node=2"],
                                 ["--cores-per-socket=8"], ["--extra-node-info=2:4"], ["--ntasks-per-core=1"]])

    # -- training jobs --------------------------------------------------------------------------------------------------------------

    def train(self, tags):
        dice = self.dice
        tags.add("train")
        per_node = dice.choice([1, 2, 8])
        dims = dice.sample([("tp", per_node), ("pp", dice.choice([1, 2, 4])), ("dp", dice.choice([1, 2, 3]))], 3)
        nodes = 1
        for name, size in dims:
            nodes *= size if name != "tp" else 1
        spares = dice.choice([0, 0, 1, 2])
        options = [GATE, f"--nodes={nodes + spares}", f"--ntasks-per-node={per_node}",
                   "--train-parallel=" + ",".join(f"{name}={size}" for name, size in dims)]
        if spares:
            tags.add("spares")
            options.append(f"--train-spares={spares}")
        for function in dice.sample([self.exclusive, self.excluded, self.gres_full, self.gres_partial, self.partition, self.constraint, self.named,
                                     self.contiguous, self.switches, self.memory], dice.choice([0, 1, 1, 2])):
            options += function(tags)
        if dice.random() < 0.15:
            tags.add("array")
            options.append("--array=1-3")
        return options
