# SPDX-License-Identifier: BSD-3-Clause
"""A training that is killed and goes on is the one that was not killed."""

import models


def losses(done):
    assert all(said.endswith(": ok") for _, said in done), done
    return [loss for loss, _ in done]


def test_killed_and_gone_on_bit_for_bit(lab):
    nodes = lab.daemons(2)
    nodes.open(7)
    first = lab.ranks(nodes, 7)
    assert first.run(models.begin) == [None, None]
    before = [losses(done) for done in first.run(models.go_on, 3)]
    assert first.run(models.wait) == ["step 2: ok"] * 2
    expected = [losses(done) for done in first.run(models.go_on, 3)]
    expected_bits = first.run(models.bits)
    first.kill()
    nodes.begin(7, 1)
    second = lab.ranks(nodes, 7)
    found = second.run(models.begin, 99)  # another seed: all that counts is loaded
    assert found[0] == found[1] and found[0] >= 2
    left = 5 - found[0]
    again = [losses(done) for done in second.run(models.go_on, left)]
    assert again == [e[3 - left:] for e in expected], before
    assert second.run(models.bits) == expected_bits
    assert second.run(epoch) == [5, 5]
    assert second.run(models.finish) == ["step 5: ok"] * 2


def epoch(kept):
    return kept["state"]["epoch"]
