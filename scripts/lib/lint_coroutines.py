#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds what g++ 12 miscompiles in coroutines; both are seen only when the daemon's heap is already damaged:

- co_await inside a conditional expression (a ? b : c): the temporary of the branch not taken is destroyed too, a double free;
- a braced temporary handed to a call inside co_await (co_await send(x, {{"a", 1}})): its parts are destroyed twice.

Usage: lint_coroutines.py FILE... prints "file:line: what"; --self-test checks the rules on samples of their own.
"""

import re
import sys

TOKEN = re.compile(r"""
    (?P<skip>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|\s+|\\\n)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+')
  | (?P<word>[A-Za-z_0-9](?:[A-Za-z_0-9]|'(?=[0-9A-Fa-f]))*)
  | (?P<operator>==|!=|<=|>=|[-+*/%&|^]=|<<=|>>=|->|::|.)
""", re.X | re.S)
OPEN = {"(": ")", "[": "]", "{": "}"}
CLOSE = set(OPEN.values())
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
LEFT_END = {",", ";", "{", "}", "return", "co_return", "co_yield", ":", "?"} | ASSIGN


def tokens(text):
    """[(token, line)] without comments and blanks; a string is the token '\"'."""
    out, line = [], 1
    for match in TOKEN.finditer(text):
        if match.lastgroup != "skip" and not match["skip"]:
            out.append(('"' if match["raw"] or match["string"] else match.group(), line))
        line += match.group().count("\n")
    return out


def partners(words):
    """{index: index} of every bracket and its partner, both ways; a bracket without one is left out."""
    stack, out = [], {}
    for at, word in enumerate(words):
        if word in OPEN:
            stack.append(at)
        elif word in CLOSE and stack and OPEN[words[stack[-1]]] == word:
            out[at] = stack.pop()
            out[out[at]] = at
    return out


def walk(words, partner, at, step, ends):
    """From `at` in one direction, over whole brackets, to the token that ends the expression."""
    at += step
    while 0 <= at < len(words):
        if words[at] in ends:
            return at
        if words[at] in (OPEN if step > 0 else CLOSE):
            if at not in partner:
                return at
            at = partner[at]
        elif words[at] in (CLOSE if step > 0 else OPEN):
            return at
        at += step
    return at


def right_end(words, partner, question):
    """Where the conditional expression that has this '?' ends: after its ':' and those of the conditionals inside it."""
    open_questions, at = 1, question
    while open_questions > 0:
        at = walk(words, partner, at, 1, {"?", ":", ";"})
        if at >= len(words) or words[at] not in "?:":
            return at
        open_questions += 1 if words[at] == "?" else -1
    while True:
        at = walk(words, partner, at, 1, {",", ";", "?"})
        if at >= len(words) or words[at] != "?":
            return at
        return right_end(words, partner, at)


def own(words, partner, begin, end):
    """Indices from begin to end without those in the bodies of lambdas, which are functions of their own."""
    at = begin
    while at < end:
        if words[at] == "{" and at in partner and ";" in words[at:partner[at]]:
            at = partner[at]
        else:
            yield at
        at += 1


def conditionals(words, partner):
    for question, word in enumerate(words):
        if word == "?":
            begin = walk(words, partner, question, -1, LEFT_END) + 1
            for at in own(words, partner, begin, right_end(words, partner, question)):
                if words[at] == "co_await":
                    yield at, "co_await inside a conditional expression: use if and else"


def braced(words, partner):
    """A list in braces among the arguments of what co_await waits for, or a json made of one there."""
    for start, word in enumerate(words):
        if word != "co_await":
            continue
        end = walk(words, partner, start, 1, {";", ",", "?", ":"} | ASSIGN)
        for at in own(words, partner, start + 1, end):
            if words[at] != "{" or at not in partner or ";" in words[at:partner[at]] or partner[at] == at + 1:
                continue
            if words[at - 1] in ("(", ",") or words[at - 1].endswith("json"):
                yield at, "a braced temporary inside co_await: give it a name and move it"
                break


def check(text):
    """[(line, what)] of a file's text."""
    found = tokens(text)
    words = [word for word, _ in found]
    partner = partners(words)
    return sorted({(found[at][1], what) for rule in (conditionals, braced) for at, what in rule(words, partner)})


BAD = [
    "auto x = a ? co_await f() : g();",
    "auto x = a == b\n  ? g()\n  : co_await f(c,\n d);",
    "co_return co_await f() ? 1 : 2;",
    "co_return (co_await f()).ok() ? 1 : 2;",
    "BANYAN_CO_TRY(auto x, a ? b : co_await f());",
    "h(a, b ? T{co_await f()} : T{});",
    "x = a ? b : c ? d : co_await f();",
    "x = a ? b ? co_await f() : c : d;",
    "x = s == '\\'' ? co_await f() : 1'000;",
    'x = s == R"(";)" ? co_await f() : 1;',
    "x = a ? /* ; */ co_await f() : b; // ;",
    'co_await send(socket, {{"a", 1}});',
    'BANYAN_CO_CHECK(co_await send(socket, 1, nlohmann::json{{"a", 1}}));',
    "co_await send(socket, {1, 2},\n 3);",
    'co_await within(send(socket, nlohmann::json{{"a", 1}}));',
]
GOOD = [
    "auto x = co_await f(a ? b : c);",
    "if (a) co_await f(); else b = c ? d : e;",
    "// a ? co_await f() : b\nx = 1;",
    'log("a ? co_await f() : b"); y = "?"; co_await f();',
    "x = R\"(a ? co_await b : c)\"; co_await f();",
    "for (auto& x : xs) co_await f(x);",
    "switch (a) { case 1: co_await f(); break; default: b = c ? 1 : 2; }",
    "a = b ? [] { c(); d(); } : e; co_await f();",
    "spawn(a ? [&]() -> task { co_await f(); co_return; } : none);",
    "char c = '?'; co_await f(); d = 1 ? 2 : 3;",
    "co_await f(x, {});",
    "co_await f(std::chrono::milliseconds{5});",
    "co_await f([&] { g(); });",
    'json meta{{"a", 1}}; co_await send(socket, std::move(meta));',
    "BANYAN_CO_TRY(auto x, co_await f()); return {a, b};",
    "task<void> f() { co_await g(); } int h{a ? b : c};",
    "while (x) { co_await f(); }",
]


def self_test():
    missed = [sample for sample in BAD if not check(sample)]
    wrong = [sample for sample in GOOD if check(sample)]
    both = check("int a;\nx = a ? co_await f() : b;\nco_await f({1});\n")
    if [line for line, _ in both] != [2, 3]:
        wrong.append(f"lines 2 and 3, not {both}")
    for sample in missed:
        print(f"lint_coroutines.py --self-test: not found: {sample!r}")
    for sample in wrong:
        print(f"lint_coroutines.py --self-test: found, and harmless: {sample!r}")
    return bool(missed or wrong)


def main(names):
    if names == ["--self-test"]:
        return int(self_test())
    for name in names:
        with open(name, encoding="utf-8", errors="replace") as file:
            for line, what in check(file.read()):
                print(f"{name}:{line}: {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
