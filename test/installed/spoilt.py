# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which a host is spoilt for test_broken_sites.py, as spoilt_*.py declare them."""

CONF, STACK, SNAPSHOT = "/etc/slurm/slurm.conf", "/etc/slurm/plugstack.conf", "/var/lib/banyan/fabric.snapshot"
BANYAN = "/etc/banyan/banyan.conf"
SITE, LINE, CKPTD = "/etc/banyan/banyan.conf.d/site.conf", "/etc/slurm/plugstack.conf.d/banyan.conf", "/usr/libexec/banyan/banyan-ckptd"
CASES = {}  # name: (spoils, what is wrong or unknown as expressions, one finding each)


def case(*expected):
    def keep(spoil):
        CASES[spoil.__name__] = (spoil, expected)
        return spoil
    return keep


def h_agents(h, without=()):
    return str([{"node": node["NodeName"], "connected": node["NodeName"] not in without} for node in h.nodes]).replace(
        "'", '"').replace("True", "true").replace("False", "false")


def running(name, word):
    """For `before`: a process of that name with that word, which does not know SLURM_CONF."""
    return (f'cp /bin/sh "$1/bin/{name}"\nenv -u SLURM_CONF "$1/bin/{name}" -c "sleep 600; :" {word} &\n'
            f'until [ "$(cat /proc/$!/comm)" = {name} ]; do :; done\n')
