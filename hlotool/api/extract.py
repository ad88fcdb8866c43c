"""`extract`: instructions cut out of a program, with the values that they got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.api.options import options_of
from hlotool.api.results import CutResult
from hlotool.errors import ExitCode
from hlotool.options import numbers
from hlotool.options.declared import As, File, option, takes
from hlotool.options.shared import Inputs, OneProgram, OneStage, Unknown

if TYPE_CHECKING:
    from hlotool.report.reduce_records import ExtractRecord


class ExtractResult(CutResult):
    """A part of a program as a program of its own: `module`, with its `arguments`."""

    record: ExtractRecord

    def __repr__(self) -> str:
        return f"<ExtractResult: {', '.join(self.record.instructions)}>"


class _Program(OneProgram):
    names: As[str | Sequence[str], tuple[str, ...]] = option(
        "names; or of one computation",
        "of instructions of one computation, or of one computation",
        kw_only=False,
        nargs="+",
        metavar="INSTRUCTION",
        convert=lambda names: (names,) if isinstance(names, str) else tuple(names),
    )


class _Around(OneStage):
    height: int = option("steps back along operands [0]", default=0, parse=numbers.distance)
    call: int = option("iteration of the loop around it [0]", default=0, parse=numbers.distance)


class _Cut(_Around, Unknown, group="what to cut out"):
    output: File = option(
        "the new program [NAME.extracted.hlo]",
        "file for the new program, its arguments beside it as .npz; None writes none",
        default=None,
        once=True,
        flags=("--output", "-o"),
    )


class ExtractArguments(_Program, _Cut, Inputs):
    """What `extract` takes, and `hlotool extract`."""


@takes(ExtractArguments)
def extract(asked: ExtractArguments) -> ExtractResult:
    """Cut instructions, a fusion or a whole computation out of a program into a program of their own.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, or nothing of these names.
        InputError: it is no valid HLO, or the arguments do not fit.
        Unsupported: the program, or the part by itself, cannot be run.
    """
    from hlotool.report.reduce_records import ExtractRecord
    from hlotool.search.extraction import cut_named
    from hlotool.search.reduction.files import with_suffix, write_case
    from hlotool.search.reduction.task import load_case

    loaded = load_case(asked.path, options_of(asked), asked.stage, may_be_cut=True)
    cut = cut_named(loaded.case, asked.names, asked.height, asked.call)
    inputs_file = ""
    if asked.output is not None:
        write_case(cut.case, asked.output)
        inputs_file = with_suffix(asked.output, ".npz") if cut.inputs else ""
    ended = loaded.case.module.cut
    record = ExtractRecord(
        path=asked.path,
        instructions=list(asked.names),
        program=cut.case.text,
        parameters=[each.name for each in cut.inputs],
        output=asked.output or "",
        inputs_file=inputs_file,
        inputs=loaded.inputs,
        size=cut.case.size,
        calls=cut.calls,
        notes=[f"{asked.path}: {ended}"] if ended else [],
        exit_code=ExitCode.AGREE,
    )
    return ExtractResult(record, cut.case)
