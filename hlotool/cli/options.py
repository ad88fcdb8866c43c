"""What the commands have in common: groups of options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from hlotool.api.given import (
    CHOICES,
    cluster,
    regex,
    scale,
    script_function,
    value_range,
    values_file,
    words,
)
from hlotool.api.numbers import (
    byte_size,
    confidence,
    devices,
    processes,
    repetitions,
    seconds,
    seed,
    tolerance,
)
from hlotool.errors import ExitCode

#: What `--help` says about the exit status.
EXIT_CODES = {
    ExitCode.AGREE: "everything that was compared agrees",
    ExitCode.MISMATCH: "a mismatch, or a finding",
    ExitCode.USAGE: "wrong usage, or input that cannot be used",
    ExitCode.NOTHING_COMPARED: "nothing was compared: unsupported, or nothing to compare with",
    ExitCode.BACKEND_FAILED: "a backend crashed, timed out or ran out of memory; a compilation did not end",
    ExitCode.INCONCLUSIVE: "flaky or inconclusive",
    ExitCode.INTERRUPTED: "interrupted",
}

#: Options whose value may begin with a minus sign, which argparse would take for an option.
_SIGNED_VALUES = ("--input-range",)


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


def add_input_options(parser: argparse.ArgumentParser, outputs: bool = True) -> None:
    """`--inputs`, `--seed`, `--input-range`: what a program is run on; `--outputs`: what it returned."""
    group = parser.add_argument_group("inputs", "captured in the dump, else generated, unless")
    group.add_argument(
        "--inputs", metavar="FILE", type=values_file, help=".npz, folder of MODULE.npz, or SCRIPT.py:FUNCTION"
    )
    if outputs:
        group.add_argument(
            "--outputs",
            metavar="FILE",
            type=values_file,
            help=".npz or folder: what the program really returned",
        )
    group.add_argument("--seed", type=seed, default=0, help="of generated inputs [0]")
    group.add_argument("--input-range", metavar="LO,HI", type=value_range, help="of generated inputs")


def add_unknown_options(group: argparse._ArgumentGroup, opaque: bool = True) -> None:
    """`--elided`, `--opaque`, `--replicas`, `--partitions`: of commands that execute what a dump leaves open.

    `opaque`: calls of private kernels need stand-ins.
    """
    group.add_argument(
        "--elided",
        choices=CHOICES["elided"],
        default="refuse",
        help="constants that are not in the dump: all programs get the same generated values [refuse]",
    )
    if opaque:
        group.add_argument(
            "--opaque",
            action="store_true",
            help="private kernels get stand-ins, the same everywhere: compare what is around them",
        )
    group.add_argument("--replicas", metavar="N", type=devices, default=0, help="of programs that do not say")
    group.add_argument("--partitions", metavar="N", type=devices, default=0, help="likewise")


def add_configuration_options(parser: argparse.ArgumentParser) -> None:
    """`--config`, `--no-config`: on every command."""
    group = parser.add_argument_group("configuration", "hlotool.toml, or [tool.hlotool] of pyproject.toml")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--config", metavar="FILE", help="this file [the nearest, in folders upwards; $HLOTOOL_CONFIG]"
    )
    which.add_argument("--no-config", "--isolated", action="store_true", help="no file")


def add_tolerance_options(parser: argparse.ArgumentParser, by_output: bool = False) -> None:
    """`--rtol`, `--atol`; `by_output` where outputs can have their own."""
    group = parser.add_argument_group("tolerance", "derived per output from its type and its sums, unless")
    if by_output:
        group.add_argument(
            "--compare-with",
            metavar="SCRIPT.py:FUNCTION",
            type=script_function,
            help="function(output, expected, actual): True, False, what is wrong, or None for the verdict",
        )
    for name, meaning in (("rtol", "relative to the larger magnitude"), ("atol", "absolute")):
        if not by_output:
            group.add_argument(f"--{name}", type=tolerance, help=meaning)
            continue
        group.add_argument(
            f"--{name}",
            metavar="[OUTPUT:]VALUE",
            action=_ByOutput,
            help=f"{meaning}; of one output: --{name} 'out[1]:1e-3'",
        )


class _ByOutput(argparse.Action):
    """`VALUE` for all outputs as `NAME`, `OUTPUT:VALUE` into the pairs `output_NAME`.

    Attributes:
        is_repeated: it can be given several times.
        is_harmless: a configuration that was found may set it.
    """

    is_repeated = is_harmless = True

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, **options)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store one value."""
        from hlotool.findings.outputs import output_index

        output, colon, text = str(values).rpartition(":")
        try:
            value = tolerance(text)
            if colon:
                output_index(output)
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise argparse.ArgumentError(self, str(error)) from error
        if not colon:
            setattr(namespace, self.dest, value)
            return
        name = f"output_{self.dest}"
        setattr(namespace, name, (*(getattr(namespace, name, None) or ()), (output, value)))


def add_exact_option(group: argparse._ArgumentGroup) -> None:
    """`--exact`, of commands that compare two programs."""
    group.add_argument(
        "--exact",
        action="store_true",
        help="other functions of real numbers are a mismatch, however close their values are",
    )


def add_scale_option(group: argparse._ArgumentGroup) -> None:
    """`--scale`, of commands that execute programs which may be too large for this machine."""
    group.add_argument(
        "--scale",
        metavar="auto|never|PLAN",
        type=scale,
        default="auto",
        help="programs that do not fit run with smaller sizes; PLAN: sizes (4096=7,512=3) or a memory (8G)",
    )
    group.add_argument(
        "--show-scale", action="store_true", help="run nothing; show which sizes programs would get, and why"
    )


def add_baseline_option(group: argparse._ArgumentGroup) -> None:
    """`--baseline`, of commands of which only what is new is to fail."""
    group.add_argument(
        "--baseline", metavar="FILE", help="what is known (see hlotool baseline): only what is new fails"
    )


def add_repetition_options(group: argparse._ArgumentGroup, repeats: int, what: str) -> None:
    """`--repeats`, `--confidence`: of searches for what may fail only sometimes."""
    group.add_argument(
        "--repeats", metavar="N", type=repetitions, default=repeats, help=f"{what} [{repeats}]"
    )
    group.add_argument(
        "--confidence", metavar="P", type=confidence, default=0.99, help="about flaky failures [0.99]"
    )


def add_worker_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """`--timeout`, `--jobs`: of commands that run worker processes."""
    group = parser.add_argument_group("execution")
    group.add_argument("--timeout", metavar="SECONDS", type=seconds, default=300.0, help="per module [300]")
    group.add_argument("--jobs", metavar="N", type=processes, default=0, help="processes [cores, at most 4]")
    return group


def add_cluster_option(group: argparse._ActionsContainer) -> None:
    """`--cluster`: of commands whose tasks other machines can do."""
    group.add_argument(
        "--cluster",
        metavar="ADDRESS|local:N",
        type=cluster,
        help="on a Dask cluster: tcp://HOST:8786, local:N, slurm:jobs=N,… or k8s:n_workers=N,…",
    )


def add_execution_options(
    parser: argparse.ArgumentParser, resumes: bool = True, on_clusters: bool = False
) -> argparse._ArgumentGroup:
    """`--timeout`, `--jobs`, `--memory-limit`: of commands that execute programs.

    `resumes`: those that go on after an interruption take `--no-resume`; `on_clusters`: `--cluster`.
    """
    group = add_worker_options(parser)
    if on_clusters:
        add_cluster_option(group)
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=byte_size,
        help="per process, as 8G, or none [a share of what is free]",
    )
    if resumes:
        group.add_argument(
            "--no-resume", dest="resume", action="store_false", help="start anew after an interruption"
        )
    return group


def add_cache_option(group: argparse._ArgumentGroup) -> None:
    """`--no-cache`, of commands that remember verdicts."""
    group.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="replay what an earlier run has replayed, and keep nothing for later ones",
    )


def join_signed_values(arguments: Sequence[str]) -> list[str]:
    """`--input-range -1,1` becomes `--input-range=-1,1`."""
    joined: list[str] = []
    # What follows are arguments of somebody else's.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for argument in arguments[:end]:
        if joined and joined[-1] in _SIGNED_VALUES:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return [*joined, *arguments[end:]]


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
        "--precision", choices=CHOICES["precision"], help="of narrow floats inside of generated kernels [hlo]"
    )
