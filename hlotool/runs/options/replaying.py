"""Options of commands that replay modules: what is compared with what, and what is found."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, Folder, Words, option
from hlotool.runs.options.shared import (
    Cluster,
    Exact,
    FurtherSets,
    InputsAndOutputs,
    LastFailed,
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

    reference: str = option("what runs the reference [numpy]", default="numpy", metavar="BACKEND")
    backend: str = option(
        "what runs the tested stages: xla, xla:opt=0, … [numpy]",
        default="numpy",
        flags=("--backend", "--test"),
        metavar="BACKEND",
    )


class SeveralBackends(Backends):
    """The same, and more than two."""

    compare: Words = option(
        "the reference, and all that are tested by it",
        default=(),
        parse=declared.words,
        grave=True,
        metavar="BACKEND,...",
    )
    precision: str | None = option(
        "of narrow floats inside of generated kernels [hlo]", default=None, choices=("hlo", "wide")
    )


class PairOfStages(Stages):
    """Stages, one of which is the reference of the others."""

    stages: Words = option(
        "shell patterns of stage names, the reference first; '*': all stages by the first",
        default=(),
        metavar="REF,TESTED",
    )


class Some(Arguments):
    """How many of the modules."""

    shard: str | None = option(
        "one of N parts; `merge` makes them one",
        "one part of the modules, as `2/8`; `merge` makes the records of all parts one",
        default=None,
        parse=parsers.shard,
    )
    sample: int = option(
        "N modules, spread over functions and sizes",
        "how many modules, spread over functions and sizes; 0 for all",
        default=0,
        parse=parsers.modules,
    )
    max_failures: int = option(
        "stop after N failures",
        "after so many modules that fail no further ones are begun; 0 for no such bound",
        default=0,
        parse=parsers.modules,
    )


class _CompareWith(Arguments):
    compare_with: As[str | os.PathLike[str] | None, str | None] = option(
        "function(output, expected, actual): True, False, what is wrong, or None for the verdict",
        "`SCRIPT.py:FUNCTION` that compares outputs before anything else does",
        default=None,
        parse=parsers.script_function,
    )


class TolerancesByOutput(
    _CompareWith, Tolerance, group="tolerance", about="derived per output from its type and its sums, unless"
):
    """A judgement of the user's own, also of single outputs."""

    rtol: float | None = option(
        "relative to the larger magnitude; of one output: --rtol 'out[1]:1e-3'",
        "tolerance relative to the larger magnitude; with `atol`, instead of a judgement",
        default=None,
        kind="by-output",
        metavar="[OUTPUT:]VALUE",
    )
    atol: float | None = option(
        "absolute; of one output: --atol 'out[1]:1e-3'",
        "absolute tolerance; one of the two given, the other one is 0",
        default=None,
        kind="by-output",
        metavar="[OUTPUT:]VALUE",
    )
    output_rtol: As[Mapping[str, float] | Sequence[tuple[str, float]], tuple[tuple[str, float], ...]] = (
        option(
            doc='of single outputs by name, such as `{"out[1]": 1e-3}`',
            default=(),
            typed=False,
            convert=parsers.by_output,
        )
    )
    output_atol: As[Mapping[str, float] | Sequence[tuple[str, float]], tuple[tuple[str, float], ...]] = (
        option(doc="tolerances of single outputs", default=(), typed=False, convert=parsers.by_output)
    )


class _Looked(Exact):
    save_outputs: Folder = option("write expected and actual arrays as .npy", default=None)
    save_values: Folder = option("write what instructions compute as .npy", default=None)
    values: str = option(
        "of those whose name matches [all]",
        "regular expression of the instructions whose values are saved",
        default="",
        parse=parsers.regex,
    )
    first_divergence: bool | None = option(
        "name the instruction at which a differing program goes wrong [where that takes seconds]",
        default=None,
        kind="yes-no",
    )
    fail_on: Words = option(
        "exit 1 for these, too: NaN or infinity in a result, even if both sides agree; a module or an"
        " output that could not be judged",
        "what else is a finding: `nan`, `inf`: such a value in a result; `unstable`, `unsupported`,"
        " `not-compared`: such a module or output",
        default=(),
        parse=parsers.finding_kinds,
    )
    repeat: int = option(
        "run each tested program so often, and judge all results [1]",
        "how often each tested program is run on the same arguments; all its results are judged together",
        default=1,
        parse=parsers.repetitions,
    )
    coverage: bool | None = option(
        "list by source line which branches, ties, signs, … the inputs made occur [counts, where cheap]",
        default=None,
        kind="yes-no",
    )
    fp8: bool = option(
        "what is lost to float8: amax, scale, underflow, saturation of each tensor, errors of products",
        default=False,
    )


class Found(_Looked, Thorough, FurtherSets, group="what is found"):
    """What is looked for, and what is kept of it."""


class Compared(
    Only,
    LastFailed,
    PairOfStages,
    SeveralBackends,
    Unknown,
    Scale,
    Some,
    group="what to compare",
):
    """Modules, stages, backends."""

    elided: str = option(
        doc="constants that are not in the dump: `refuse`, or `generate` the same values on both sides",
        default="refuse",
    )


class Execution(Workers, Memory):
    """How programs are executed."""


class ClusterExecution(Workers, Cluster, Memory):
    """The same, also on other machines."""


class Replays(Compared, InputsAndOutputs, TolerancesByOutput, Found, Execution):
    """What decides about the rows of a replay."""
