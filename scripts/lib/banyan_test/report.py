# SPDX-License-Identifier: BSD-3-Clause
"""What a run of tests says at its end: a table, the ten slowest, how to run again what failed; and a JUnit file."""

import xml.etree.ElementTree as xml

SLOWEST = 10


def table(results):
    """One line a test: name, tier, seconds, result."""
    width = max((len(r.name) for r in results), default=0)
    return "\n".join(f"{r.name:{width}}  {r.tier:7}  {r.seconds:8.2f} s  {r.result}" for r in sorted(results, key=lambda r: r.name))


def slowest(results):
    return "\n".join(f"  {r.seconds:8.2f} s  {r.name}" for r in sorted(results, key=lambda r: -r.seconds)[:SLOWEST])


def summary(results, seconds):
    """The closing line: counted, and how long it took."""
    bad, skipped = sum(r.bad for r in results), sum(r.result == "skipped" for r in results)
    return f"{len(results) - bad - skipped} passed, {bad} failed, {skipped} skipped", f"{seconds:.0f} s in all"


def junit(results, path):
    root = xml.Element("testsuites")
    for tier in sorted({r.tier for r in results}):
        of_tier = [r for r in results if r.tier == tier]
        suite = xml.SubElement(root, "testsuite", name=tier, tests=str(len(of_tier)), failures=str(sum(r.bad for r in of_tier)),
                               skipped=str(sum(r.result == "skipped" for r in of_tier)), time=f"{sum(r.seconds for r in of_tier):.2f}")
        for r in sorted(of_tier, key=lambda r: r.name):
            case = xml.SubElement(suite, "testcase", name=r.name, classname=f"banyan.{r.tier}", time=f"{r.seconds:.2f}")
            if r.bad:
                printable = "".join(c for c in r.output if c in "\t\n\r" or " " <= c < "\ud800")
                xml.SubElement(case, "failure", message=r.result).text = printable[-20000:]
            elif r.result == "skipped":
                xml.SubElement(case, "skipped")
    xml.indent(root)
    xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
