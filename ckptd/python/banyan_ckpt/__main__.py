# SPDX-License-Identifier: BSD-3-Clause
"""python -m banyan_ckpt export --to hf|dcp|safetensors DIRECTORY TARGET"""

from __future__ import annotations

import argparse
import sys

from ._errors import Error


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m banyan_ckpt")
    command = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "export", help="a committed step as what other programs read; a training may go on meanwhile")
    command.add_argument("directory", help="as in --train-ckpt=dir=")
    command.add_argument("target", help="a folder that is not there yet")
    command.add_argument("--to", required=True, choices=["hf", "dcp", "safetensors"])
    command.add_argument("--step", type=int, help="default: the newest")
    command.add_argument("--part", help="only what lies below this name; default: model for hf, else all")
    command.add_argument("--config", help="a folder whose config.json and tokenizer go with a Hugging Face model")
    options = parser.parse_args()
    from ._export import export
    try:
        part = options.part if options.part is not None else "model" if options.to == "hf" else ""
        step = export(options.directory, options.target, options.to, step=options.step, part=part, config=options.config)
    except (Error, OSError) as error:
        print(f"banyan_ckpt: {error}", file=sys.stderr)
        return 1
    print(f"step {step}: {options.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
