"""What replays cannot show: fusions whose generated code may overwrite what it still reads.

All stages of such a program compute the same, whatever they are run on; only the order in which generated
code reads and writes decides. The rule `fusion-in-place` knows it without running anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hlotool.errors import HlotoolError
from hlotool.sources.file_names import Format
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.cache import Store
from hlotool.system.executor import Executor
from hlotool.system.files import digest

if TYPE_CHECKING:
    from hlotool.checks.run import CheckResult

RULE = "fusion-in-place"

#: Without one of these nothing is updated in place.
_UPDATES = (b" dynamic-update-slice(", b" scatter(")


def unsafe_updates(
    modules: Iterable[DumpModule], executor: Executor, store: Store | None = None, made_with: str = ""
) -> Iterator[str]:
    """What the rule says of the programs as compiled, one line each.

    Args:
        modules: of a dump; those whose text has no update in place cost nothing.
        executor: where the others are read.
        store: has what the rule said earlier, and gets what it says now; None: nothing is kept.
        made_with: a key of all that decides besides the texts.
    """
    found = [(module, module.after) for module in modules]
    wanted = [(m, stage, text) for m, stage in found if stage is not None and (text := _with_updates(stage))]
    keys = [digest(RULE, made_with, text) for _, _, text in wanted]
    said = [None if store is None else _lines(store.get(key)) for key in keys]
    new = [(module, stage) for (module, stage, _), lines in zip(wanted, said) if lines is None]
    results: Iterator[CheckResult] = iter(())
    if new:
        # Most programs need none of the rules, and these take time to import.
        from hlotool.checks.run import check_stages

        results = check_stages(new, executor, frozenset({RULE}))
    for (module, _, _), key, lines in zip(wanted, keys, said):
        if lines is None:
            result = next(results)
            lines = [finding.message for finding in result.findings]
            if store is not None and not result.failures:
                store.put(key, lines)
        for line in lines:
            yield f"{module.title}: {line}: code that is generated for it may do that first ({RULE})"


def _lines(value: Any) -> list[str] | None:
    """What a store has kept; None for what are no lines."""
    is_lines = isinstance(value, list) and all(isinstance(line, str) for line in value)
    return value if is_lines else None


def _with_updates(stage: Stage) -> bytes:
    """The text of a program that updates something in place; empty for others."""
    try:
        text = stage.source.read_bytes()
    except HlotoolError:
        return b""
    is_text = stage.format is Format.TEXT
    has = b" fusion(" in text and any(update in text for update in _UPDATES)
    return text if has or not is_text else b""
