"""Attributes that are numbers, words or strings: `dimensions={0,1}`, `direction=GE`, `to_apply=%add`.

Most attributes are of these forms, and each distinct text of one is met for the first time once. Which form a
key has is the grammar's; an expression computed from the grammar proves the value, which is then taken apart
without the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

from hlotool import grammar
from hlotool.ir.attributes import FrontendAttributes, SliceDim
from hlotool.parse.text.strings import SAFE_STRING, unquote
from hlotool.parse.text.structure_actions import RESERVED
from hlotool.parse.text.syntax import AttributeSyntax, CalleeName, Name

#: It may not fit in 64 bits.
LONG_NUMBER = re.compile(r"[0-9]{19}")
_SLICE = re.compile(r"\[ ?(-?[0-9]+) ?: ?(-?[0-9]+)(?: ?: ?(-?[0-9]+))? ?\]")
_ENTRY = re.compile(rf"([A-Za-z0-9_.\-]+)=({SAFE_STRING})")


class _Form(NamedTuple):
    """How the values of some keys are written.

    Attributes:
        proves: whether a text is such a value.
        decode: its value; None where only the parser can tell.
    """

    proves: Callable[[str], object]
    decode: Callable[[str], Any]


def plain_attribute(text: str) -> AttributeSyntax | None:
    """The attribute `key=value` if it is of a plain form, else None: the parser decides."""
    equals = text.find("=") + 1
    form = _form_of(text[:equals])
    value = text[equals:]
    if form is None or not form.proves(value) or LONG_NUMBER.search(value):
        return None
    decoded = form.decode(value)
    return None if decoded is None else AttributeSyntax(text[: equals - 1], decoded, 0)


@lru_cache(maxsize=256)
def _form_of(key: str) -> _Form | None:
    return next((form for keys, form in _forms() if keys.fullmatch(key)), None)


@cache
def _forms() -> list[tuple[re.Pattern[str], _Form]]:
    """The forms, each with the keys that have it."""
    word, name = grammar.terminal("IDENTIFIER"), grammar.terminal("PERCENT_NAME")
    ints, entry = grammar.pattern("ints"), grammar.terminal("KEY") + SAFE_STRING
    forms: dict[str, tuple[str, Callable[[str], Any]]] = {
        "BOOL_KEY": (grammar.terminal("BOOL"), _is_true),
        "BOOL_OR_BOOLS_KEY": (grammar.pattern("booleans"), _booleans),
        "COMPUTATION_KEY": (f"{name}|{word}", _callee),
        "FRONTEND_KEY": (rf"\{{(?>(?:{entry}(?>(?:, ?{entry})*))?)\}}", _frontend),
        "ENUM_KEY": (word, lambda value: None if value in RESERVED else value),
        "INT_KEY": (grammar.terminal("INT"), int),
        "INTS_KEY": (ints, _integers),
        "SLICE_KEY": (grammar.pattern("slice"), _slice),
        "SLICE_SIZES_KEY": (ints, _integers),
        "STRING_KEY": (SAFE_STRING, unquote),
    }
    return [
        (re.compile(grammar.terminal(keys)), _Form(re.compile(value).fullmatch, decode))
        for keys, (value, decode) in forms.items()
    ]


def _frontend(value: str) -> FrontendAttributes:
    """Where a key repeats, the last value counts, as in XLA."""
    return FrontendAttributes(tuple(dict(_ENTRY.findall(value)).items()))


def _is_true(value: str) -> bool:
    return value == "true"


def _booleans(value: str) -> tuple[bool, ...]:
    return tuple(map(_is_true, value[1:-1].split(","))) if len(value) > len("{}") else ()


def _callee(value: str) -> CalleeName | None:
    return None if value in RESERVED else CalleeName(Name(value.removeprefix("%"), 0, 0))


def _integers(value: str) -> tuple[int, ...]:
    return tuple(map(int, value[1:-1].split(","))) if len(value) > len("{}") else ()


def _slice(value: str) -> tuple[SliceDim, ...]:
    return tuple([SliceDim(*map(int, filter(None, bounds))) for bounds in _SLICE.findall(value)])
