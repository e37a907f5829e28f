# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages and help texts as data: which options and arguments each program and each of its commands has.

In a page an option is a paragraph with a tag (.TP). Below ".SH COMMANDS" each command has a ".SS name ARGUMENT [ARGUMENT]", and what
follows is the command's; all else is the program's.
"""

import re
from dataclasses import dataclass, field

FONTS = ("B", "I", "BI", "BR", "IB", "IR", "RB", "RI")


@dataclass
class Option:
    """`names` as in ("-o", "--output"); `value` is what it takes, "" for nothing; `text` all that is said of it."""

    names: tuple
    value: str
    text: str


@dataclass
class Command:
    """The program itself has the name "". A positional argument that may be left out is in brackets."""

    name: str
    arguments: list = field(default_factory=list)
    options: list = field(default_factory=list)


def plain(text):
    """Text without the escapes of roff."""
    text = re.sub(r"\\f(?:\[\w*\]|.)", "", text)
    for escape, letter in (("\\(dq", '"'), ("\\(bu", "*"), ("\\-", "-"), ("\\e", "\\"), ("\\&", "")):
        text = text.replace(escape, letter)
    return text


def words_of(arguments):
    """Arguments of a macro; those with blanks in them are quoted."""
    return [quoted if quoted or not bare else bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', arguments)]


def text_of(line):
    """What one line of the source puts on paper."""
    macro, _, rest = line[1:].partition(" ") if line.startswith(".") else ("", "", line)
    if not macro:
        return plain(rest)
    if macro not in FONTS:
        return ""
    return plain(("" if len(macro) == 2 else " ").join(words_of(rest)))


def tagged(source):
    """(section, subsection, tag, text) of each paragraph with a tag."""
    section, subsection, out = "", "", []
    lines = [line for line in source.splitlines() if not line.startswith('.\\"')]
    text = None
    for before, line in zip([""] + lines, lines):
        if line.startswith((".SH", ".SS")):
            heading = plain(" ".join(words_of(line[3:])))
            section, subsection = (heading, "") if line.startswith(".SH") else (section, heading)
            text = None
        elif before == ".TP":
            text = []
            out.append((section, subsection, text_of(line), text))
        elif line == ".TP":
            text = None
        elif text is not None:
            text.append(text_of(line))
    return [(section, subsection, tag, " ".join(filter(None, text))) for section, subsection, tag, text in out]


def option_of(spec, text):
    """From "-o, --output FILE" or "--shape TEXT REQUIRED"."""
    names = tuple(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", spec))
    value = spec.split(names[-1], 1)[1].strip(" =")
    return Option(names, value, text)


def command_of(heading):
    """("policy check", ["[FILE]"]) of "policy check [FILE]"."""
    words = heading.split()
    small = next((at for at, word in enumerate(words) if not re.fullmatch(r"[a-z][a-z-]*", word)), len(words))
    return " ".join(words[:small]), words[small:]


def of_page(source):
    """{name: Command} of a page's source."""
    found = {"": Command("")}
    for line in source.split(".SH COMMANDS", 1)[-1].splitlines() if ".SH COMMANDS" in source else ():
        if line.startswith(".SH"):
            break
        if line.startswith(".SS"):
            name, arguments = command_of(plain(" ".join(words_of(line[3:]))))
            found[name] = Command(name, arguments)
    for section, subsection, tag, text in tagged(source):
        if tag.startswith("-"):
            name = command_of(subsection)[0] if section == "COMMANDS" and subsection else ""
            found[name].options.append(option_of(tag, text))
    return found


def of_help(text, name=""):
    """(Command, {name: summary} of its subcommands) of a help text, as CLI11 writes it or by hand."""
    found, commands, part, last = Command(name), {}, "", None
    for line in text.splitlines():
        if heading := re.fullmatch(r"([A-Z]\w+):", line):
            part, last = heading[1], None
        elif match := re.match(r"  (\S.*?)(?:  +(.*))?$", line):
            spec, words = match[1], match[2] or ""
            if spec.startswith("-"):
                last = option_of(spec, words)
                found.options.append(last)
            elif part == "Subcommands":
                commands[spec] = words
            elif part == "Positionals":
                argument = spec.split()[0]
                found.arguments.append(argument if "REQUIRED" in spec else f"[{argument}]")
            elif last and line.startswith("    "):
                last.text += " " + line.strip()
        elif last and line.startswith("   "):
            last.text += " " + line.strip()
        else:
            last = None
    return found, commands
