"""Grammar actions for tokens, shapes, layouts, metadata, frontend attributes, backend configs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from hlotool.grammar import Token
from hlotool.parser.text.syntax import TextError
from hlotool.parser.tokens import unquote

#: What is made of the parts of a rule; the object with all actions comes first.
Action: TypeAlias = Callable[[object, list[Any]], Any]

_INT64_LIMIT, _UINT64_LIMIT = 1 << 63, 1 << 64
#: More digits than any 64-bit number has.
_MOST_DIGITS = 20


def integer(token: Token) -> int:
    """A 64-bit number; from 2**63 on it is the bit pattern of a negative one, as XLA reads it."""
    digits = token.lstrip("-0")
    value = int(token) if len(digits) <= _MOST_DIGITS else _UINT64_LIMIT
    if -_INT64_LIMIT <= value < _INT64_LIMIT:
        return value
    if 0 <= value < _UINT64_LIMIT:
        return value - _UINT64_LIMIT
    raise TextError(f"{token[:40]} does not fit in 64 bits", token.start_pos)


def integers(tokens: Iterable[Token]) -> tuple[int, ...]:
    """Several 64-bit numbers, each read as by `integer`."""
    return tuple(map(integer, tokens))


def real(token: Token) -> float:
    """A double; NaN payloads are of no use here."""
    value = float(token.partition("(")[0])
    if value in (float("inf"), float("-inf")) and "inf" not in token:
        raise TextError(f"{token[:40]} is out of range for a double", token.start_pos)
    return value


def string(token: Token) -> str:
    """The content of a quoted string."""
    try:
        return unquote(token)
    except ValueError as error:
        raise TextError(str(error), token.start_pos) from error


def of_first(value: Callable[[Any], object]) -> Action:
    """The action of a rule that is its first part."""
    return lambda self, children: value(children[0])


def of_all(value: Callable[[tuple[Any, ...]], object], skipped: int = 0) -> Action:
    """The action of a rule that is all of its parts but for the first `skipped`."""
    return lambda self, children: value(tuple(children[skipped:]))
