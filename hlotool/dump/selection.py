"""Which modules of a dump a command is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlotool.dump.records import Dump, DumpModule
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
