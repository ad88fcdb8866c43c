"""Several runs of one program on the same arguments: do results differ, and are all of them legal?

A GPU adds up by atomics, and tunes itself anew: results may differ from run to run in any way that the order
of sums allows. What no legal execution gives, in some runs, is a race, or a fault of the hardware.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator

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
    leaves = dict(_digests(shape, first.value))
    own = b"".join(leaves.values())
    found, seen, differing = {own: first}, Counter([own]), set[str]()
    for _ in range(count - 1):
        outcome = again()
        others = dict(_digests(shape, outcome.value))
        differing |= {name for name, digest in others.items() if digest != leaves[name]}
        key = b"".join(others.values())
        found.setdefault(key, outcome)
        seen[key] += 1
    rows = {own: row}
    for key, _ in seen.most_common(_JUDGED):
        if key not in rows:
            rows[key] = judge(found[key])
    wrong = {key: one for key, one in rows.items() if one.verdict.answer is Answer.BAD}
    record = RepeatRecord(
        runs=count,
        results=len(seen),
        usual=max(seen.values()),
        judged=sum(seen[key] for key, one in rows.items() if one.verdict.answer is not Answer.UNUSABLE),
        wrong=sum(seen[key] for key in wrong),
        outputs=sorted(differing),
    )
    if not wrong or len(seen) == 1:
        return msgspec.structs.replace(row, repeated=record)
    worst = max(wrong.values(), key=lambda one: one.verdict.rank)
    reason = f"in {record.wrong} of {record.judged} runs: {worst.reason}"
    return msgspec.structs.replace(worst, repeated=record, reason=reason)


def _digests(shape: Shape, value: Value) -> Iterator[tuple[str, bytes]]:
    """The arrays of a result by name, each by its bits; tokens have none."""
    for index, _, part in flatten(shape, value):
        if isinstance(part, np.ndarray | np.generic):
            yield output_name(list(index)), hashlib.blake2b(np.ascontiguousarray(part).tobytes()).digest()
