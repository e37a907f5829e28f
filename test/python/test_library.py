# SPDX-License-Identifier: BSD-3-Clause
"""Which libbanyan_ckpt is opened, and what is said of one that does not fit."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import banyan_ckpt as banyan
from banyan_ckpt import _session

HEADER = Path(__file__).resolve().parents[2] / "ckptd" / "python" / "src" / "native" / "library.hpp"


def opened(kept):
    try:
        banyan.init(rank=0, world=1)
    except ImportError as error:
        return "refused", str(error)
    return "opened", _session.SESSION.library


def of_release(folder, release):
    """A library with all functions, none of which does anything, that says it is of this release."""
    names = set(re.findall(r"F\((bck_\w+)\)", HEADER.read_text())) - {"bck_version"}
    source = folder / "other.c"
    source.write_text("".join(f"int {name}(void) {{ return -2; }}\n" for name in sorted(names - {"bck_error"}))
                      + f'const char* bck_error(void) {{ return "nothing"; }}\nconst char* bck_version(void) {{ return "{release}"; }}\n')
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libother.so", source], check=True)
    return folder / "libother.so"


@pytest.mark.parametrize(("name", "why"), [("/none/libbanyan_ckpt.so.0", "cannot open"), ("libm.so.6", "it has no bck_init")])
def test_a_library_that_is_none_is_named(lab, name, why):
    said, text = lab.rank({"BANYAN_JOB": "7", "BANYAN_CKPT_SOCKET": "/none/socket", "BANYAN_LIB": name}).run(opened)
    assert said == "refused" and name in text and why in text


def test_a_library_of_another_release_is_named(lab):
    other = of_release(lab.tmp, "9.1.0")
    environment = {"BANYAN_JOB": "7", "BANYAN_CKPT_SOCKET": "/none/socket", "BANYAN_LIB": str(other)}
    said, text = lab.rank(environment).run(opened)
    assert said == "refused" and str(other) in text and "9.1.0" in text and banyan.__version__ in text
    near = of_release(lab.tmp, banyan.__version__.rsplit(".", 1)[0] + ".99")
    assert lab.rank(environment).run(opened) == ("opened", str(near))


def test_the_library_beside_the_socket_is_taken(lab):
    nodes = lab.daemons()
    nodes.open(7)
    environment = nodes.environment(7, 0, 1)
    library = environment.pop("BANYAN_LIB")
    beside = nodes.dir / "libbanyan_ckpt.so.0"
    if not beside.exists():
        shutil.copy(library, beside)
    assert lab.rank(environment).run(opened) == ("opened", str(beside))


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount needs root")
def test_a_folder_from_which_nothing_is_run(lab):
    library = lab.daemons().environment(7, 0, 1)["BANYAN_LIB"]
    folder = lab.tmp / "run"
    folder.mkdir()
    code = "import banyan_ckpt as b, os\nb.init(rank=0, world=1)\nprint('opened', b._session.SESSION.library)"
    words = f"mount -t tmpfs -o noexec none {folder} && cp {library} {folder}/libbanyan_ckpt.so.0 && exec {sys.executable} -c \"{code}\""
    environment = {**os.environ, "BANYAN_JOB": "7", "BANYAN_CKPT_SOCKET": f"{folder}/n1.sock"}
    done = subprocess.run(["unshare", "--mount", "sh", "-c", words], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"opened {folder}/libbanyan_ckpt.so.0", done.stderr


def without_torch():
    """Run by another Python process, which finds no torch."""
    code = ("import sys; sys.modules['torch'] = None\nimport banyan_ckpt as b\nb.init()\nprint(b.latest(), b.seal_requested(), b.heartbeat(1))\n"
            "try: b.save(1, {'a': 1})\nexcept ImportError as e: print('needs torch')\nprint(b.finish())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_torch_the_rest_works():
    assert without_torch() == ["None False None", "needs torch", "step 0: ok"]
