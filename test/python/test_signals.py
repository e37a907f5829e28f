# SPDX-License-Identifier: BSD-3-Clause
"""A heartbeat is seen from outside, and a wish to save is heard inside."""

import daemons

import banyan_ckpt as banyan


def begin(kept):
    banyan.init()
    banyan.load(None)
    assert banyan.save(1, {"n": 1})
    assert not banyan.seal_requested()
    banyan.heartbeat(17, 3)


def requested(kept):
    return banyan.seal_requested()


def save_two(kept):
    assert banyan.save(2, {"n": 2})
    return banyan.seal_requested()


def test_heartbeat_and_wish(lab):
    nodes = lab.daemons()
    nodes.open(7)
    rank = lab.ranks(nodes, 7)[0]
    rank.run(begin)
    daemons.until(lambda: '"step": 17' in str(nodes.status(1)).replace("'", '"'), "the heartbeat is in the status")
    daemons.ask(nodes.socket(1), daemons.SEAL_NOW, {"job": 7})
    daemons.until(lambda: rank.run(requested), "the rank hears that a save is wished for")
    assert not rank.run(save_two)
