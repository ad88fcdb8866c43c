"""All passes with their options, for listings; one that cannot be loaded says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlotool.passes.options import Option, options_of, summary
from hlotool.passes.registry import pass_class, pass_names


@dataclass(frozen=True, slots=True)
class PassInfo:
    """What can be said of a pass.

    Attributes:
        name: as on the command line.
        about: what it does.
        options: it takes.
        error: why it cannot be loaded; empty when it can.
    """

    name: str
    about: str = ""
    options: Sequence[Option] = ()
    error: str = ""


def describe_passes() -> list[PassInfo]:
    """All registered passes by name."""
    return [_describe(name) for name in pass_names()]


def _describe(name: str) -> PassInfo:
    try:
        kind = pass_class(name)
        return PassInfo(name, summary(kind), options_of(kind))
    except Exception as error:
        # A pass of another package may fail in any way; the others are still there.
        return PassInfo(name, error=f"{type(error).__name__}: {error}")
