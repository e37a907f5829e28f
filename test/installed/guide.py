# SPDX-License-Identifier: BSD-3-Clause
"""Follows a page of docs/ on a site of Debian hosts: each block of code under a line that says where.

    On the controller:                          ```sh    pasted there by root, also "On every compute node", "login host", "host"
    On every host that has a slurm.conf:        ```sh    the same; nodes that get theirs from slurmctld have none
    As a user, on a login host:                 ```sh    pasted there by alice
    In slurm.conf, on every host that has one:  ```ini   each line in the place of one with that key, as the page says there
Other blocks are examples."""

import re

from ordinary_site import CONF

WHERE = re.compile(r"(On the controller|On every compute node|On every login host|On every host that has a slurm\.conf|On every host|"
                   r"As a user, on a login host|In slurm\.conf, on every host that has one)"
                   r"(, [^:]*| \([^:]*\))?:\n\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)


class Step:
    def __init__(self, place, kind, text):
        self.place, self.kind, self.text = place, kind, text

    def __repr__(self):
        return f"{self.place}: {self.text.splitlines()[0]}"


def sections(page):
    """{title: [Step]} of the page, in its order."""
    parts = re.split(r"^## (.*)$", page.read_text(), flags=re.M)
    return {title: [Step(m[1], m["kind"], m["text"]) for m in WHERE.finditer(text)]
            for title, text in zip(parts[1::2], parts[2::2])}


def hosts_of(site, step):
    if "slurm.conf" in step.place:
        return site.with_conf
    if "controller" in step.place:
        return [site.ctl]
    if "login" in step.place:
        return [site.login]
    return site.nodes if "compute" in step.place else list(site.hosts.values())


def follow(site, step, folder):
    """Does what the step says; {host: what it printed}."""
    if step.kind == "ini":
        for host in hosts_of(site, step):
            file = host.file(CONF)
            file.write_text(set_ini(file.read_text(), step.text))
        return {}
    user = "alice" if step.place.startswith("As a user") else "root"
    cwd = f"/home/{user}" if user != "root" else folder
    return {host.name: host.run(step.text, user=user, cwd=cwd).stdout for host in hosts_of(site, step)}


def set_ini(text, wanted):
    lines = text.splitlines()
    for setting in wanted.splitlines():
        key = setting.partition("=")[0]
        lines = [line for line in lines if line.partition("=")[0].strip().lower() != key.lower()]
        lines.append(setting)
    return "\n".join(lines) + "\n"

