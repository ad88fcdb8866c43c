"""Small damage to HLO texts, by a seeded generator."""

from __future__ import annotations

import random

_CHARACTERS = "%(){}[],=:\"._- ab01x/\n*'+?<>#\\\t"
_WORDS = """
, {} () [] /* */ // <= ROOT ENTRY f32[2] token[] {1,0} {...} inf nan true 1e9 -1 99999999999999999999 __x f32
é \\x parameter(0) constant(1) add(%a,%b) /*index=5*/ "//" metadata={op_name="q"} sharding={replicated}
"""
_PIECES: tuple[str, ...] = (
    *_WORDS.split(),
    "\0",
    "\r",
    "\n}\n",
    ", metadata={",
    ", to_apply=%region_0.1",
    ", sharding={manual}",
)
_INSERTIONS: list[str] = [*_CHARACTERS, *_PIECES]


def mutated(generator: random.Random, text: str) -> str:
    """`text` with one to three places damaged."""
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        text = generator.choice(_DAMAGES)(generator, text) or " "
    return text


def _deleted(generator: random.Random, text: str) -> str:
    at = generator.randrange(len(text))
    return text[:at] + text[at + generator.choice((1, 1, 2, 4, 10)) :]


def _replaced(generator: random.Random, text: str) -> str:
    at = generator.randrange(len(text))
    return text[:at] + generator.choice(_CHARACTERS) + text[at + 1 :]


def _inserted(generator: random.Random, text: str) -> str:
    at = generator.randrange(len(text))
    return text[:at] + generator.choice(_INSERTIONS) + text[at:]


def _copied(generator: random.Random, text: str) -> str:
    at, begin = generator.randrange(len(text)), generator.randrange(len(text))
    return text[:at] + text[begin : begin + generator.choice((3, 8, 20))] + text[at:]


def _lines_changed(generator: random.Random, text: str) -> str:
    lines = text.split("\n")
    a, b = generator.randrange(len(lines)), generator.randrange(len(lines))
    match generator.randrange(3):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            lines.insert(a, lines[b])
        case _:
            del lines[a]
    return "\n".join(lines)


_DAMAGES = (_deleted, _replaced, _inserted, _inserted, _copied, _lines_changed)
