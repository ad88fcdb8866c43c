"""Two faults at once, at different places."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.adversary.plants import KINDS, kind
from benchmarks.adversary.text import Text

_FIRST = (
    "constant-fourth-digit",
    "last-element",
    "strictness",
    "middle-bf16",
    "where-then",
    "guard-extremum",
)


@kind("V15", after=True)
def two_at_once(text: Text) -> Iterator[tuple[str, str]]:
    """A second fault is planted into a text that has one."""
    for name in _FIRST:
        for said, made, *_ in list(KINDS[name].plant(text))[:3]:
            for second in _FIRST:
                if second != name:
                    for further, twice, *_ in list(KINDS[second].plant(Text(made)))[-2:]:
                        yield f"{said} AND {further}", twice
