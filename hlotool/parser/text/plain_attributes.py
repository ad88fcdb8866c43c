"""Attributes of plain forms, read without the parser.

Most attributes are numbers, words or strings (`dimensions={0,1}`, `direction=GE`, `to_apply=%add`), and
each distinct text of one is met for the first time once. Which form a key has is the grammar's; an
expression computed from the grammar proves the value, which is then taken apart without the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from hlotool import grammar
from hlotool.grammar import Token
from hlotool.ir.attributes import FrontendAttributes, ParameterAlias, Sharding, SliceDim, Window
from hlotool.parser.text.hlo_parser import RESERVED, actions
from hlotool.parser.text.sharding_actions import PLAIN_SHARDING, plain_sharding
from hlotool.parser.text.syntax import AttributeSyntax, CalleeName, Name, TextError
from hlotool.parser.tokens import SAFE_STRING, unquote

#: It may not fit in 64 bits.
_LONG = 18
_LONG_NUMBER = re.compile(r"[0-9]{19}")
_SLICE = re.compile(r"\[ ?(-?[0-9]+) ?: ?(-?[0-9]+)(?: ?: ?(-?[0-9]+))? ?\]")
#: A string, or braces with strings and nothing else that could mean more than itself.
_ENTRY_VALUE = rf'(?>{SAFE_STRING}|\{{[^{{}}"/]*+(?>(?:"[^"\\/]*+"[^{{}}"/]*+)*)\}})'
_ENTRY = re.compile(rf"([A-Za-z0-9_.\-]+)=({_ENTRY_VALUE})")
_WINDOW_FIELD = re.compile(r"([a-z_]+=)([^ }]+)")
_ALIAS = re.compile(r"\{([0-9,]*)\}: \(([0-9]+), \{([0-9,]*)\}(?:, (may-alias|must-alias))?\)")
_SINGLE_SHARDING = re.compile(PLAIN_SHARDING)


class _Form(NamedTuple):
    """How the values of some keys are written.

    Attributes:
        proves: whether a text is such a value.
        decode: its value; None where only the parser knows it.
    """

    proves: Callable[[str], object]
    decode: Callable[[str], Any]


def plain_attribute(text: str) -> AttributeSyntax | None:
    """The attribute `key=value` if it is of a plain form, else None: the parser decides."""
    equals = text.find("=") + 1
    form = _form_of(text[:equals])
    value = text[equals:]
    if form is None or not form.proves(value) or (len(value) > _LONG and _LONG_NUMBER.search(value)):
        return None
    try:
        decoded = form.decode(value)
    except TextError:
        return None
    return None if decoded is None else AttributeSyntax(text[: equals - 1], decoded, 0)


@lru_cache(maxsize=256)
def _form_of(key: str) -> _Form | None:
    """The form of a key; an expression is compiled when it is first needed."""
    for keys, (value, decode) in _forms().items():
        if re.fullmatch(grammar.terminal(keys), key):
            return _Form(re.compile(value).fullmatch, decode)
    return None


@cache
def _forms() -> Mapping[str, tuple[str, Callable[[str], Any]]]:
    """The forms, each with the keys that have it."""
    word, name = grammar.terminal("IDENTIFIER"), grammar.terminal("PERCENT_NAME")
    ints, entry = grammar.pattern("ints"), grammar.terminal("KEY") + _ENTRY_VALUE
    padding = grammar.terminal("PADDING")
    sizes = f"(?>{grammar.terminal('SIZES')}|{grammar.terminal('INT')})"
    field = f"(?>{grammar.terminal('WINDOW_FIELD_KEY')}{sizes}|{grammar.terminal('WINDOW_PAD_KEY')}{padding})"
    single = r"(?>(?:/\*index=[0-9]+\*/)?)" + PLAIN_SHARDING
    index = r"\{(?>(?:[0-9]+(?>(?:,[0-9]+)*))?)\}"
    alias = rf"{index}: \([0-9]+, {index}(?>(?:, (?:may|must)-alias)?)\)"
    return {
        "BOOL_KEY": (grammar.terminal("BOOL"), _is_true),
        "BOOL_OR_BOOLS_KEY": (grammar.pattern("booleans"), _booleans),
        "COMPUTATION_KEY": (f"{name}|{word}", _callee),
        "FRONTEND_KEY": (rf"\{{(?>(?:{entry}(?>(?:, ?{entry})*))?)\}}", _frontend),
        "DIM_LABELS_KEY": (grammar.terminal("DIM_LABELS"), lambda value: _action("dim_labels", value)),
        "ENUM_KEY": (word, lambda value: None if value in RESERVED else value),
        "INT_KEY": (grammar.terminal("INT"), int),
        "INTS_KEY": (ints, _integers),
        "PADDING_KEY": (padding, lambda value: _action("padding", value)),
        "PARAMETER_ALIASES_KEY": (rf"\{{ (?>{alias}(?>(?:, {alias})*)) \}}", _aliases),
        "SHARDING_KEY": (rf"\{{{single}(?>(?:, {single})*)\}}|{PLAIN_SHARDING}", _sharding),
        "SLICE_KEY": (grammar.pattern("slice"), _slice),
        "SLICE_SIZES_KEY": (ints, _integers),
        "STRING_KEY": (SAFE_STRING, unquote),
        "WINDOW_KEY": (rf"\{{(?>(?:{field}(?>(?: {field})*))?)\}}", _window),
    }


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
    return _numbers(value[1:-1])


def _slice(value: str) -> tuple[SliceDim, ...]:
    return tuple([SliceDim(*map(int, filter(None, bounds))) for bounds in _SLICE.findall(value)])


def _token(text: str, kind: str = "") -> Token:
    token = Token(text)
    token.type, token.start_pos = kind, 0
    return token


def _action(rule: str, value: str) -> Any:
    """What the grammar makes of a rule that is a single token; raises TextError."""
    return getattr(actions(False), rule)([_token(value)])


def _window(value: str) -> Window:
    children = []
    for key, entries in _WINDOW_FIELD.findall(value):
        children += [_token(key), _token(entries, "PADDING" if key == "pad=" else "SIZES")]
    return actions(False).window(children)


def _sharding(value: str) -> Sharding:
    if not value.startswith("{{"):
        return plain_sharding(value)
    texts = _SINGLE_SHARDING.findall(value)
    known = {text: plain_sharding(text) for text in set(texts)}
    return Sharding("tuple", elements=tuple([known[text] for text in texts]))


def _aliases(value: str) -> tuple[ParameterAlias, ...]:
    return tuple(
        [
            ParameterAlias(_numbers(output), int(parameter), _numbers(index), kind or "may-alias")
            for output, parameter, index, kind in _ALIAS.findall(value)
        ]
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()
