"""StableHLO amid other lines, as `prefixed` finds HLO: what a console, a log or a dump of passes printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hlotool.dump.mlir import is_mlir
from hlotool.dump.prefixed import unprefixed
from hlotool.dump.quoted import Lines, Quotation

_HEADER = re.compile(
    r"^(?P<prefix>[^\n]{0,300}?)(?P<header>module(?=[ \t]+@|[ \t]+attributes\b|[ \t]*\{)[^\n]*\{)[ \t]*$",
    re.MULTILINE,
)
#: A line that only the inside of a module has.
_BODY = re.compile(r"\s*(?:func\.func\b|%\S+ = |(?:func\.)?return\b|\"|\}|stablehlo\.)")
#: A name for an attribute or a location, which may stand above or below the module.
_ALIAS = re.compile(r"#\w+(?:\([^\n]*\))? ?= ?\S")
_FURTHEST = 2000


def has_several_modules(content: bytes) -> bool:
    """Whether a text of MLIR has more than one module side by side, which only a tool of MLIR splits."""
    return len(re.findall(rb"^module\b[^\n]*\{[ \t\r]*$", content, re.MULTILINE)) > 1


def mlir_amid_lines(text: str) -> Iterator[Quotation]:
    """The modules of StableHLO that begin with a `module` line somewhere in `text`."""
    headers = list(_HEADER.finditer(text))
    counted, end = Lines(text), 0
    for number, header in enumerate(headers):
        stop = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        above = _aliases_above(header["prefix"], text[end : header.start()].split("\n")[-_FURTHEST:])
        below = unprefixed(header["prefix"], text[header.end() + 1 : stop].split("\n"), _BODY)
        module = "\n".join([*above, header["header"], *_until_closed(below)])
        if is_mlir(module.encode("utf-8", "surrogateescape")):
            yield Quotation(max(counted.before(header.start()) - len(above), 0), module)
        end = header.end()


def _aliases_above(prefix: str, lines: Sequence[str]) -> list[str]:
    """The lines right above a header that define aliases."""
    found: list[str] = []
    for line in reversed(unprefixed(prefix, lines[:-1], _BODY)):
        if line.strip() and _ALIAS.match(line) is None:
            break
        found.insert(0, line)
    return found if any(map(str.strip, found)) else []


def _until_closed(lines: Sequence[str]) -> Iterator[str]:
    """Lines up to the brace that closes a module, and the aliases that follow."""
    is_closed = False
    for line in lines:
        if is_closed and line.strip() and _ALIAS.match(line) is None:
            return
        yield line
        is_closed = is_closed or line.rstrip() == "}"
