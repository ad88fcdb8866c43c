"""Rows before a replay has come to its end, and rows taken over from another comparison.

A verdict stands long before a module is done: further inputs are tried, the first wrong instruction is
looked for, the reference is observed. A process that is killed meanwhile, as its time is over, would take
the verdict with it. So every row is handed over as soon as its verdict stands, and again when it is
finished.

A result that equals what the last stage gives on the reference needs no row of its own: what is said of the
one holds for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from hlotool.errors import BackendFailed, BackendTimeout
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task, failed_row
from hlotool.system.worker import hand_over

#: What is done with a row whose verdict stands.
FURTHER, EXPLAINING = "further inputs", "the explanation"


class Handed(msgspec.Struct, frozen=True):
    """A row that was handed over.

    Attributes:
        number: of the row in the module; what is handed over later under the same number takes its place.
        row: as it was then.
        doing: what is done with it; empty where it is finished.
        is_last: no other row follows.
    """

    number: int
    row: ModuleRecord
    doing: str = ""
    is_last: bool = False


@dataclass
class Standing:
    """Hands over the rows of one module.

    Attributes:
        number: of the row that is being made.
        noted: adds to a row what is said of the programs of the module.
    """

    number: int = 0
    noted: Callable[[ModuleRecord], ModuleRecord] = lambda row: row

    def stands(self, row: ModuleRecord, doing: str, is_last: bool) -> None:
        """The verdict of a row stands, and something is done with it; `is_last`: no other row follows."""
        hand_over(Handed(self.number, self.noted(row), doing, is_last))

    def is_finished(self, row: ModuleRecord) -> None:
        """Nothing more is done with a row."""
        hand_over(Handed(self.number, row))
        self.number += 1


_decoder = msgspec.msgpack.Decoder(Handed)


def rows_so_far(
    task: Task, error: BackendFailed, handed_over: Sequence[bytes], seconds: float
) -> list[ModuleRecord]:
    """The rows of a module whose process ended before it was done.

    Further inputs may change a verdict. A process that crashes on them is no news of the time, but of the
    module: only where the time ended does the verdict on the plain ones stand.

    Args:
        task: the module.
        error: how it ended.
        handed_over: what its process had found, in order.
        seconds: for which it ran.
    """
    handed = {one.number: one for one in map(_decoder.decode, handed_over)}
    rows = [one.row for one in handed.values() if not one.doing]
    seconds = max(0.0, seconds - sum(row.seconds for row in rows))
    for one in handed.values():
        if one.doing == EXPLAINING or (one.doing and isinstance(error, BackendTimeout)):
            unfinished = f"{one.doing}: {error.message}"
            rows.append(msgspec.structs.replace(one.row, unfinished=unfinished, seconds=seconds))
            if one.is_last:
                return rows
            seconds = 0.0
    return [*rows, failed_row(task, error, seconds)]
