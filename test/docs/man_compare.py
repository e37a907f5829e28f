# SPDX-License-Identifier: BSD-3-Clause
"""Where a page and what a program tells of itself differ, as instructions: each text names the page and the lines to write."""

import re


def differences(program, page, helps, paged):
    """What to do to the page, one text for each thing that is wrong."""
    wrong = []
    for name in sorted(helps.keys() - paged.keys()):
        told = helps[name]
        heading = " ".join([f".SS {name}"] + told.arguments)
        paragraphs = [paragraph(option) for option in told.options if "--help" not in option.names]
        wrong.append("\n".join([f'docs/man/{page} lacks "{program} {name}": add below .SH COMMANDS', heading, *paragraphs]))
    for name in sorted(paged.keys() - helps.keys()):
        wrong.append(f'docs/man/{page} has ".SS {name}", but {program} has no such command: take it away')
    for name in sorted(helps.keys() & paged.keys()):
        where = f'below ".SS {name}"' if name else "below .SH OPTIONS"
        told, written = helps[name], paged[name]
        if told.arguments != written.arguments:
            wrong.append(f'docs/man/{page}: "{program} {name}" takes {told.arguments}, but its .SS says {written.arguments}')
        for option in told.options:
            # What every command has is said once, of the program.
            if name and "--help" in option.names:
                continue
            wrong += missing(option, written, f"docs/man/{page}", f"{program} {name}".strip(), where)
        known = {alias for option in told.options for alias in option.names} | {"-h"}
        for option in written.options:
            wrong += [f'docs/man/{page} has {alias} {where}, but "{program} {name}" does not know it: take it away'
                      for alias in option.names if alias not in known]
    return wrong


def value_of(option):
    """What a help text calls the option's value; "" for none."""
    return re.split(r"[:=]", option.value.replace("REQUIRED", ""))[0].strip()


def paragraph(option):
    """An option as a page should have it; its words are those of the help text."""
    tag = ", ".join(option.names).replace("-", "\\-")
    head = f'.BI "{tag}" " {value_of(option)}"' if value_of(option) else f".B {tag}"
    return f".TP\n{head}\n{option.text.strip()}"


def missing(option, written, page, command, where):
    """What the page does not say of an option that `command` has."""
    lines = "\n".join(paragraph(option).splitlines()[:2])
    same = [other for other in written.options if set(option.names) & set(other.names)]
    if not same:
        return [f'{page}: "{command}" takes {", ".join(option.names)}; add {where}\n{paragraph(option)}']
    other, out = same[0], []
    head = f'{page}, {", ".join(option.names)} {where}:'
    if len(same) > 1:
        out.append(f"{head} it is there {len(same)} times")
    if not set(option.names) <= set(other.names):
        out.append(f"{head} the tag has only {', '.join(other.names)}; write\n{lines}")
    if bool(value_of(option)) != bool(other.value):
        out.append(f"{head} it takes {'a' if value_of(option) else 'no'} value; write\n{lines}")
    for bounds in re.findall(r"(?<![\d.])(-?\d+)\.\.(-?\d+)(?![\d.])", option.value):
        if " to ".join(bounds) not in other.text:
            out.append(f'{head} its range is missing; write "{" to ".join(bounds)}"')
    for choice in (option.value.replace("REQUIRED", "").replace("...", "").strip().split("|") if "|" in option.value else []):
        if not re.search(rf"\b{re.escape(choice)}\b", other.text):
            out.append(f'{head} the choice "{choice}" is missing')
    for default in re.findall(r"\(default ([^)]+)\)", option.text):
        if f"(default {default})" not in other.text:
            out.append(f'{head} its default is missing; write "(default {default})"')
    return out
