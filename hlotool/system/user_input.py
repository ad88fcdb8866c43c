"""What users write by hand: names, regular expressions, amounts of memory, TOML files.

A mistyped name is answered with the known ones nearest to it. Units of amounts are powers of 1024, whatever
letters name them. The standard library's TOML reader does not tell in which line a key stands, so that is
found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Final, TypeAlias

#: How alike two names must be, from 0 to 1: `bugdet` and `budget` are 0.83, `run` and `prune` 0.75.
_ALIKE = 0.6
#: Longer names are not compared, and of more names only the first: time goes with the square of lengths.
_LONGEST, _MOST = 200, 5_000


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that `name` is most like, capitals not counted; empty where none is alike."""
    from difflib import get_close_matches
    from itertools import islice

    if not name or len(name) > _LONGEST:
        return ""
    candidates: dict[str, str] = {}
    for other in islice(known, _MOST):
        if len(other) <= _LONGEST:
            candidates.setdefault(other.lower(), other)
    found = get_close_matches(name.lower(), candidates, n=1, cutoff=_ALIKE)
    return candidates[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'budget'?`, to be put behind a complaint; empty where nothing is alike."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def complaint_about(pattern: str) -> str:
    """Why `pattern` is no regular expression; empty where it is one."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    return ""


_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)(?:i?B)?", re.IGNORECASE)


def size_text(count: float) -> str:
    """Bytes in three digits: `512 B`, `12.1 KiB`, `1.54 MiB`; 1000 and more are `0.977 KiB`."""
    value = float(count)
    for unit in _UNITS:
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value * 1024:.3g} {_UNITS[-1]}"


def size_of(text: str) -> int | None:
    """Bytes of `8G`, `512M`, `1.5GiB`, `100`, `2000 KB`; None of what is no finite amount of memory."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    count = float(found[1]) * (1 << 10 * "BKMGTP".index(found[2].upper() or "B"))
    return int(count) if isfinite(count) else None


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
    import tomllib

    parts = _KEY_PART.findall(" ".join(tokens))
    return tuple(next(iter(tomllib.loads(f"{part} = 0"))) for part in parts)
