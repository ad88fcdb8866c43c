"""`extract`: instructions cut out of a program, with the values that they got."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.api.options import options_from
from hlotool.api.results import CutResult
from hlotool.api.spool import Program, Values, path_of
from hlotool.errors import ExitCode

if TYPE_CHECKING:
    from hlotool.report.reduce_records import ExtractRecord

    pass


class ExtractResult(CutResult):
    """A part of a program as a program of its own: `module`, with its `arguments`."""

    record: ExtractRecord

    def __repr__(self) -> str:
        return f"<ExtractResult: {', '.join(self.record.instructions)}>"


def extract(
    path: Program,
    names: str | Sequence[str],
    *,
    stage: str = "",
    height: int = 0,
    call: int = 0,
    elided: str = "refuse",
    opaque: bool = False,
    replicas: int = 0,
    partitions: int = 0,
    output: str | os.PathLike[str] | None = None,
    inputs: Values | None = None,
    seed: int = 0,
    input_range: tuple[float, float] | None = None,
) -> ExtractResult:
    """Cut instructions, a fusion or a whole computation out of a program into a program of their own.

    Args:
        path: a file of HLO, the dump of one module, or a module.
        names: of instructions of one computation, or of one computation.
        stage: of a dump: its label; the first one when empty.
        height: steps back along operands that come along.
        call: iteration of the loop around it whose values are taken.
        elided: constants that are not in the dump: `refuse`, or `generate` the same values for all programs.
        opaque: private kernels get stand-ins, the same everywhere.
        replicas: of programs that do not say.
        partitions: likewise.
        output: file for the new program, its arguments beside it as .npz; None writes none.
        inputs: arguments of the whole program: a file, `SCRIPT.py:FUNCTION`, or arrays; captured or generated
            ones when None.
        seed: of generated inputs.
        input_range: lowest and highest value of generated inputs.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, or nothing of these names.
        InputError: it is no valid HLO, or the arguments do not fit.
        Unsupported: the program, or the part by itself, cannot be run.
    """
    given = dict(locals())
    from hlotool.report.reduce_records import ExtractRecord
    from hlotool.search.extraction import cut_named
    from hlotool.search.reduction.files import with_suffix, write_case
    from hlotool.search.reduction.task import load_case
    from hlotool.stores.masks import taken_in

    options = options_from(given)
    wanted = [names] if isinstance(names, str) else list(names)
    loaded = load_case(path_of(path), options, stage, may_be_cut=True)
    cut = cut_named(loaded.case, wanted, height, call)
    inputs_file = ""
    if output is not None:
        output = taken_in(os.fspath(output))
        write_case(cut.case, output)
        inputs_file = with_suffix(output, ".npz") if cut.inputs else ""
    ended = loaded.case.module.cut
    record = ExtractRecord(
        path=path_of(path),
        instructions=wanted,
        program=cut.case.text,
        parameters=[each.name for each in cut.inputs],
        output="" if output is None else os.fspath(output),
        inputs_file=inputs_file,
        inputs=loaded.inputs,
        size=cut.case.size,
        calls=cut.calls,
        notes=[f"{path_of(path)}: {ended}"] if ended else [],
        exit_code=ExitCode.AGREE,
    )
    return ExtractResult(record, cut.case)
