#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the parts to the structure of docs/architecture.md:

- includes: which part may include which; a file that belongs to no part listed here is reported;
- edges: every function defined in an extern "C" block runs its body under a guard, so that nothing throws into Slurm or a trainer.

Usage: lint_parts.py includes|edges FILE... prints "file:line: what"; --self-test checks the rules on samples of their own.
"""

import re
import sys

# The longest prefix of a path says its part; what a part may include beside itself.
MAY_INCLUDE = {
    "common": [],
    "topo": ["common"],
    "topo/cli": ["common", "topo", "train"],
    "train": ["common", "topo"],
    "train/slurm": ["common", "train"],
    "ckptd": ["common"],
    "ckptd/agreement": [],
    "ckptd/client": ["common", "ckptd/protocol", "ckptd/buffers", "ckptd/store"],
    "ckptd/python": ["ckptd/client"],  # its public header alone: the package is built without the rest
    "ckptd/protocol": ["common"],
    "ckptd/keeper": ["common"],
    "ckptd/buffers": ["common", "ckptd/keeper", "ckptd/protocol"],
    "ckptd/store": ["common", "ckptd/protocol", "ckptd/buffers"],
    "hardware": ["common"],
    "fault": ["common", "ckptd/protocol", "hardware"],
    "fault/controller": ["common", "ckptd/protocol", "fault", "fault/fabric", "fault/slurm"],
    "fault/fabric": ["common", "fault", "topo"],
    "fault/slurm": ["common", "fault", "train", "train/slurm"],
    "supervisor": ["common", "ckptd/protocol", "train", "train/slurm"],
    "supervisor/slurm": ["common", "train", "train/slurm"],
    "doctor": ["common", "ckptd", "ckptd/client", "fault", "hardware", "topo"],
    "sweep": ["common", "fault/slurm", "hardware"],
    "spank": ["common", "ckptd/protocol", "topo", "train", "train/slurm"],
    "slurmctld-plugin": ["common", "topo", "train"],
    "slurmctld-plugin/cons_tres": ["common", "slurmctld-plugin"],
    "slurmctld-plugin/fabric": ["common", "topo", "slurmctld-plugin"],
    "slurmctld-plugin/placement": ["common", "topo", "train", "slurmctld-plugin", "slurmctld-plugin/fabric", "slurmctld-plugin/plan"],
    "slurmctld-plugin/plan": ["common", "topo", "train", "slurmctld-plugin", "slurmctld-plugin/fabric"],
    "slurmctld-plugin/select": [
        "common", "train", "slurmctld-plugin", "slurmctld-plugin/cons_tres", "slurmctld-plugin/placement", "slurmctld-plugin/plan",
        "slurmctld-plugin/shrink", "slurmctld-plugin/step"],
    "slurmctld-plugin/shrink": ["slurmctld-plugin"],
    "slurmctld-plugin/step": ["common", "topo", "train", "slurmctld-plugin", "slurmctld-plugin/fabric", "slurmctld-plugin/plan"],
    "slurmctld-plugin/submit": ["common", "topo", "train", "slurmctld-plugin", "slurmctld-plugin/plan"],
    "examples": ["common", "ckptd/client"],
}
# Files that their own part alone would say too little of: who else may include them.
ONLY_FOR = {"train/admin_comment_reader.hpp": ["topo/cli"]}  # text that operators edit, and nobody decides by
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
INSTALLED = {"banyan/topo/": "topo", "banyan/ckpt.h": "ckptd/client"}


def part_of(path):
    """The part of a file or of an included name; None for the world outside, and for a file beside the one that includes it."""
    for head, part in INSTALLED.items():
        if path.startswith(head):
            return part
    found = [part for part in MAY_INCLUDE if path.startswith(part + "/")]
    return max(found, key=len, default=None)


def allowed(part, other):
    its_folder = other.startswith(part + "/")
    return part == other or its_folder or other in MAY_INCLUDE[part]


def wrong_includes(path, text):
    part = part_of(path)
    if part is None:
        yield 1, "belongs to no part that scripts/lib/lint_parts.py knows"
        return
    for match in INCLUDE.finditer(text):
        other = part_of(match[1])
        if other and not allowed(part, other):
            yield text.count("\n", 0, match.start(1)) + 1, f"{part}/ may not include {match[1]} ({other}/)"
        elif match[1] in ONLY_FOR and part not in [other, *ONLY_FOR[match[1]]]:
            yield text.count("\n", 0, match.start(1)) + 1, f"{part}/ may not include {match[1]}, only {', '.join(ONLY_FOR[match[1]])}/ may"


GUARDS = re.compile(r"\b(?:banyan::)?(?:guarded|hook|report)\s*\(")
FUNCTION = re.compile(r"^(?:BANYAN_EXPORT\s+)?[A-Za-z_][\w\s*]*?\b(\w+)\s*\([^;{}]*\)\s*(?:noexcept\s*)?\{", re.M)
# Bodies that do no work of ours, or have one that is guarded do it.
PLAIN = re.compile(r"^\s*return\s+(?:SLURM_SUCCESS|SLURM_ERROR|0|last_error\.c_str\(\)|BANYAN_LIBRARY_VERSION|bck_state_\w+\([\w\s,]*\))\s*;\s*$")


def block_end(text, open_brace):
    depth = 0
    for at in range(open_brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def unguarded(path, text):
    del path
    for block in re.finditer(r'extern "C" \{', text):
        at, end = block.end(), block_end(text, block.end() - 1)
        while match := FUNCTION.search(text, at, end):
            close = block_end(text, match.end() - 1)
            body = text[match.end():close]
            if not GUARDS.search(body) and not PLAIN.match(body):
                yield text.count("\n", 0, match.start()) + 1, f"{match[1]} runs without a guard (common/guard.hpp)"
            at = close


RULES = {"includes": wrong_includes, "edges": unguarded}


def self_test():
    def lines(rule, path, text):
        return [line for line, _ in rule(path, text)]

    assert lines(wrong_includes, "common/x.cpp", '#include "common/y.hpp"\n#include <vector>\n') == []
    assert lines(wrong_includes, "common/x.cpp", '\n#include "topo/y.hpp"\n') == [2]
    assert lines(wrong_includes, "topo/model/x.cpp", '#include "train/plan.hpp"\n') == [1]
    assert lines(wrong_includes, "topo/cli/x.cpp", '#include "train/plan.hpp"\n#include <banyan/topo/x.hpp>\n') == []
    assert lines(wrong_includes, "topo/cli/x.cpp", '#include "train/admin_comment_reader.hpp"\n') == []
    assert lines(wrong_includes, "train/x.cpp", '#include "train/admin_comment_reader.hpp"\n') == []
    assert lines(wrong_includes, "spank/x.cpp", '#include "train/admin_comment_reader.hpp"\n') == [1]
    assert lines(wrong_includes, "fault/agent/x.cpp", "#include <banyan/topo/x.hpp>\n") == [1]
    assert lines(wrong_includes, "fault/agent/x.cpp", '#include "fault/controller/x.hpp"\n') == []
    assert lines(wrong_includes, "ckptd/client/x.cpp", '#include "ckptd/daemon/x.hpp"\n') == [1]
    assert lines(wrong_includes, "elsewhere/x.cpp", "") == [1]
    edge = 'extern "C" {\nint a() { return hook("a", [&] { return b(); }); }\nint fini() { return SLURM_SUCCESS; }\n}\n'
    assert lines(unguarded, "x.cpp", edge) == []
    assert lines(unguarded, "x.cpp", edge.replace('hook("a", ', "(")) == [2]
    assert lines(unguarded, "x.cpp", 'extern "C" {\n\nX int init() {\n    begin();\n    return 0;\n}\n}\nint b() { c(); }\n') == [3]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    rule = RULES[sys.argv[1]]
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line, what in rule(path, file.read()):
                print(f"{path}:{line}: {what}")


if __name__ == "__main__":
    main()
