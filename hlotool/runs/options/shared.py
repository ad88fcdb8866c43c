"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, File, Folder, Words, option
from hlotool.runs.options.parsers import Program, Values, path_of, paths_of

#: What holds for the inputs that are not given.
_ELSE = "captured in the dump, else generated, unless"


class Paths(Arguments):
    """Programs: one or more."""

    paths: As[Program | Sequence[Program], list[str]] = option(
        "dump directory, HLO file, archive, log; - for stdin",
        "a dump directory, a file of HLO, an archive, a log, a module, or several of these",
        kw_only=False,
        nargs="+",
        metavar="PATH",
        convert=paths_of,
    )


class OneProgram(Arguments):
    """One program."""

    path: As[Program, str] = option(
        "HLO file, or the dump of one module",
        "a file of HLO, the dump of one module, or a module",
        kw_only=False,
        metavar="FILE",
        convert=path_of,
    )


class Only(Arguments):
    """Some of the modules."""

    only: str | None = option("modules whose name matches", default=None, parse=parsers.regex)


class Called(Arguments):
    """What functions of a script are called with."""

    args: str | None = option(
        "of a function of JAX: f32[8,128],s32[] [what the script calls example_args]",
        "shapes of the arguments of a function of JAX, as HLO writes them; None for what the script calls"
        " `example_args`",
        default=None,
        once=True,
        parse=parsers.shapes,
    )


class LastFailed(Arguments):
    """What an earlier run says."""

    last_failed: bool = option(
        "only what failed in the last run of the same paths; everything where nothing did", default=False
    )


class OneStage(Arguments):
    """A stage of a dump."""

    stage: str = option("of a dump [the first]", default="", metavar="LABEL")


class Stages(Arguments):
    """Stages, each by itself."""

    stages: Words = option(
        "stages [the first and the last]",
        "shell patterns of stage names; the first and the last of each module when empty",
        default=(),
        parse=declared.words,
        metavar="PATTERN,...",
    )


class Compiler(Arguments):
    """A compiler for a device that need not be here."""

    compile: str = option(
        "ask this compiler, too: v5e, h100, … (hlotool backends)",
        "target of a compiler that is asked, as the backend `aot` takes it: `v5e`, `h100,triton=off`",
        default="",
        metavar="TARGET",
    )


class Elided(Arguments):
    """Constants that a dump leaves open."""

    elided: str = option(
        "constants that are not in the dump: all programs get the same generated values [refuse]",
        "constants that are not in the dump: `refuse`, or `generate` the same values for all programs",
        default="refuse",
        choices=("refuse", "generate"),
    )


class Opaque(Arguments):
    """Calls that a dump leaves open."""

    opaque: bool = option(
        "private kernels are replaced by stand-ins, the same everywhere: compare what is around them",
        default=False,
    )


class Entry(Arguments):
    """Which function a program of several begins with."""

    entry: str = option(
        "the function of StableHLO text that is run [main, or the only public one]",
        "the function of StableHLO text that is run; `main`, or the only one that is not private, when empty",
        default="",
        metavar="NAME",
    )


class Devices(Arguments):
    """Numbers of devices that a dump leaves open."""

    replicas: int = option("of programs that do not say", default=0, parse=parsers.devices)
    partitions: int = option("partitions of a program for several devices", default=0, parse=parsers.devices)


class Unknown(Elided, Opaque, Entry, Devices):
    """What a dump leaves open, of commands that execute it."""


class Scale(Arguments):
    """Programs that may be too large for this machine."""

    scale: str = option(
        "programs that do not fit run with smaller sizes; PLAN: sizes (4096=7,512=3) or a memory (8G)",
        "programs that do not fit run with smaller sizes: `auto`, `never`, sizes by the old ones"
        " (`4096=7,512=3`), or the memory to fit (`8G`)",
        default="auto",
        parse=parsers.scale,
    )
    show_scale: bool = option(
        "run nothing; show which sizes programs would get, and why", default=False, init=False
    )


class Exact(Arguments):
    """Two programs compared as functions."""

    exact: bool = option(
        "programs that are not mathematically equivalent are a mismatch, however close their values are",
        default=False,
    )


class Baseline(Arguments):
    """Findings that are known."""

    baseline: File = option("what is known (see hlotool baseline): only what is new fails", default=None)


class Repetitions(Arguments):
    """Searches for what may fail only sometimes."""

    repeats: int = option(default=3, parse=parsers.repetitions)
    confidence: float = option("about flaky failures [0.99]", default=0.99, parse=parsers.confidence)


class GivenInputs(Arguments):
    """Arguments of programs."""

    inputs: As[Values | None, str | None] = option(
        ".npz, folder of MODULE.npz, or SCRIPT.py:FUNCTION",
        "arguments: a file, a folder of `MODULE.npz`, `SCRIPT.py:FUNCTION`, or arrays; captured or"
        " generated ones when None",
        default=None,
        parse=parsers.values_file,
    )


class GivenOutputs(Arguments):
    """Results of programs."""

    outputs: As[Values | None, str | None] = option(
        ".npz or folder: what the program really returned",
        "what the program really returned, in the same form",
        default=None,
        parse=parsers.values_file,
    )


class Generated(Arguments):
    """Inputs that are generated."""

    seed: int = option("of generated inputs [0]", default=0, parse=parsers.seed)
    input_range: tuple[float, float] | None = option(
        "of generated inputs",
        "lowest and highest value of generated inputs",
        default=None,
        parse=parsers.value_range,
    )


class Inputs(GivenInputs, Generated, group="inputs", about=_ELSE):
    """What a program is run on."""


class InputsAndOutputs(GivenInputs, GivenOutputs, Generated, group="inputs", about=_ELSE):
    """What programs are run on, and what they returned elsewhere."""


class Tolerance(Arguments):
    """A tolerance of the user's own."""

    rtol: float | None = option(
        "relative to the larger magnitude",
        "tolerance relative to the larger magnitude; with `atol`, instead of a judgement",
        default=None,
        parse=parsers.tolerance,
    )
    atol: float | None = option(
        "absolute",
        "absolute tolerance; one of the two given, the other one is 0",
        default=None,
        parse=parsers.tolerance,
    )


class Tolerances(Tolerance, group="tolerance", about="derived per output from its type and its sums, unless"):
    """The same in place of the derived ones."""


class FurtherSets(Arguments):
    """What follows the plain generated inputs."""

    further_sets: bool = option(
        "after the plain generated inputs, others that reach more of the program [yes]",
        default=True,
        kind="yes-no",
    )


class Thorough(Arguments):
    """How much is looked at."""

    thorough: bool = option(
        "explain every wrong output, not only the worst three; run all extra input sets", default=False
    )
    budget: str | None = option(
        "what judging one comparison, and what extra input sets may take: seconds by the clock, or"
        " how many times the work of the runs [0.4 of --timeout; half of the work without them]",
        "what judging one comparison, and what extra input sets may take: seconds by the clock (`30`), or"
        " times the work of the runs (`5x`)",
        default=None,
        parse=parsers.budget,
    )


class Workers(Arguments, group="execution"):
    """Worker processes."""

    timeout: float = option("per module [300]", "seconds per module", default=300.0, parse=parsers.seconds)
    jobs: int = option("processes [cores, at most 4]", default=0, parse=parsers.processes)


class Cluster(Arguments, group="execution"):
    """Other machines."""

    cluster: str | None = option(
        "on a Dask cluster: tcp://HOST:8786, local:N, slurm:jobs=N,… or k8s:n_workers=N,…",
        default=None,
        parse=parsers.cluster,
    )


class Memory(Arguments, group="execution"):
    """What processes may hold."""

    memory_limit: As[int | str | None, int | None] = option(
        "per process, as 8G, or none [a share of what is free]",
        "bytes per process or text such as `8G`; 0 for no limit, None for a share of what is free",
        default=None,
        parse=parsers.byte_size,
    )


class Resume(Arguments, group="execution"):
    """Work that was interrupted."""

    resume: bool = option(
        "start anew after an interruption", "go on where the same call was interrupted", default=True
    )


class Repro(Arguments, group="repro bundles"):
    """Bundles of what is found."""

    repro: Folder = option(
        "folder [hlotool-repro]",
        "folder for bundles that fail on any machine; None writes none",
        default=None,
        typed_default="hlotool-repro",
        without="write none",
    )
