"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hlotool.options import numbers, parsers
from hlotool.options.declared import Arguments, As, option
from hlotool.options.spool import Program, Values, path_of, paths_of

#: What holds for the inputs that are not given.
_ELSE = "captured in the dump, else generated, unless"


class Paths(Arguments):
    """Programs: one or more."""

    paths: As[Program | Sequence[Program], list[str]] = option(
        kw_only=False,
        nargs="+",
        metavar="PATH",
        convert=paths_of,
        help="dump directory, HLO file, archive, log; - for stdin",
        doc="a dump directory, a file of HLO, an archive, a log, a module, or several of these",
    )


class OneProgram(Arguments):
    """One program."""

    path: As[Program, str] = option(
        kw_only=False,
        metavar="FILE",
        convert=path_of,
        help="HLO file, or the dump of one module",
        doc="a file of HLO, the dump of one module, or a module",
    )


class Only(Arguments):
    """Some of the modules."""

    only: str | None = option(
        default=None,
        parse=parsers.regex,
        metavar="REGEX",
        help="modules whose name matches",
        doc="regular expression of the modules' names",
    )


class OneStage(Arguments):
    """A stage of a dump."""

    stage: str = option(
        default="",
        metavar="LABEL",
        help="of a dump [the first]",
        doc="of a dump: its label; the first one when empty",
    )


class Stages(Arguments):
    """Stages, each by itself."""

    stages: As[str | Sequence[str], tuple[str, ...]] = option(
        default=(),
        parse=parsers.words,
        convert=parsers.several,
        metavar="PATTERN,...",
        help="stages [the first and the last]",
        doc="shell patterns of stage names; the first and the last of each module when empty",
    )


class Elided(Arguments):
    """Constants that a dump leaves open."""

    elided: str = option(
        default="refuse",
        choices=("refuse", "generate"),
        help="constants that are not in the dump: all programs get the same generated values [refuse]",
        doc="constants that are not in the dump: `refuse`, or `generate` the same values for all programs",
    )


class Opaque(Arguments):
    """Calls that a dump leaves open."""

    opaque: bool = option(
        default=False,
        kind="switch",
        help="private kernels get stand-ins, the same everywhere: compare what is around them",
    )


class Devices(Arguments):
    """Numbers of devices that a dump leaves open."""

    replicas: int = option(default=0, parse=numbers.devices, metavar="N", help="of programs that do not say")
    partitions: int = option(default=0, parse=numbers.devices, metavar="N", help="likewise")


class Unknown(Elided, Opaque, Devices):
    """What a dump leaves open, of commands that execute it."""


class Scale(Arguments):
    """Programs that may be too large for this machine."""

    scale: str = option(
        default="auto",
        parse=parsers.scale,
        metavar="auto|never|PLAN",
        help="programs that do not fit run with smaller sizes; PLAN: sizes (4096=7,512=3) or a memory (8G)",
        doc="programs that do not fit run with smaller sizes: `auto`, `never`, sizes by the old ones"
        " (`4096=7,512=3`), or the memory to fit (`8G`)",
    )
    show_scale: bool = option(
        default=False,
        only="typed",
        kind="switch",
        help="run nothing; show which sizes programs would get, and why",
    )


class Exact(Arguments):
    """Two programs compared as functions."""

    exact: bool = option(
        default=False,
        kind="switch",
        help="other functions of real numbers are a mismatch, however close their values are",
    )


class Baseline(Arguments):
    """Findings that are known."""

    baseline: As[str | os.PathLike[str] | None, str | None] = option(
        default=None,
        convert=parsers.path_text,
        metavar="FILE",
        help="what is known (see hlotool baseline): only what is new fails",
        doc="what is known: a file of `hlotool baseline update`, or of `--json`; only what is new fails",
    )


class Repetitions(Arguments):
    """Searches for what may fail only sometimes."""

    repeats: int = option(default=3, parse=numbers.repetitions, metavar="N")
    confidence: float = option(
        default=0.99, parse=numbers.confidence, metavar="P", help="about flaky failures [0.99]"
    )


class GivenInputs(Arguments):
    """Arguments of programs."""

    inputs: As[Values | None, str | None] = option(
        default=None,
        parse=parsers.values_file,
        convert=parsers.given_values,
        grave=True,
        metavar="FILE",
        help=".npz, folder of MODULE.npz, or SCRIPT.py:FUNCTION",
        doc="arguments: a file, a folder of `MODULE.npz`, `SCRIPT.py:FUNCTION`, or arrays; captured or"
        " generated ones when None",
    )


class GivenOutputs(Arguments):
    """Results of programs."""

    outputs: As[Values | None, str | None] = option(
        default=None,
        parse=parsers.values_file,
        convert=parsers.given_values,
        grave=True,
        metavar="FILE",
        help=".npz or folder: what the program really returned",
        doc="what the program really returned, likewise",
    )


class Generated(Arguments):
    """Inputs that are generated."""

    seed: int = option(default=0, parse=numbers.seed, help="of generated inputs [0]")
    input_range: tuple[float, float] | None = option(
        default=None,
        parse=parsers.value_range,
        metavar="LO,HI",
        help="of generated inputs",
        doc="lowest and highest value of generated inputs",
    )


class Inputs(GivenInputs, Generated, group="inputs", about=_ELSE):
    """What a program is run on."""


class InputsAndOutputs(GivenInputs, GivenOutputs, Generated, group="inputs", about=_ELSE):
    """What programs are run on, and what they returned elsewhere."""


class Tolerance(Arguments):
    """A tolerance of the user's own."""

    rtol: float | None = option(
        default=None,
        parse=numbers.tolerance,
        help="relative to the larger magnitude",
        doc="tolerance relative to the larger magnitude; with `atol`, instead of a judgement",
    )
    atol: float | None = option(
        default=None,
        parse=numbers.tolerance,
        help="absolute",
        doc="absolute tolerance; one of the two given, the other one is 0",
    )


class Tolerances(Tolerance, group="tolerance", about="derived per output from its type and its sums, unless"):
    """The same in place of the derived ones."""


class FurtherSets(Arguments):
    """What follows the plain generated inputs."""

    further_sets: bool = option(
        default=True,
        kind="yes-no",
        help="after the plain generated inputs, others that reach more of the program [yes]",
    )


class Thorough(Arguments):
    """How much is looked at."""

    thorough: bool = option(
        default=False,
        kind="switch",
        help="explain every wrong output, not only the worst three; run all further sets of inputs",
    )
    budget: str | None = option(
        default=None,
        parse=parsers.budget,
        metavar="SECONDS|FACTORx",
        help="what judging one comparison, and what further sets of inputs may take: seconds by the clock, or"
        " how many times the work of the runs [0.4 of --timeout; half of the work without them]",
        doc="what judging one comparison, and what further sets may take: seconds by the clock (`30`), or"
        " times the work of the runs (`5x`)",
    )


class Workers(Arguments, group="execution"):
    """Worker processes."""

    timeout: float = option(
        default=300.0,
        parse=numbers.seconds,
        metavar="SECONDS",
        help="per module [300]",
        doc="seconds per module",
    )
    jobs: int = option(
        default=0,
        parse=numbers.processes,
        metavar="N",
        help="processes [cores, at most 4]",
        doc="processes; 0 for as many as suit the machine",
    )


class Cluster(Arguments, group="execution"):
    """Other machines."""

    cluster: str | None = option(
        default=None,
        parse=parsers.cluster,
        grave=True,
        metavar="ADDRESS|local:N",
        help="on a Dask cluster: tcp://HOST:8786, local:N, slurm:jobs=N,… or k8s:n_workers=N,…",
        doc="of Dask, which does it instead: `tcp://HOST:8786`, `local:N`, `slurm:jobs=N,…` or"
        " `k8s:n_workers=N,…`",
    )


class Memory(Arguments, group="execution"):
    """What processes may hold."""

    memory_limit: As[int | str | None, int | None] = option(
        default=None,
        parse=numbers.byte_size,
        convert=parsers.memory,
        grave=True,
        metavar="SIZE",
        help="per process, as 8G, or none [a share of what is free]",
        doc="bytes per process or text such as `8G`; 0 for no limit, None for a share of what is free",
    )


class Resume(Arguments, group="execution"):
    """Work that was interrupted."""

    resume: bool = option(
        default=True,
        kind="off",
        help="start anew after an interruption",
        doc="go on where the same call was interrupted",
    )


class Repro(Arguments, group="repro bundles"):
    """Bundles of what is found."""

    repro: As[str | os.PathLike[str] | None, str | None] = option(
        default=None,
        typed_default="hlotool-repro",
        convert=parsers.path_text,
        without="write none",
        metavar="DIR",
        help="folder [hlotool-repro]",
        doc="folder for bundles that fail on any machine; None writes none",
    )
