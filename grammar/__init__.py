"""The grammar of HLO text, and the parsers built from it.

`hlo.lark` is the definition. lark computes LALR tables from it, which ship beside it in `hlo.tables.bin`;
`python -m hlotool.grammar.build` writes them anew after a change. They are run by a small engine of our own,
so that lark is not loaded to read a text. Tables of another hlo.lark are not used: then they are computed, in
a second or two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from hlotool.grammar.definition import (
    GRAMMAR_PATH,
    STARTS,
    TABLES_PATH,
    Tables,
    grammar_checksum,
    grammar_text,
)
from hlotool.grammar.engine import Engine, Token, Unexpected

__all__ = [
    "GRAMMAR_PATH",
    "STARTS",
    "TABLES_PATH",
    "Tables",
    "Token",
    "Unexpected",
    "grammar_checksum",
    "grammar_text",
    "literal",
    "parser",
    "pattern",
    "tables",
    "terminal",
]


@cache
def tables() -> Tables:
    """The shipped tables where they fit, else fresh ones."""
    try:
        shipped = Tables.load(TABLES_PATH.read_bytes())
    except FileNotFoundError:
        shipped = None
    if shipped is not None and shipped.grammar_checksum == grammar_checksum():
        return shipped
    from hlotool.grammar.build import compute_tables

    return compute_tables()


@cache
def parser(start: str, actions: object) -> Callable[..., Any]:
    """A function that parses a string, or what of it lies behind a position.

    Args:
        start: one of STARTS.
        actions: methods by the names of rules, each called with the list of its children.

    Returns:
        What parses; it returns what the actions make of the text and raises `Unexpected`.

    Raises:
        ValueError: there is no such start rule.
    """
    if start not in STARTS:
        raise ValueError(f"no start rule {start}; there are {', '.join(STARTS)}")
    return partial(_engine(actions).parse, start)


@cache
def _engine(actions: object) -> Engine:
    return Engine(tables().engine, actions)


def pattern(rule: str) -> str:
    """A regular expression; what it matches in full, the rule derives."""
    return tables().patterns[rule]


def terminal(name: str) -> str:
    """The regular expression of a terminal."""
    return tables().terminals[name]


def literal(name: str) -> str | None:
    """The string that a terminal always is, None where it is an expression."""
    return tables().literals.get(name)
