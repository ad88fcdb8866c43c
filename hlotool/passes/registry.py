"""Passes by name: the built-in ones, and those of the entry points of group `hlotool.passes`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hlotool.errors import UsageError
from hlotool.findings.records import Record
from hlotool.names import did_you_mean
from hlotool.passes.base import Pass
from hlotool.passes.options import OptionRecord, options_of, summary

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


GROUP = "hlotool.passes"

#: Classes as in entry points. Known without an installed distribution, so that a plain checkout works.
BUILT_IN: dict[str, str] = {
    "annotate-trip-counts": "hlotool.passes.loops:AnnotateTripCounts",
    "cse": "hlotool.passes.cse:Cse",
    "dce": "hlotool.passes.dce:Dce",
    "defuse": "hlotool.passes.inline:Defuse",
    "deschedule": "hlotool.passes.despecialize:Deschedule",
    "drop-control-dependencies": "hlotool.passes.despecialize:DropControlDependencies",
    "drop-layouts": "hlotool.passes.drop_layouts:DropLayouts",
    "extract": "hlotool.passes.extract:Extract",
    "flatten": "hlotool.passes.flatten:Flatten",
    "fold": "hlotool.passes.fold:Fold",
    "fuse": "hlotool.passes.fuse:Fuse",
    "inline": "hlotool.passes.inline:Inline",
    "limit-loops": "hlotool.passes.loops:LimitLoops",
    "scale": "hlotool.scale.scale_pass:Scale",
    "simplify": "hlotool.passes.algebra.simplify:Simplify",
    "simplify-conditionals": "hlotool.passes.conditionals:SimplifyConditionals",
    "simplify-tuples": "hlotool.passes.simplify_tuples:SimplifyTuples",
    "synchronize": "hlotool.passes.despecialize:Synchronize",
    "unroll": "hlotool.passes.loops:Unroll",
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


class PassDescription(Record, frozen=True):
    """A pass that `--passes` takes, or a pipeline of them.

    Attributes:
        name: as on the command line.
        about: what it does; of a pipeline the passes that it stands for.
        options: of a pass.
        xla: what XLA calls it; empty where that is the same, or where it has none like it.
        error: why it cannot be loaded.
    """

    name: str
    about: str
    options: list[OptionRecord] = []
    xla: str = ""
    error: str = ""


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
