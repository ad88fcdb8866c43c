"""`gradcheck`: is one program the gradient of another?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool import errors
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.results import Result
from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, Words, option, takes
from hlotool.runs.options.parsers import Program, path_of
from hlotool.runs.options.shared import Called

if TYPE_CHECKING:
    from hlotool.runs.gradients import GradcheckRecord, GradientAnswer, SlopeRecord
    from hlotool.sources.records import DumpModule, Stage


#: How JAX writes a program with the lines of the user's program.
_WITH_PLACES = "jax.jit(f).lower(*args).as_text(debug_info=True)"


class GradcheckResult(Result["SlopeRecord"]):
    """What is known of each derivative: a row for each parameter that there is one of."""

    record: GradcheckRecord

    @property
    def rows(self) -> Sequence[SlopeRecord]:
        """One record per parameter, in order."""
        return self.record.slopes


class _Programs(Arguments):
    function: As[Program, str] = option(
        "HLO, StableHLO or SCRIPT.py:FUNCTION, returns a number",
        "F: a file of HLO or StableHLO, the dump of one module, a module, or `SCRIPT.py:FUNCTION` of JAX; it"
        " returns a number",
        kw_only=False,
        metavar="F",
        convert=path_of,
    )
    gradient: As[Program, str] = option(
        "the same of its derivatives",
        "G: in the same forms; its result ends with the derivatives",
        kw_only=False,
        metavar="G",
        convert=path_of,
    )


class _Slopes(Called, group="what is compared"):
    wrt: Words = option(
        "numbers of the parameters that G differentiates by [the floats]",
        "numbers of the parameters that G differentiates by; the floats, in order, when empty",
        default=(),
        parse=declared.words,
        metavar="N,...",
    )
    seed: int = option("of points and directions [0]", default=0, parse=parsers.seed)
    timeout: float = option("seconds [300]", default=300.0, parse=parsers.seconds)


class GradcheckArguments(_Programs, _Slopes):
    """What `gradcheck` takes, and `hlotool gradcheck`."""


@takes(GradcheckArguments)
def gradcheck(asked: GradcheckArguments) -> GradcheckResult:
    """Whether one program is the gradient of another.

    Both are executed in f64, at random points at which nothing is zero or equal; along random directions the
    slope of F is taken from differences.

    Returns:
        for each derivative `right`, `wrong` with its first wrong component, or `unknown`.

    Raises:
        DumpError: a path cannot be read.
        UsageError: a path holds several programs, the two do not fit, or a script fails.
        BackendUnavailable: there is a script, and no JAX.

    >>> from hlotool import parse
    >>> f = parse("HloModule f ENTRY e { x = f32[] parameter(0) ROOT y = f32[] multiply(x, x) }")
    >>> g = parse("HloModule g ENTRY e { x = f32[] parameter(0) ROOT y = f32[] add(x, x) }")
    >>> [row.verdict for row in gradcheck(f, g)]
    ['right']
    """
    start = time.perf_counter()
    from hlotool.errors import BackendFailed
    from hlotool.interface.report.records import versions
    from hlotool.judge.failures import error_record
    from hlotool.runs.gradients import GradcheckRecord, GradientAnswer, GradientTask
    from hlotool.system.executor import Limits
    from hlotool.system.files import brief_folder
    from hlotool.system.pool import Pool

    if not all(word.isdigit() for word in asked.wrt):
        raise UsageError(f"--wrt {','.join(asked.wrt)}: numbers of parameters, from 0")
    notes: list[str] = []
    with brief_folder() as folder, Pool(Limits(1, asked.timeout), ("hlotool.runs.gradients",)) as pool:
        function, gradient = (_program(path, notes) for path in _lowered(asked, folder))
        task = GradientTask(function, gradient, tuple(map(int, asked.wrt)), asked.seed)
        [end] = pool.call_all("hlotool.runs.gradients:checked", [task])
    if isinstance(end.value, BackendFailed):
        answer = GradientAnswer(error=error_record(end.value))
    else:
        import msgspec

        answer = msgspec.msgpack.decode(end.value, type=GradientAnswer)
    sources = [slope.source for slope in answer.slopes if slope.source is not None]
    if gradient[1].mlir is not None and sources and not any(source.file for source in sources):
        notes.append(f"{asked.gradient}: no source lines: write it with {_WITH_PLACES}")
    record = GradcheckRecord(
        versions=versions(),
        function=asked.function,
        gradient=asked.gradient,
        slopes=answer.slopes,
        notes=notes,
        error=answer.error,
        exit_code=_exit_code(answer),
        seconds=time.perf_counter() - start,
    )
    return GradcheckResult(record)


def _lowered(asked: GradcheckArguments, folder: Path) -> Iterator[str]:
    """The paths of both programs; functions of a script are written to the folder."""
    from hlotool.runs.scripts import lower, scripts_among

    paths = (asked.function, asked.gradient)
    scripts = scripts_among(paths, asked.args)
    shapes = None if asked.args is None else parsers.split_shapes(asked.args)
    for name, path in zip("FG", paths):
        if path in scripts:
            lower(path, shapes, file := folder / f"{name}.mlir", timeout=asked.timeout)
            path = str(file)
        yield path


def _program(path: str, notes: list[str]) -> tuple[DumpModule, Stage]:
    """The program of a path, as the frontend made it."""
    from hlotool.sources.directory import open_dump

    dump = open_dump(path)
    notes += dump.notes
    if len(dump.modules) != 1 or not dump.modules[0].stages:
        raise UsageError(f"{path}: {len(dump.modules)} programs; give one")
    return dump.modules[0], dump.modules[0].stages[0]


def _exit_code(answer: GradientAnswer) -> ExitCode:
    if answer.error is not None:
        code: ExitCode = getattr(errors, answer.error.kind).exit_code
        return code
    verdicts = {slope.verdict for slope in answer.slopes}
    if "wrong" in verdicts:
        return ExitCode.MISMATCH
    return ExitCode.INCONCLUSIVE if "unknown" in verdicts else ExitCode.AGREE
