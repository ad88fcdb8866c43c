"""Options of commands that replay modules: what is compared with what, and what is found."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hlotool.options import numbers, parsers
from hlotool.options.declared import Arguments, As, option
from hlotool.options.shared import (
    Cluster,
    Exact,
    FurtherSets,
    InputsAndOutputs,
    Memory,
    Only,
    Scale,
    Stages,
    Thorough,
    Tolerance,
    Unknown,
    Workers,
)


class Backends(Arguments):
    """What runs the two sides of a comparison."""

    reference: str = option(
        default="numpy",
        metavar="BACKEND",
        help="what runs the reference [numpy]",
        doc="backend that runs the reference",
    )
    backend: str = option(
        default="numpy",
        flags=("--backend", "--test"),
        metavar="BACKEND",
        help="what runs the tested stages: xla, xla:opt=0, … [numpy]",
        doc="backend that runs the tested stages",
    )


class SeveralBackends(Backends):
    """The same, and more than two."""

    compare: str | Sequence[str] = option(
        default="",
        metavar="BACKEND,...",
        help="the reference, and all that are tested by it",
        doc="instead of both, backends of which the first is the reference of all others",
    )
    precision: str | None = option(
        default=None,
        choices=("hlo", "wide"),
        help="of narrow floats inside of generated kernels [hlo]",
        doc="of narrow floats inside of generated kernels: `hlo` or `wide`",
    )


class PairOfStages(Stages):
    """Stages, one of which is the reference of the others."""

    stages: As[str | Sequence[str], tuple[str, ...]] = option(
        default=(),
        metavar="REF,TESTED",
        help="shell patterns of stage names, the reference first; '*': all stages by the first",
        doc="shell patterns of stage names, the reference first; `*` tests all stages by the first",
    )


class Some(Arguments):
    """How many of the modules."""

    shard: str | None = option(
        default=None,
        parse=numbers.shard,
        metavar="I/N",
        help="one of N parts; `merge` makes them one",
        doc="one part of the modules, as `2/8`; `merge` makes the records of all parts one",
    )
    sample: int = option(
        default=0,
        parse=numbers.modules,
        metavar="N",
        help="N modules, spread over functions and sizes",
        doc="how many modules, spread over functions and sizes; 0 for all",
    )
    max_failures: int = option(
        default=0,
        parse=numbers.modules,
        metavar="N",
        help="begin no more after N that fail",
        doc="after so many modules that fail no further ones are begun; 0 for no such bound",
    )


class _CompareWith(Arguments):
    compare_with: As[str | os.PathLike[str] | None, str | None] = option(
        default=None,
        parse=parsers.script_function,
        convert=parsers.given_script,
        grave=True,
        metavar="SCRIPT.py:FUNCTION",
        help="function(output, expected, actual): True, False, what is wrong, or None for the verdict",
        doc="`SCRIPT.py:FUNCTION` that compares outputs before anything else does",
    )


class TolerancesByOutput(
    _CompareWith, Tolerance, group="tolerance", about="derived per output from its type and its sums, unless"
):
    """A judgement of the user's own, also of single outputs."""

    rtol: float | None = option(
        default=None,
        kind="by-output",
        metavar="[OUTPUT:]VALUE",
        help="relative to the larger magnitude; of one output: --rtol 'out[1]:1e-3'",
    )
    atol: float | None = option(
        default=None,
        kind="by-output",
        metavar="[OUTPUT:]VALUE",
        help="absolute; of one output: --atol 'out[1]:1e-3'",
    )
    output_rtol: As[Mapping[str, float] | Sequence[tuple[str, float]], tuple[tuple[str, float], ...]] = (
        option(
            default=(),
            only="called",
            convert=parsers.by_output,
            doc='of single outputs by name, such as `{"out[1]": 1e-3}`',
        )
    )
    output_atol: As[Mapping[str, float] | Sequence[tuple[str, float]], tuple[tuple[str, float], ...]] = (
        option(default=(), only="called", convert=parsers.by_output, doc="likewise")
    )


class _Looked(Exact):
    save_outputs: As[str | os.PathLike[str] | None, str | None] = option(
        default=None,
        convert=parsers.path_text,
        metavar="DIR",
        help="write expected and actual arrays as .npy",
        doc="folder for expected and actual arrays; see `ReplayResult.arrays`",
    )
    save_values: As[str | os.PathLike[str] | None, str | None] = option(
        default=None,
        convert=parsers.path_text,
        metavar="DIR",
        help="write what instructions compute as .npy",
        doc="folder for what instructions compute",
    )
    values: str = option(
        default="",
        parse=parsers.regex,
        metavar="REGEX",
        help="of those whose name matches [all]",
        doc="regular expression of the instructions whose values are saved",
    )
    first_divergence: bool | None = option(
        default=None,
        kind="yes-no",
        help="name the instruction at which a differing program goes wrong [where that takes seconds]",
        doc="name the instruction at which a wrong program goes wrong; None: where that takes seconds",
    )
    fail_on: As[str | Sequence[str], tuple[str, ...]] = option(
        default=(),
        parse=parsers.finding_kinds,
        metavar=",".join(parsers.FINDING_KINDS),
        help="exit 1 for these, too: NaN or infinity in a result, even if both sides agree; a module or an"
        " output of which nothing can be said",
        doc="what else is a finding: `nan`, `inf`: such a value in a result; `unstable`, `unsupported`,"
        " `not-compared`: such a module or output",
    )
    coverage: bool | None = option(
        default=None,
        kind="yes-no",
        help="list by source line which branches, ties, signs, … the inputs made occur [counts, where cheap]",
        doc="list which branches, ties, signs, … the inputs made occur; None: count them where cheap",
    )


class Found(_Looked, Thorough, FurtherSets, group="what is found"):
    """What is looked for, and what is kept of it."""


class Compared(Only, PairOfStages, SeveralBackends, Unknown, Scale, Some, group="what to compare"):
    """Modules, stages, backends."""

    elided: str = option(
        default="refuse",
        doc="constants that are not in the dump: `refuse`, or `generate` the same values on both sides",
    )


class Execution(Workers, Memory):
    """How programs are executed."""


class ClusterExecution(Workers, Cluster, Memory):
    """The same, also on other machines."""


class Replays(Compared, InputsAndOutputs, TolerancesByOutput, Found):
    """What decides about the rows of a replay."""
