"""Which modules and stages of a dump a command is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from hlotool.dump.records import Dump, DumpModule, Stage
from hlotool.errors import UsageError


def modules_matching(dumps: Iterable[Dump], only: str | None) -> list[tuple[Dump, DumpModule]]:
    """Modules, each with the dump that it is of.

    Args:
        dumps: as `open_dump` found them.
        only: regular expression that the title must match somewhere; None for all modules.

    Raises:
        UsageError: no module matches.
    """
    modules = [(dump, module) for dump in dumps for module in dump.modules]
    wanted = [(dump, m) for dump, m in modules if only is None or re.search(only, m.title)]
    if not wanted:
        names = ", ".join(m.title for _, m in modules[:5]) + (", …" if len(modules) > 5 else "")
        raise UsageError(f"no module matches --only {only!r}; there are: {names}")
    return wanted


def stages_matching(stages: Iterable[Stage], patterns: Sequence[str]) -> tuple[Stage, ...]:
    """Stages whose title matches one of the shell patterns."""
    return tuple(s for s in stages if any(fnmatchcase(s.title, pattern) for pattern in patterns))


def first_and_last(module: DumpModule) -> tuple[Stage, ...]:
    """The first and the last stage of a module; the only one where there are no two."""
    available = module.stages or module.others
    return (available[0], available[-1]) if len(available) > 1 else tuple(available)
