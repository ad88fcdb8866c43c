"""Actions that make trees, of what the grammar derives and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lark

from hlotool.grammar import Token


class Node(NamedTuple):
    """A rule and the values of its children."""

    rule: str
    children: list[Any]


class Trees:
    """Any rule has an action here, no terminal has."""

    def __getattr__(self, name: str) -> Callable[[list[Any]], Node]:
        if name.isupper() or name.startswith("_"):
            raise AttributeError(name)
        return lambda children: Node(name, children)


TREES = Trees()


def plain(value: Any) -> Any:
    """A tree of `Trees` or of lark as nested tuples, tokens with all that is known of them."""
    if isinstance(value, (Token, lark.Token)):
        return (value.type, str(value), value.start_pos, value.end_pos, value.line)
    if isinstance(value, Node):
        return (value.rule, *map(plain, value.children))
    return (str(value.data), *map(plain, value.children))
