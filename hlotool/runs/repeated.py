"""Several runs of one program on the same arguments: do results differ, and are all of them legal?

A GPU adds up by atomics, and tunes itself anew: results may differ from run to run in any way that the order
of sums allows. What no legal execution gives, in some runs, is a race, or a fault of the hardware.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from hlotool.backends.base import Value
from hlotool.ir.arrays import flatten
from hlotool.ir.types import Shape
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import Answer
from hlotool.runs.records import ModuleRecord, RepeatRecord
from hlotool.runs.runners import Outcome

#: Different results that are judged, the most frequent ones; of a race there may be as many as runs.
_JUDGED = 16


def with_repeats(
    row: ModuleRecord,
    shape: Shape,
    first: Outcome,
    again: Callable[[], Outcome],
    judge: Callable[[Outcome], ModuleRecord],
    count: int,
) -> ModuleRecord:
    """The row of a program after `count` runs in all: that of a wrong result, where some run had one.

    Args:
        row: of the first run.
        shape: of the result.
        first: what that run returned.
        again: runs the program once more.
        judge: the row of a result.
        count: runs in all, the first one included.

    Raises:
        HlotoolError: the program died in one of the runs.
    """
    found: dict[bytes, Outcome] = {}
    seen: Counter[bytes] = Counter()
    differing: set[str] = set()
    leaves = dict(_bits(shape, first.value))
    for number in range(count):
        outcome = first if number == 0 else again()
        own = dict(_bits(shape, outcome.value))
        differing |= {name for name, bits in own.items() if bits != leaves[name]}
        key = b"".join(own.values())
        found.setdefault(key, outcome)
        seen[key] += 1
    rows = {_bytes(shape, first): row}
    for key, _ in seen.most_common(_JUDGED):
        if key not in rows:
            rows[key] = judge(found[key])
    wrong = {key: one for key, one in rows.items() if one.verdict.answer is Answer.BAD}
    record = RepeatRecord(
        runs=count,
        results=len(seen),
        judged=sum(seen[key] for key in rows),
        wrong=sum(seen[key] for key in wrong),
        outputs=sorted(differing),
    )
    if not wrong or len(seen) == 1:
        return msgspec.structs.replace(row, repeated=record)
    worst = max(wrong.values(), key=lambda one: one.verdict.rank)
    reason = f"in {record.wrong} of {record.judged} runs: {worst.reason}"
    return msgspec.structs.replace(worst, repeated=record, reason=reason)


def _bytes(shape: Shape, outcome: Outcome) -> bytes:
    return b"".join(bits for _, bits in _bits(shape, outcome.value))


def _bits(shape: Shape, value: Value) -> Any:
    """The arrays of a result, by name; tokens have none."""
    for index, _, part in flatten(shape, value):
        if isinstance(part, np.ndarray | np.generic):
            yield output_name(list(index)), np.ascontiguousarray(part).tobytes()
