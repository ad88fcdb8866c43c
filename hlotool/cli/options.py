"""What the commands have in common: groups of options, and the parsers of option values."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.replay.options import RunOptions


#: What `--help` says about the exit status.
EXIT_CODES = {
    ExitCode.AGREE: "everything that was compared agrees",
    ExitCode.MISMATCH: "a mismatch, or a finding",
    ExitCode.USAGE: "wrong usage, or input that cannot be used",
    ExitCode.NOTHING_COMPARED: "nothing was compared: unsupported, or nothing to compare with",
    ExitCode.BACKEND_FAILED: "a backend crashed, timed out or ran out of memory",
    ExitCode.INCONCLUSIVE: "flaky or inconclusive",
    ExitCode.INTERRUPTED: "interrupted",
}

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

#: Options whose value may begin with a minus sign, which argparse would take for an option.
_SIGNED_VALUES = ("--input-range",)
#: Backends whose kernels are generated, which round narrow floats more or less often.
_GENERATED = ("cuda", "cuda-emu")


def exit_code_text() -> str:
    """The exit codes as a block for `--help`."""
    rows = [f"  {code.value:<4} {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["exit codes:", *rows])


def add_paths(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    """`PATH ...`: where programs are."""
    parser.add_argument(
        "paths", nargs=nargs, metavar="PATH", help="dump directory, HLO file, archive, log; - for stdin"
    )


def add_only_option(group: argparse._ArgumentGroup) -> None:
    """`--only`."""
    group.add_argument("--only", metavar="REGEX", type=regex, help="modules whose name matches")


def add_stages_option(group: argparse._ArgumentGroup) -> None:
    """`--stages`, of commands that look at each stage by itself."""
    group.add_argument(
        "--stages", metavar="PATTERN,...", type=words, default=(), help="stages [the first and the last]"
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """`--json`, `--quiet`, `--verbose`, `--log`, `--debug`: alike on every command."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one versioned JSON record on stdout")
    amount = group.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="only what disagrees, and the totals")
    amount.add_argument("-v", "--verbose", action="store_true", help="every detail of every module")
    group.add_argument(
        "--log",
        choices=("debug", "info", "warning"),
        help="say on stderr what is done: processes, files [$HLOTOOL_LOG]",
    )
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """`--inputs`, `--outputs`, `--seed`, `--input-range`: what a program is run on."""
    group = parser.add_argument_group("inputs", "captured in the dump, else generated, unless")
    group.add_argument(
        "--inputs", metavar="FILE", type=values_file, help=".npz, folder of MODULE.npz, or SCRIPT.py:FUNCTION"
    )
    group.add_argument(
        "--outputs", metavar="FILE", type=values_file, help=".npz or folder: what the program really returned"
    )
    group.add_argument("--seed", type=int, default=0, help="of generated inputs [0]")
    group.add_argument("--input-range", metavar="LO,HI", type=value_range, help="of generated inputs")


def add_tolerance_options(parser: argparse.ArgumentParser) -> None:
    """`--rtol`, `--atol`."""
    group = parser.add_argument_group("tolerance", "derived per output from its type and its sums, unless")
    group.add_argument("--rtol", type=tolerance, help="relative to the larger magnitude")
    group.add_argument("--atol", type=tolerance, help="absolute")


def add_exact_option(group: argparse._ArgumentGroup) -> None:
    """`--exact`, of commands that compare two programs."""
    group.add_argument(
        "--exact",
        action="store_true",
        help="other functions of real numbers are a mismatch, however close their values are",
    )


def add_repetition_options(group: argparse._ArgumentGroup, repeats: int, what: str) -> None:
    """`--repeats`, `--confidence`: of searches for what may fail only sometimes."""
    group.add_argument("--repeats", metavar="N", type=count, default=repeats, help=f"{what} [{repeats}]")
    group.add_argument(
        "--confidence", metavar="P", type=confidence, default=0.99, help="about flaky failures [0.99]"
    )


def add_worker_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """`--timeout`, `--jobs`: of commands that run worker processes."""
    group = parser.add_argument_group("execution")
    group.add_argument("--timeout", metavar="SECONDS", type=seconds, default=300.0, help="per module [300]")
    group.add_argument("--jobs", metavar="N", type=count, default=0, help="processes [cores, at most 4]")
    return group


def add_execution_options(parser: argparse.ArgumentParser) -> None:
    """`--timeout`, `--jobs`, `--memory-limit`, `--no-resume`: of commands that execute programs."""
    group = add_worker_options(parser)
    group.add_argument("--memory-limit", metavar="SIZE", type=byte_size, default=0, help="per process, as 8G")
    group.add_argument("--no-resume", action="store_true", help="start anew after an interruption")


def options_from(arguments: argparse.Namespace, **chosen: object) -> RunOptions:
    """The options that decide about results, by their names on the command line; `chosen` replaces some."""
    from hlotool.replay.options import RunOptions

    fields = set(RunOptions.__struct_fields__)
    given: dict[str, Any] = {name: value for name, value in vars(arguments).items() if name in fields}
    return RunOptions(**(given | chosen))


def join_signed_values(arguments: Sequence[str]) -> list[str]:
    """`--input-range -1,1` becomes `--input-range=-1,1`."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in _SIGNED_VALUES:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def byte_size(text: str) -> int:
    """`8G`, `512M`, `1.5GiB` or plain bytes."""
    found = _SIZE.fullmatch(text.strip())
    size = int(float(found[1]) * (1 << _SHIFT[found[2].upper()])) if found else 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it like 8G or 512M")
    return size


def seconds(text: str) -> float:
    """A positive number of seconds."""
    return _number(text, lambda value: 0 < value < inf, "no positive number of seconds")


def budget(text: str) -> str:
    """What judging may take: seconds, or a multiple of the runs that are compared (`5x`)."""
    from hlotool.replay.options import budget_seconds

    try:
        budget_seconds(text, 1.0)
    except ValueError:
        wanted = "write seconds (30) or a multiple of the runs (5x)"
        raise argparse.ArgumentTypeError(f"{text!r} is no budget; {wanted}") from None
    return text


def tolerance(text: str) -> float:
    """A tolerance: a number, not negative."""
    return _number(text, lambda value: 0 <= value < inf, "no tolerance; write it like 1e-3")


def confidence(text: str) -> float:
    """A probability from 0.5 up to, but not, 1."""
    return _number(text, lambda value: 0.5 <= value < 1, "no confidence; write it like 0.99")


def count(text: str) -> int:
    """A number of processes: 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def values_file(text: str) -> str:
    """A file or folder of values that is there, or `SCRIPT.py:FUNCTION`: known before anything runs."""
    path, colon, _ = text.rpartition(":")
    if not os.path.exists(path if colon and path.endswith(".py") else text):
        raise argparse.ArgumentTypeError(f"{text}: no such file")
    return text


def value_range(text: str) -> tuple[float, float]:
    """`LO,HI` with LO < HI."""
    low, comma, high = text.partition(",")
    bounds = (_number(low), _number(high)) if comma else (0.0, 0.0)
    if not -inf < bounds[0] < bounds[1] < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no range; write it like --input-range=-1,1")
    return bounds


def words(text: str) -> tuple[str, ...]:
    """`A,B,...`."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def regex(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def _number(text: str, holds: Callable[[float], bool] = lambda value: True, complaint: str = "") -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error
    if not holds(value):
        raise argparse.ArgumentTypeError(f"{text!r} is {complaint}")
    return value


def add_backend_options(group: argparse._ArgumentGroup) -> None:
    """`--reference`, `--backend`, `--compare`, `--precision`."""
    group.add_argument(
        "--reference", metavar="BACKEND", default="numpy", help="what runs the reference [numpy]"
    )
    group.add_argument(
        "--backend",
        "--test",
        metavar="BACKEND",
        default="numpy",
        help="what runs the tested stages: xla, xla:opt=0, … [numpy]",
    )
    group.add_argument(
        "--compare", metavar="BACKEND,...", default="", help="the reference, and all that are tested by it"
    )
    group.add_argument(
        "--precision", choices=("hlo", "wide"), help="of narrow floats inside of generated kernels [hlo]"
    )


def chosen_backends(arguments: argparse.Namespace) -> dict[str, object]:
    """What the options come to: `reference`, `backend` and `compare` of the options of a run.

    Raises:
        UsageError: `--compare` lists too few backends, or goes with options that say the same; `--precision`
            is given, and no kernels are generated.
    """
    names = _compared(arguments) or (arguments.reference, arguments.backend)
    if arguments.precision:
        names = _with_precision(names, arguments.precision)
    reference, *others = names
    compared = names if arguments.compare else ()
    return {"reference": reference, "backend": others[0], "compare": compared}


def _compared(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The backends of `--compare`, each once; none where it is not given."""
    if not arguments.compare:
        return ()
    from hlotool.backends.registry import split_specs

    if (arguments.reference, arguments.backend) != ("numpy", "numpy"):
        raise UsageError("--compare names all backends: give it without --reference and --backend")
    reference, *others = split_specs(arguments.compare)
    if not others:
        raise UsageError(f"--compare {arguments.compare}: there is nothing to compare it with")
    return reference, *dict.fromkeys(others)


def _with_precision(names: tuple[str, ...], precision: str) -> tuple[str, ...]:
    """The same backends; those that generate kernels with the option `precision`."""
    from hlotool.backends.spec import BackendSpec, parse_spec

    specs = [parse_spec(name) for name in names]
    if not any(spec.name in _GENERATED for spec in specs):
        raise UsageError(f"--precision is for {' and '.join(_GENERATED)}, and neither is compared")
    wanted = {"precision": precision}
    return tuple(
        str(BackendSpec(spec.name, {**spec.options, **wanted})) if spec.name in _GENERATED else str(spec)
        for spec in specs
    )
