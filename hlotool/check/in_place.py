"""What replays cannot show: fusions whose generated code may overwrite what it still reads.

All stages of such a program compute the same, whatever they are run on; only the order in which generated
code reads and writes decides. The rule `fusion-in-place` knows it without running anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlotool.dump.names import Format
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import HlotoolError
from hlotool.workers.executor import Executor

RULE = "fusion-in-place"

#: Without one of these nothing is updated in place.
_UPDATES = (b" dynamic-update-slice(", b" scatter(")


def unsafe_updates(modules: Iterable[DumpModule], pool: Executor) -> Iterator[str]:
    """What the rule says of the programs as compiled, one line each.

    Args:
        modules: of a dump; those whose text has no update in place cost nothing.
        pool: where the others are read.
    """
    chosen = [(module, module.after) for module in modules]
    tasks = [(module, stage) for module, stage in chosen if stage is not None and _has_updates(stage)]
    if not tasks:
        return
    # Most programs need none of the rules, and these take time to import.
    from hlotool.check.run import check_stages

    for finding in check_stages(tasks, pool, frozenset({RULE})):
        yield f"{finding.module}: {finding.message}: code that is generated for it may do that first ({RULE})"


def _has_updates(stage: Stage) -> bool:
    try:
        text = stage.source.read_bytes()
    except HlotoolError:
        return False
    if stage.format is not Format.TEXT:
        return True
    return b" fusion(" in text and any(update in text for update in _UPDATES)
