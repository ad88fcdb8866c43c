"""Passes by name, built in or of the entry points `hlotool.passes`; pipelines of them from text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from hlotool.errors import UsageError
from hlotool.rewrite.passes.base import Pass, make_pass, options_of, summary
from hlotool.rewrite.passes.records import PassDescription
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


GROUP = "hlotool.passes"

#: Classes as in entry points. Known without an installed distribution, so that a plain checkout works.
BUILT_IN: dict[str, str] = {
    "annotate-trip-counts": "hlotool.rewrite.passes.loops:AnnotateTripCounts",
    "cse": "hlotool.rewrite.passes.cleanup:Cse",
    "dce": "hlotool.rewrite.passes.cleanup:Dce",
    "defuse": "hlotool.rewrite.passes.calls:Defuse",
    "deschedule": "hlotool.rewrite.passes.despecialize:Deschedule",
    "drop-control-dependencies": "hlotool.rewrite.passes.despecialize:DropControlDependencies",
    "drop-layouts": "hlotool.rewrite.passes.despecialize:DropLayouts",
    "extract": "hlotool.rewrite.passes.despecialize:Extract",
    "flatten": "hlotool.rewrite.passes.calls:Flatten",
    "fold": "hlotool.rewrite.passes.cleanup:Fold",
    "fuse": "hlotool.rewrite.passes.fuse:Fuse",
    "inline": "hlotool.rewrite.passes.calls:Inline",
    "limit-loops": "hlotool.rewrite.passes.loops:LimitLoops",
    "scale": "hlotool.rewrite.scale.scale_pass:Scale",
    "simplify": "hlotool.rewrite.passes.algebra.simplify:Simplify",
    "simplify-conditionals": "hlotool.rewrite.passes.calls:SimplifyConditionals",
    "simplify-tuples": "hlotool.rewrite.passes.cleanup:SimplifyTuples",
    "synchronize": "hlotool.rewrite.passes.despecialize:Synchronize",
    "unroll": "hlotool.rewrite.passes.loops:Unroll",
}

#: Names that stand for several passes.
PIPELINES: dict[str, str] = {
    "despecialize": "deschedule,drop-control-dependencies,synchronize,defuse,drop-layouts",
}

#: What XLA (`hlo-opt`, `--xla_disable_hlo_passes`) calls the passes that do the same work.
XLA_NAMES: dict[str, str] = {
    "algsimp": "simplify",
    "call-inliner": "inline",
    "constant_folding": "fold",
    "control-dep-remover": "drop-control-dependencies",
    "control-flow-flattening": "limit-loops",
    "defuser": "defuse",
    "despecializer": "despecialize",
    "flatten-call-graph": "flatten",
    "fusion": "fuse",
    "hlo-descheduler": "deschedule",
    "simplify-conditional": "simplify-conditionals",
    "tuple-simplifier": "simplify-tuples",
    "while-loop-trip-count-annotator": "annotate-trip-counts",
    "while_loop_unroller": "unroll",
}


def pass_names() -> list[str]:
    """All names that `pass_class` accepts."""
    return sorted(set(BUILT_IN) | {entry.name for entry in _entry_points()})


def pass_class(name: str) -> type[Pass]:
    """The pass called `name`.

    Raises:
        UsageError: there is none of that name.
    """
    if place := BUILT_IN.get(name):
        module, _, kind = place.partition(":")
        built_in: type[Pass] = getattr(import_module(module), kind)
        return built_in
    for entry in _entry_points():
        if entry.name == name:
            loaded: type[Pass] = entry.load()
            return loaded
    names = [*pass_names(), *PIPELINES]
    raise UsageError(f"no pass {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def _entry_points() -> EntryPoints:
    """Those of installed packages."""
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def xla_name(name: str) -> str:
    """What XLA calls a pass or a pipeline; empty where that is the same, or where it has none like it."""
    return next((theirs for theirs, ours in XLA_NAMES.items() if ours == name), "")


def describe_passes() -> list[PassDescription]:
    """All registered passes by name."""
    return [_describe(name) for name in pass_names()]


def _describe(name: str) -> PassDescription:
    try:
        kind = pass_class(name)
        return PassDescription(name, summary(kind), options_of(kind), xla_name(name))
    except Exception as error:
        # A pass of another package may fail in any way; the others are still there.
        return PassDescription(name, "", error=f"{type(error).__name__}: {error}")


_TOKEN = re.compile(r"\s*(?P<sign>[(),])|\s*(?P<name>[A-Za-z][\w-]*)\s*(?:\{(?P<options>[^{}]*)\})?")
_OPTION = re.compile(r"[^\s,]+")

#: Rounds after which `fix(…)` gives up; passes that undo each other would go on for ever.
MOST_ROUNDS = 25


# A pipeline is a list of passes separated by commas, each with options in braces separated by blanks or
# commas. `fix(…)` repeats a list until nothing changes any more. Some names stand for whole pipelines.


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
