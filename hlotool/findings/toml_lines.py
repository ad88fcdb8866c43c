"""Where the keys of a TOML file stand: the standard library's reader does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import TypeAlias

#: Names of tables and keys, and numbers of the tables of an array: `("check", "ignore", 1, "rule")`.
KeyPath: TypeAlias = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"(?!""))*)"{3,5}'
    r"|'''(?>(?:[^']|'(?!''))*)'{3,5}"
    r'|"(?>(?:[^"\\\n]|\\.)*)"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+"
    r"|[^\s\"'#=\[\]{}]++"
    r"|[=\[\]{}\n]",
    re.DOTALL,
)
_KEY_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[\w-]+')
_DEPTH = {"[": 1, "{": 1, "]": -1, "}": -1}


def line_of(text: str, path: KeyPath) -> int:
    """The line of the key `path` in a TOML document, else that of the table around it; 0 where neither is.

    Args:
        text: a valid document.
        path: of a key or a table; keys of inline tables have the line of these.
    """
    lines = dict(_keys(text))
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


def _keys(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every key and table header with its line."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for line, statement in _statements(text):
        if statement[0] != "[":
            yield (*table, *_parts(statement[: statement.index("=")])), line
            continue
        is_array = statement[:2] == ["[", "["]
        table = _numbered(_parts([token for token in statement if token not in "[]"]), counts)
        if is_array:
            counts[table] = counts.get(table, -1) + 1
            table = (*table, counts[table])
        yield table, line


def _numbered(names: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """The path of a header; inside an array of tables it means the last of these."""
    path: KeyPath = ()
    for name in names[:-1]:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    return (*path, *names[-1:])


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """The tokens of each header and each `key = value`, with the line on which it begins."""
    line, begins, depth = 1, 1, 0
    tokens: list[str] = []
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token == "\n":
            if tokens and not depth:
                yield begins, tokens
                tokens = []
        elif token[0] != "#":
            begins = begins if tokens else line
            tokens.append(token)
            depth += _DEPTH.get(token, 0)
        line += token.count("\n")
    if tokens:
        yield begins, tokens


def _parts(tokens: list[str]) -> KeyPath:
    """`a."b.c".d`, in whatever tokens, as names."""
    parts = _KEY_PART.findall(" ".join(tokens))
    return tuple(next(iter(tomllib.loads(f"{part} = 0"))) for part in parts)
