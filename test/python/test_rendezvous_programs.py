# SPDX-License-Identifier: BSD-3-Clause
"""banyan:// in programs of their own: how torch comes to know it, what they need, which store they get, and whom they ask."""

import os
import subprocess
import sys

import pytest
from stores import environment, free_port

import banyan_ckpt as banyan
from banyan_ckpt._rendezvous import place


def test_it_is_registered_whichever_is_imported_first():
    known = ("m = sys.modules['torch.distributed.rendezvous']; "
             "print('banyan' in m._rendezvous_handlers, [f for f in sys.meta_path if type(f).__module__ == 'banyan_ckpt._rendezvous'])")
    for words in ("import banyan_ckpt; assert 'torch' not in sys.modules; import torch", "import torch, banyan_ckpt",
                  "import torch.distributed, banyan_ckpt.dcp", "import banyan_ckpt, importlib; importlib.reload(banyan_ckpt); import torch"):
        done = subprocess.run([sys.executable, "-c", f"import sys; {words}; {known}"], capture_output=True, text=True, check=False)
        assert done.stdout == "True []\n", (words, done)


SCRIPT = """
import sys, torch, torch.distributed as dist, banyan_ckpt
dist.init_process_group("gloo", init_method=sys.argv[1])
ones = torch.ones(1)
dist.all_reduce(ones)
print(f"{int(ones)} {type(dist.distributed_c10d._get_default_store().underlying_store.underlying_store).__name__}\\n", end="")
dist.destroy_process_group()
"""


def test_torchs_store_on_demand_and_in_torchrun(lab):
    script = lab.tmp / "script.py"
    script.write_text(SCRIPT)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
    for launcher, url, store in (([], "banyan://", "Store"), ([], "banyan://?store=tcp", "TCPStore"), (torchrun, "banyan://", "TCPStore")):
        done = subprocess.run([sys.executable, *launcher, str(script), url], env=os.environ | environment(free_port()), capture_output=True,
                              text=True, check=False)
        said = {"2 TCPStore"} if launcher else {f"1 {store}"}
        assert done.returncode == 0 and set(done.stdout.splitlines()) == said, done


@pytest.mark.parametrize(("url", "without", "more", "said"), [
    ("banyan://", ("MASTER_ADDR", "RANK"), {}, r"does not know \$RANK, \$MASTER_ADDR: .* by hand set"),
    ("banyan://", (), {"RANK": "4"}, "rank 4 is not one of"), ("banyan://", (), {"WORLD_SIZE": "many"}, r"\$WORLD_SIZE is 'many'"),
    ("banyan://", (), {"MASTER_PORT": "70000"}, "no port from 1 to 65535"),
    ("banyan://host:1", (), {}, "is no rendezvous"), ("banyan://?store=file", (), {}, "is no rendezvous"), ("banyan://?stor=tcp", (), {}, "is no rendezvous")])
def test_what_is_missing_or_wrong_is_named(url, without, more, said):
    given = {name: value for name, value in (environment(20000, 0, 4) | more).items() if name not in without}
    with pytest.raises(banyan.Error, match=said):
        place(url, given)
    assert place("banyan:?rank=3&world_size=5&store=tcp", environment(20000)).rank == 3


ASKED = """
import os, socket, subprocess, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("127.0.0.1", 53))
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(r)}, stderr=subprocess.DEVNULL) for r in (0, 1)]
codes = [rank.wait() for rank in ranks]
listener.setblocking(False)
asked = 0
while True:
    try: listener.recv(4096)
    except BlockingIOError: break
    asked += 1
print("asked", asked, codes)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own needs root")
def test_no_name_server_is_asked(lab):
    for name, text in {"script.py": SCRIPT, "asked.py": ASKED, "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
                       "hosts": f"127.0.0.2 {os.uname().nodename}\n", "nsswitch.conf": "hosts: files dns\n"}.items():
        (lab.tmp / name).write_text(text)
    words = (f"cd {lab.tmp} && ip link set lo up || exit 1; "
             "for f in resolv.conf hosts nsswitch.conf; do mount --bind $f $(readlink -f /etc/$f) || exit 1; done; "
             f"exec {sys.executable} asked.py script.py $0")
    said = {}
    for url in ("banyan://", "env://"):
        done = subprocess.run(["unshare", "--mount", "--net", "sh", "-c", words, url], env=os.environ | environment(free_port(), 0, 2),
                              capture_output=True, text=True, check=False)
        assert "[0, 0]" in done.stdout, done
        said[url] = int(done.stdout.split("asked ")[1].split()[0])
    assert said["banyan://"] == 0 and said["env://"] > 0, said
