# SPDX-License-Identifier: BSD-3-Clause
"""What is read runs nobody's code, and what makes no sense is refused."""

import pickle

import pytest
from states import good

import banyan_ckpt as banyan


class Told:
    """A source whose tree is the test's."""

    step, world, rank, own, kind = 1, 1, 0, True, "test"

    def __init__(self, text):
        self.tree = text


@pytest.mark.parametrize("text", [
    b"{", b"[]", b"null", b'{"format":2}', b'{"format":1,"tree":["v"],"values":[]}', b'{"format":1,"tree":["x"],"values":[]}',
    b'{"format":1,"tree":["d","dict",[[["a"],["v"]]]],"values":[1]}', b'{"format":1,"tree":["v"],"values":[{"!":"os.system","v":"x"}]}',
    b'{"format":1,"tree":' + b'["l",[' * 5000, b"[" * 100000, b'{"format":1,"tree":["v"],"values":[3]}', b"\xff\xfe"], ids=repr)
def test_a_tree_that_somebody_else_wrote(text):
    from banyan_ckpt._load import saved_tree
    with pytest.raises(banyan.Error):
        saved_tree(Told(text))


def test_metadata_that_would_run_code(lab):
    step = lab.tmp / "step-000000000001"
    step.mkdir()
    proof = lab.tmp / "ran"
    step.joinpath(".metadata").write_bytes(
        b"cposix\nsystem\n(S'touch " + str(proof).encode() + b"'\ntR.")
    with pytest.raises(FileNotFoundError):
        proof.stat()
    rank = lab.rank({})
    assert "no part of a checkpoint" in rank.run(read_hostile, lab.tmp)
    assert not proof.exists()
    pickle.loads(step.joinpath(".metadata").read_bytes())
    assert proof.exists(), "the test's own pickle runs nothing"


def read_hostile(kept, directory):
    banyan.init(directory=directory)
    with pytest.raises(banyan.Error) as caught:
        banyan.load(good())
    return str(caught.value)
