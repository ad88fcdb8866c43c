"""What became of one call of a function: the program behind it, and all that is judged by that program."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotool.api.course import Ending
from hlotool.api.options import options_from
from hlotool.api.replay import Replayed, ReplayResult, record_of, replay_on
from hlotool.cache.passing import brief_folder
from hlotool.errors import Unsupported
from hlotool.options.spool import values_path
from hlotool.replay.records import REALITY

if TYPE_CHECKING:
    from hlotool.ir.dtypes import Array
    from hlotool.ir.module import Module
    from hlotool.replay.options import RunOptions
    from hlotool.replay.records import ModuleRecord
    from hlotool.report.records import RunRecord
    from hlotool.workers.pool import Pool

#: `ModuleRecord.tested` of what the function gives where every operation is compiled alone.
OP_BY_OP = "op by op"


class CheckedCall(ReplayResult):
    """What became of one call: a row for each side that was judged by the program as it was lowered.

    Args:
        record: as `hlotool run` prints it.
        value: what the function returned.
        program: the HLO as it was lowered, and as it was compiled, as protos; None where that is not known.

    Attributes:
        value: see above.
    """

    def __init__(self, record: RunRecord, value: Any, program: tuple[bytes, bytes | None]) -> None:
        super().__init__(record)
        self.value = value
        self._program = program

    @property
    def compiled(self) -> ModuleRecord | None:
        """The program that XLA made, executed on the reference; None where it is not known."""
        if self._program[1] is None:
            return None
        return next((row for row in self.rows if row.stage_tested != REALITY), None)

    @property
    def device(self) -> ModuleRecord | None:
        """What the device returned."""
        return next((r for r in self.rows if r.stage_tested == REALITY and r.tested != OP_BY_OP), None)

    @property
    def op_by_op(self) -> ModuleRecord | None:
        """What the function returns where every operation is compiled alone; None where that failed."""
        return next((row for row in self.rows if row.tested == OP_BY_OP), None)

    @property
    def lowered_module(self) -> Module:
        """The program as the frontend made it."""
        return _module(self._program[0])

    @property
    def compiled_module(self) -> Module:
        """The program as XLA compiled it.

        Raises:
            Unsupported: the framework does not give it.
        """
        if self._program[1] is None:
            raise Unsupported("the program that XLA compiled is not known: the notes say why")
        return _module(self._program[1])


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """A call that was executed.

    Attributes:
        lowered: the program as the frontend made it, as a binary proto.
        compiled: as XLA compiled it; None where that cannot be had.
        platform: that it was compiled for: `cpu`, `gpu`, ….
        arguments: of the program, in the order of its parameters.
        value: what the function returned.
        results: the same as the program's outputs, in their order.
        notes: about what is missing.
    """

    lowered: bytes
    compiled: bytes | None
    platform: str
    arguments: Sequence[Array]
    value: Any
    results: Sequence[Array]
    notes: Sequence[str] = ()


def judge(
    made: Called, alone: Callable[[], Sequence[Array]] | None, options: Mapping[str, Any], start: float
) -> CheckedCall:
    """Judge a call by the program as it was lowered, executed on hlotool's reference.

    Args:
        made: the call.
        alone: gives the results op by op; None where they are not wanted. What it raises becomes a note.
        options: of the judgement, as `hlotool.replay` has them.
        start: `time.perf_counter()` when the call began.
    """
    notes = list(made.notes)
    # The arguments are a file that all replays of the call read.
    given = {**_devices(made), **options, "inputs": values_path(list(made.arguments) or None)}
    chosen = _returning(given, ())
    with brief_folder() as folder, _pool(chosen) as pool:
        pool.start()  # what it imports overlaps with what is done here
        separate = _results(alone, notes)
        before = _write(folder, made)
        found = _replay(pool, str(folder), _returning(given, made.results), f"on {made.platform}")
        if separate is not None:
            again = _replay(pool, str(before), _returning(given, separate), OP_BY_OP)
            found.rows += [row for row in again.rows if row.tested == OP_BY_OP]
    elapsed = time.perf_counter() - start
    record = record_of([], chosen, found.rows, Ending(), [*found.notes, *notes], elapsed)
    return CheckedCall(record, made.value, (made.lowered, made.compiled))


def _results(alone: Callable[[], Sequence[Array]] | None, notes: list[str]) -> Sequence[Array] | None:
    if alone is None:
        return None
    try:
        return alone()
    except Exception as error:  # whatever the user's function raises there
        notes.append(f"{OP_BY_OP}: {type(error).__name__}: {error}")
        return None


def _devices(made: Called) -> dict[str, int]:
    """For how many devices the program is, where it is for several: as it was lowered it does not say."""
    compiled = _module(made.compiled or made.lowered)
    devices = {"replicas": compiled.replica_count, "partitions": compiled.num_partitions}
    return {} if max(devices.values()) == 1 else devices


def _returning(given: Mapping[str, Any], results: Sequence[Array]) -> RunOptions:
    """Of a replay of the call, which shall have given `results`."""
    return options_from({**given, "outputs": list(results) or None})


def _pool(options: RunOptions) -> Pool:
    from hlotool.replay.options import PRELOAD
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

    return Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.reference)


def _write(folder: Path, made: Called) -> Path:
    """Write a dump of both stages; returns the path of the first."""
    title = re.sub(r"[^\w-]", "_", _module(made.lowered).name)[:100] or "program"
    before, after = (
        folder / f"module_0000.{title}.{stage}.hlo.pb"
        for stage in ("before_optimizations", f"{made.platform}_after_optimizations")
    )
    before.write_bytes(made.lowered)
    if made.compiled is not None:
        after.write_bytes(made.compiled)
    return before


def _replay(pool: Pool, path: str, options: RunOptions, origin: str) -> Replayed:
    """The rows of a path; those of the results say that these come from `origin`."""
    import msgspec

    found = Replayed()
    replay_on(pool, [path], options, found, resume=False)
    found.rows = [
        msgspec.structs.replace(row, tested=origin) if row.stage_tested == REALITY else row
        for row in found.rows
    ]
    return found


def _module(proto: bytes) -> Module:
    from hlotool.parse.proto.module import parse_module_proto

    return parse_module_proto(proto)
