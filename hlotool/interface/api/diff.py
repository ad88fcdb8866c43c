"""`diff`: what differs between two programs, dumps, sets of results, executions of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.results import FindingsResult
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, File, option, takes
from hlotool.runs.options.parsers import Program, path_of
from hlotool.runs.options.shared import Stages, Tolerance
from hlotool.system.urls import is_url

if TYPE_CHECKING:
    from hlotool.blame.diff_records import LayerRecord, ProgramDiffRecord, ResultDiffRecord
    from hlotool.interface.report.command_records import DiffRecord


class DiffResult(FindingsResult["ProgramDiffRecord | ResultDiffRecord | LayerRecord"]):
    """What differs: a row for each pair, of programs or of arrays, also for those that are the same."""

    record: DiffRecord

    @property
    def rows(self) -> Sequence[ProgramDiffRecord | ResultDiffRecord | LayerRecord]:
        """One record per pair."""
        if self.record.layers is not None:
            return self.record.layers.layers
        return self.record.programs or self.record.results

    @property
    def is_same(self) -> bool:
        """Whether nothing differs, everything was compared, and nothing is on one side only."""
        return self.exit_code is ExitCode.AGREE


class _Pair(Arguments):
    left: As[Program, str] = option(
        "HLO file, dump, archive; or .npz, .npy, .safetensors, folder of them",
        "a file of HLO, a dump, an archive, a module; or .npz, .npy, .safetensors, a folder of them",
        kw_only=False,
        metavar="A",
        convert=path_of,
    )
    right: As[Program, str] = option("the same kind of thing", kw_only=False, metavar="B", convert=path_of)


class _Programs(Stages, group="programs"):
    context: int = option(
        "equal lines around differences [3]", default=3, parse=parsers.distance, flags=("-U", "--context")
    )


class _Results(Tolerance, group="results", about="tolerance derived from the element type, unless"): ...


class _Layers(Arguments, group="layer by layer"):
    by: str | None = option(
        "two executions, by the frontend's layers: folders of run --save-values, or arrays that hooks wrote",
        "`scope`: two executions layer by layer; a side is a folder that `run --save-values` wrote, or arrays"
        " that hooks of another framework wrote",
        default=None,
        choices=("scope",),
    )
    map: File = option(
        "lines of two names, of A and of B, that belong together", default=None, metavar="FILE"
    )


class DiffArguments(_Pair, _Programs, _Results, _Layers):
    """What `diff` takes, and `hlotool diff`."""


@takes(DiffArguments)
def diff(asked: DiffArguments) -> DiffResult:
    """What differs between two programs, two dumps or two sets of results; `by="scope"`: layer by layer.

    Raises:
        DumpError: a path cannot be read.
        InputDataError: arrays cannot be read.
        UsageError: the two are not of one kind, or have nothing in common.
    """
    paths = asked.left, asked.right
    must_exist(paths)
    if asked.by:
        return DiffResult(_with_exit_code(_layers(*paths, asked.map)))
    if asked.map is not None:
        raise UsageError("--map goes with --by scope")
    from hlotool.blame.diff_results import are_results, results_here

    paths = results_here(paths[0]), results_here(paths[1])
    kinds = {are_results(path) for path in paths}
    if len(kinds) > 1:
        raise UsageError("one side holds arrays, the other one programs: they cannot be compared")
    if kinds == {True}:
        return DiffResult(_with_exit_code(_results(*paths, asked.rtol, asked.atol)))
    return DiffResult(_with_exit_code(_programs(*paths, asked.stages, asked.context)))


def must_exist(paths: Sequence[str]) -> None:
    """Refuse paths that are not there; raises UsageError."""
    for path in paths:
        if path != "-" and not is_url(path) and not os.path.exists(path):
            raise UsageError(f"{path}: no such file or directory")


def _programs(left_path: str, right_path: str, stages: tuple[str, ...], context: int) -> DiffRecord:
    from hlotool.blame.diff_programs import diff_stages, pair_dumps
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.interface.report.records import versions
    from hlotool.sources.directory import open_dump

    left, right = open_dump(left_path), open_dump(right_path)
    pairing = pair_dumps(left, right, stages)
    return DiffRecord(
        versions=versions(),
        left=left_path,
        right=right_path,
        kind="programs",
        programs=[diff_stages(pair, context) for pair in pairing.pairs],
        only_left=list(pairing.only_left),
        only_right=list(pairing.only_right),
        notes=[*left.notes, *right.notes],
    )


def _results(left_path: str, right_path: str, rtol: float | None, atol: float | None) -> DiffRecord:
    from hlotool.blame.diff_results import common_names, diff_results, read_results
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.interface.report.records import versions

    left, right = read_results(left_path), read_results(right_path)
    common = common_names(left, right)
    ones, others = {one for one, _ in common}, {other for _, other in common}
    if not common:
        raise UsageError(f"{left.path} and {right.path} have no array name in common")
    return DiffRecord(
        versions=versions(),
        left=left_path,
        right=right_path,
        kind="results",
        results=list(diff_results(left, right, rtol, atol)),
        only_left=[name for name in left.arrays if name not in ones],
        only_right=[name for name in right.arrays if name not in others],
    )


def _layers(left_path: str, right_path: str, map_path: str | None) -> DiffRecord:
    from hlotool.blame.layers.aligning import aligned
    from hlotool.blame.layers.judging import judged
    from hlotool.blame.layers.sides import read_map, read_side
    from hlotool.interface.report.command_records import DiffRecord
    from hlotool.interface.report.records import versions
    from hlotool.system.paths import here

    notes: list[str] = []
    left, right = (read_side(here(path)) for path in (left_path, right_path))
    chosen = read_map(map_path) if map_path is not None else []
    if right.folder and not left.folder:
        left, right = right, left
        chosen = [(other, one) for one, other in chosen]
        notes.append(f"{left.path}, whose program is known, stands on the left")
    found = aligned(left, right, chosen)
    if not found.pairs:
        raise UsageError(f"{left.path} and {right.path} have nothing in common; --map FILE says what has")
    if left.folder and not any(pair.left in set(left.arguments) for pair in found.pairs):
        notes.append(
            "no argument of the program is among the other arrays: whether both had the same is unknown"
        )
    return DiffRecord(
        versions=versions(),
        left=left.path,
        right=right.path,
        kind="layers",
        layers=judged(left, right, found.pairs),
        only_left=found.only_left,
        only_right=found.only_right,
        notes=notes,
    )


def _with_exit_code(record: DiffRecord) -> DiffRecord:
    import msgspec

    from hlotool.interface.report.command_records import differs

    code = ExitCode.AGREE
    if differs(record):
        code = ExitCode.MISMATCH
    elif any(program.error for program in record.programs):
        code = ExitCode.USAGE
    return msgspec.structs.replace(record, exit_code=int(code))
