#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a save and a load of the Python package cost, against one copy of the same bytes in the same run: real daemons, real PyTorch.

    pytorch_bench.py [--json FILE]

Makes the Python environment and the package first where they are missing (scripts/lib/python_venv.py)."""
import argparse
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts" / "lib"))

import python_venv  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", type=Path, default=Path("/dev/stdout"))
    options = parser.parse_args()
    package = REPOSITORY / "build" / "python"
    try:
        python_venv.package(package)
    except (python_venv.Failed, OSError) as error:
        sys.exit(f"pytorch_bench: {error}")
    tests = REPOSITORY / "test" / "python"
    environment = {**os.environ, "PYTHONPATH": f"{package}:{tests}", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [python_venv.HOME / "bin" / "python", REPOSITORY / "test" / "bench" / "pytorch_figures.py", options.json.absolute()]
    return subprocess.run([str(word) for word in words], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
