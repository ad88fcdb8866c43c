"""Pipelines from text: `inline,fix(simplify-tuples,cse,dce),fuse{kind=loop}`.

A pipeline is a list of passes separated by commas, each with options in braces separated by blanks or commas.
`fix(…)` repeats a list until nothing changes any more. Some names stand for whole pipelines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.errors import UsageError
from hlotool.passes.base import Pass
from hlotool.passes.options import make_pass
from hlotool.passes.registry import PIPELINES, XLA_NAMES, pass_class

_TOKEN = re.compile(r"\s*(?P<sign>[(),])|\s*(?P<name>[A-Za-z][\w-]*)\s*(?:\{(?P<options>[^{}]*)\})?")
_OPTION = re.compile(r"[^\s,]+")

#: Rounds after which `fix(…)` gives up; passes that undo each other would go on for ever.
MOST_ROUNDS = 25


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in order.

    Attributes:
        name: in statistics and in names of dumped files.
        items: passes and further pipelines.
        until_stable: repeat the items until none of them changes anything.
    """

    name: str
    items: tuple[Item, ...]
    until_stable: bool = False


Item: TypeAlias = Pass | Pipeline


def parse_pipeline(text: str, name: str = "opt") -> Pipeline:
    """The pipeline that `text` describes.

    Args:
        text: see the head of this file.
        name: of the whole.

    Raises:
        UsageError: it is not written right, or names a pass, an option or a value that does not exist.
    """
    tokens = _Tokens(text)
    items = _items(tokens)
    if tokens.look() is not None:
        raise tokens.error("a comma or the end")
    return Pipeline(name, items)


def known_pass(name: str) -> str:
    """The name here of a pass, which may be given by XLA's; raises UsageError where there is none."""
    return pass_class(XLA_NAMES.get(name, name)).name


class _Tokens:
    """The words and signs of a pipeline's text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._found = list(self._split())
        self._index = 0

    def _split(self) -> Iterator[re.Match[str]]:
        end = len(self.text.rstrip())
        while self.position < end:
            found = _TOKEN.match(self.text, self.position)
            if found is None:
                raise self.error("the name of a pass")
            yield found
            self.position = found.end()

    def look(self) -> re.Match[str] | None:
        """The next one, or None at the end."""
        return self._found[self._index] if self._index < len(self._found) else None

    def take(self, sign: str) -> bool:
        """Whether `sign` comes next; it is then consumed."""
        found = self.look()
        if found is None or found["sign"] != sign:
            return False
        self._index += 1
        return True

    def name(self) -> re.Match[str]:
        """The next token, which must be a name."""
        found = self.look()
        if found is None or found["name"] is None:
            raise self.error("the name of a pass")
        self._index += 1
        return found

    def error(self, expected: str) -> UsageError:
        """What is wrong, and where."""
        found = self.look() if hasattr(self, "_found") else None
        at = found.start() if found else self.position
        rest = self.text[at:].strip() or "the end"
        return UsageError(f"--passes: expected {expected}, found {rest!r} in {self.text!r}")


def _items(tokens: _Tokens) -> tuple[Item, ...]:
    items = [_item(tokens)]
    while tokens.take(","):
        items.append(_item(tokens))
    return tuple(items)


def _item(tokens: _Tokens) -> Item:
    found = tokens.name()
    name, options = XLA_NAMES.get(found["name"], found["name"]), found["options"]
    if name == "fix" and options is None and tokens.take("("):
        items = _items(tokens)
        if not tokens.take(")"):
            raise tokens.error("a closing parenthesis")
        return Pipeline("fix", items, until_stable=True)
    if name in PIPELINES:
        if options is not None:
            raise UsageError(f"pipeline {name} takes no options")
        whole = parse_pipeline(PIPELINES[name], name)
        (only, *others) = whole.items
        if not others and isinstance(only, Pipeline):
            return Pipeline(name, only.items, only.until_stable)
        return whole
    return make_pass(pass_class(name), _options(options or ""))


def _options(text: str) -> dict[str, str | None]:
    given: dict[str, str | None] = {}
    for part in _OPTION.findall(text):
        name, equals, value = part.partition("=")
        if name in given:
            raise UsageError(f"--passes: option {name} is given twice in {{{text}}}")
        given[name] = value if equals else None
    return given
