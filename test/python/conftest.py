# SPDX-License-Identifier: BSD-3-Clause
"""Daemons and ranks that end with their test."""

import daemons
import pytest
import ranks


class Lab:
    """A test's daemons, ranks and folder."""

    def __init__(self, tmp):
        self.tmp, self.started = tmp, []
        self.tmp.chmod(0o755)

    def daemons(self, nodes=1, extra=""):
        made = daemons.Daemons(nodes, extra)
        self.started.append(made.stop)
        return made

    def ranks(self, *arguments, **named):
        made = ranks.Ranks(*arguments, **named)
        self.started.append(made.kill)
        return made

    def rank(self, environment, errors="/dev/null"):
        made = ranks.Rank(environment, errors)
        self.started.append(made.kill)
        return made

    def close(self):
        for end in reversed(self.started):
            end()


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path)
    yield made
    made.close()
