"""Options of a pass from text, by the types of its dataclass fields.

Types: `bool` (a bare name is true), `int`, `float`, `str`, `Literal[…]` of texts, `tuple[str, …]` (joined by
`+`), each perhaps `| None`.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hlotool.errors import UsageError
from hlotool.findings.records import Record
from hlotool.names import did_you_mean
from hlotool.passes.base import Pass

_ATTRIBUTE = re.compile(r"^ {4,}(\w+): (.+?)(?=^ {4,}\w+: |^\S|\Z)", re.MULTILINE | re.DOTALL)


class OptionRecord(Record, frozen=True):
    """One option of a pass.

    Attributes:
        name: as in `--passes 'pass{name=value}'`.
        values: what it takes, in words.
        default: its value when it is not given; null when it must be.
        about: what it means.
    """

    name: str
    values: str
    default: str | None
    about: str


def make_pass(kind: type[Pass], given: Mapping[str, str | None]) -> Pass:
    """The pass with the options `given`; the value of a bare name is None.

    Raises:
        UsageError: an option it does not have, a value that does not fit, or one that is missing.
    """
    types_of, own = get_type_hints(kind), _fields(kind)
    unknown = [name for name in given if name not in own]
    if unknown:
        known = ", ".join(own) or "none"
        meant = did_you_mean(unknown[0], own)
        raise UsageError(f"pass {kind.name} has no option {unknown[0]!r}; there are: {known}{meant}")
    missing = [name for name, f in own.items() if f.default is MISSING and name not in given]
    if missing:
        raise UsageError(f"pass {kind.name} needs the option {missing[0]}: {kind.name}{{{missing[0]}=…}}")
    values = {name: _value(kind.name, name, types_of[name], text) for name, text in given.items()}
    return kind(**values)


def options_of(kind: type[Pass]) -> list[OptionRecord]:
    """What the pass can be told, in the order of its fields."""
    types_of, about = get_type_hints(kind), _descriptions(kind)
    return [
        OptionRecord(name, _in_words(types_of[name]), _default(f), about.get(name, ""))
        for name, f in _fields(kind).items()
    ]


def summary(kind: type[Pass]) -> str:
    """The first line of the pass's docstring."""
    return (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")


def _fields(kind: type[Pass]) -> dict[str, Field[Any]]:
    return {f.name: f for f in fields(kind)}  # type: ignore[arg-type]


def _descriptions(kind: type[Pass]) -> dict[str, str]:
    _, _, attributes = (kind.__doc__ or "").partition("Attributes:\n")
    return {name: " ".join(text.split()).rstrip(".") for name, text in _ATTRIBUTE.findall(attributes)}


def _default(own: Field[Any]) -> str | None:
    if own.default is MISSING:
        return None
    if isinstance(own.default, bool):
        return str(own.default).lower()
    return "+".join(own.default) if isinstance(own.default, tuple) else str(own.default)


def _alternatives(hint: Any) -> list[Any]:
    """The types of a union but for None."""
    if get_origin(hint) in (Union, types.UnionType):
        return [part for part in get_args(hint) if part is not type(None)]
    return [hint]


def _in_words(hint: Any) -> str:
    (kind,) = _alternatives(hint)
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "names joined by +"
    return {bool: "true|false", int: "whole number", float: "number", str: "text"}[kind]


def _value(owner: str, name: str, hint: Any, text: str | None) -> Any:
    (kind,) = _alternatives(hint)
    try:
        return _convert(kind, text)
    except (ValueError, KeyError):
        given = name if text is None else f"{name}={text}"
        raise UsageError(f"pass {owner}: {given}: {name} takes {_in_words(hint)}") from None


def _convert(kind: Any, text: str | None) -> Any:
    if kind is bool:
        return {None: True, "true": True, "false": False}[text]
    if text is None:
        raise ValueError
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError
        return text
    if get_origin(kind) is tuple:
        return tuple(text.split("+"))
    return kind(text)
