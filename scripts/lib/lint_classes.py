#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds classes with more member functions than a reader keeps in mind. Overloads, operators and constructors count, and what is
static or private; what is deleted, a friend, or belongs to a nested class does not.

Usage: lint_classes.py FILE... prints "file:line: what"; --self-test checks the rules on a sample of its own.
"""

import re
import sys

from lint_coroutines import OPEN, partners, tokens

MOST = 25
# Larger ones, which are to be cut in two as well.
KNOWN = {("ckptd/agreement/agreement.hpp", "agreement")}
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M | re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
NO_FUNCTION = {"using", "friend", "typedef", "static_assert", "enum", "class", "struct", "union"}
NOT_A_NAME = {"alignas", "decltype", "noexcept", "explicit", "requires"}


def is_function(words):
    """Of a member's declaration, up to its body or semicolon."""
    angles, at = 0, 0
    if words[-2:] == ["=", "delete"]:
        return False
    while at < len(words):
        word = words[at]
        if angles == 0 and (word in NO_FUNCTION or word in ("=", "{")):
            return False
        if word == "operator":
            return True
        if angles == 0 and word == "(" and words[at - 1] not in NOT_A_NAME and words[at + 1] != "*":
            return bool(at and NAME.fullmatch(words[at - 1]))
        angles += {"<": 1, ">": -1}.get(word, 0)
        at = partners(words).get(at, at) + 1 if word in OPEN else at + 1
    return False


def members(words, partner, begin, end):
    """Each member's declaration between a class's braces, without the body."""
    at = first = begin
    while at < end:
        word, after = words[at], partner.get(at, at) + 1
        if word in ("public", "private", "protected") and words[at + 1] == ":":
            first = after = at + 2
        elif word == ";" or word == "{" and words[after] not in (";", ",", "{", "(", ")", "=", "."):
            yield words[first:at]
            first = after
        at = after if word in OPEN else max(after, at + 1)


def classes(text):
    """(functions, line, name) of each class in a file's text."""
    found = tokens(DIRECTIVE.sub(lambda match: "\n" * match.group().count("\n"), text))
    words = [word for word, _ in found]
    partner = partners(words)
    for at, word in enumerate(words):
        if word not in ("class", "struct") or words[at - 1] in ("enum", "friend"):
            continue
        head = at + 1
        while head < len(words) and (NAME.fullmatch(words[head]) or words[head] == "::"):
            head += 1
        if head == at + 1 or head >= len(words) or words[head] not in ("{", ":"):
            continue
        name = words[head - 2 if words[head - 1] == "final" else head - 1]
        while words[head] not in ("{", ";"):
            head += 1
        if words[head] == "{" and head in partner:
            yield sum(map(is_function, members(words, partner, head + 1, partner[head]))), found[at][1], name


SAMPLE = """
template <class A, class B> class counted final : public base<A, B>, other {
  public:
    counted() : a_{1}, b_(2) {}                    // 1
    explicit counted(int a);                       // 2
    virtual ~counted() = default;                  // 3
    counted(const counted&) = delete;
    static std::map<int, std::function<void(int)>> f(int a = g(1)) noexcept;  // 4
    template <class F> auto run(F f) { if (f()) { return g(); } return h(); } // 5
    bool operator<(const counted&) const { return false; }                    // 6
    [[nodiscard]] virtual task<result<void>> take(std::string x) const = 0;   // 7
    friend bool same(const counted&, const counted&);
    struct inner { void one(); int two(int); int three = 3; } inner_;
    using call = void(int);
    enum class kind : int { a, b };

  private:
    alignas(64) int a_{0}; std::function<void(std::string)> b_ = [](auto) { c(); };
    void (*pointer_)(int) = nullptr;
    static constexpr int c_ = most(1, 2);
};
class later; enum class words { a }; template <class T> void no_class(T t) {}
"""


def self_test():
    found = [(count, name) for count, _, name in classes("#define X class y { \\\n void f(); }" + SAMPLE)]
    if found != [(7, "counted"), (2, "inner")]:
        print(f"lint_classes.py --self-test: {found}")


def main(names):
    if names == ["--self-test"]:
        return self_test()
    for path in names:
        with open(path, encoding="utf-8", errors="replace") as file:
            for count, line, name in classes(file.read()):
                if count > MOST and (path, name) not in KNOWN:
                    print(f"{path}:{line}: {name} has {count} member functions, at most {MOST}: give a part of its subject to another class")


if __name__ == "__main__":
    main(sys.argv[1:])
