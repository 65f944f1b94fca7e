#!/usr/bin/env python3
"""Two types of one qualified name in one program are linked into one, without a word (the one-definition rule).

So no qualified name of a type is defined in two files, and a .cpp file keeps its types in an anonymous namespace, where
no other file can meet them. Types inside a class or a function have that scope and are not looked at; nor are
specialisations of templates, which have no name of their own.
"""
import collections
import pathlib
import re
import subprocess
import sys

# Types that a .cpp file defines for others to see, each with its reason.
SEEN_BY_OTHERS = {
    "runtime_stub/pool.cpp": {"SvodPool": "pool.h declares it, so that its layout stays in here"},
}

# Words, brackets and marks; comments, literals and directives are taken out before.
TOKEN = re.compile(r"[A-Za-z_]\w*|::|[{}()<>;:,=\[\]]")
NOISE = re.compile(r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
                   r"|//[^\n]*|/\*.*?\*/"
                   r'|"(?:\\.|[^"\\\n])*"'
                   r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
                   r"|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
TYPE_WORDS = {"struct", "class", "union", "enum"}
CLOSING = {"(": ")", "[": "]", "<": ">"}


def skip(tokens, at):
    """The place after the bracket that matches tokens[at]."""
    opening, closing, depth = tokens[at], CLOSING[tokens[at]], 0
    while at < len(tokens):
        depth += {opening: 1, closing: -1}.get(tokens[at], 0)
        at += 1
        if depth == 0:
            break
    return at


def type_head(tokens, at):
    """tokens[at] is struct, class, union or enum: the name that is defined there or None, and where to go on."""
    at += 1
    name = None
    while at < len(tokens) and tokens[at] not in "{;:,=)>":
        if tokens[at] in "([":  # alignas(64), [[nodiscard]]
            if name is not None and tokens[at] == "(":
                return None, at  # a function that returns one
            at = skip(tokens, at)
        elif tokens[at] == "<":
            return None, at  # a specialisation, or a use
        elif tokens[at] == "::":
            return None, at + 1  # declared inside a class
        else:
            if tokens[at] not in TYPE_WORDS | {"alignas", "final"}:
                name = tokens[at]
            at += 1
    if at < len(tokens) and tokens[at] == ":":  # bases, or the type beneath an enum
        while at < len(tokens) and tokens[at] not in "{;":
            at += 1
    defines = at < len(tokens) and tokens[at] == "{"
    return (name if defines else None), at


def namespace_head(tokens, at):
    """tokens[at] is `namespace`: its names ('' if it has none), or None for an alias; and where to go on."""
    at += 1
    names = []
    while at < len(tokens) and tokens[at] not in "{=;":
        if tokens[at] not in ("::", "inline"):
            names.append(tokens[at])
        at += 1
    return (None if tokens[at:at + 1] != ["{"] else "::".join(names)), at


def types_of(text):
    """The types that are defined at namespace scope: pairs of namespaces (a list, '' one without a name) and name."""
    tokens = TOKEN.findall(NOISE.sub(lambda noise: '""' if noise[0].endswith('"') else " ", text))
    scopes, found, at = [], [], 0  # a scope is the name of a namespace, or None for any other block
    while at < len(tokens):
        token = tokens[at]
        if token == "}":
            del scopes[-1:]
        elif token == "{":
            # extern "C" { has no name and is no scope; its literal is gone.
            scopes.append("extern" if tokens[at - 1:at] == ["extern"] else None)
        elif None not in scopes and token == "template" and tokens[at + 1:at + 2] == ["<"]:
            at = skip(tokens, at + 1)
            continue
        elif None not in scopes and token == "namespace" and tokens[at - 1:at] != ["using"]:
            name, at = namespace_head(tokens, at)
            if name is not None:
                scopes.append(name)
        elif None not in scopes and token in TYPE_WORDS:
            name, at = type_head(tokens, at)
            if name is not None:
                found.append(([s for s in scopes if s != "extern"], name))
                scopes.append(None)
            elif at < len(tokens) and tokens[at] == "{":
                continue
        at += 1
    return found


def main():
    files = subprocess.run(["git", "ls-files", "*.h", "*.cpp"], check=True, capture_output=True,
                           text=True).stdout.split()
    faults, homes, count = [], collections.defaultdict(set), 0
    for path in files:
        for scopes, name in types_of(pathlib.Path(path).read_text()):
            count += 1
            if "" in scopes:
                continue
            homes["::".join(scopes + [name])].add(path)
            if path.endswith(".cpp") and name not in SEEN_BY_OTHERS.get(path, {}):
                faults.append(f"{path}: {name}: put it into an anonymous namespace")
    for name, places in sorted(homes.items()):
        if len(places) > 1:
            faults.append(f"{name} is defined in {', '.join(sorted(places))}: one program would have one of them")
    print("\n".join(faults))
    print(f"{count} types in {len(files)} files, {len(faults)} faults")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
