"""Flags as XLA's own tools take them, and programs that these tools run in isolation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hlotool.errors import BackendFailed, HlotoolError, Unsupported, UsageError
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.recorded_values import Budget
from hlotool.judge.locate.isolation import Alone, Isolation
from hlotool.judge.locate.recording import execute, on_one_device
from hlotool.lab.xla_tools.iteration import Run, program_of
from hlotool.system.records import Record
from hlotool.system.user_input import nearest

#: What the input may be; `mhlo` is the old name of what is StableHLO text today.
FORMATS = ("", "hlo", "txt", "pb", "pbtxt", "mhlo", "stablehlo")

_TRUTHS = {"true": True, "1": True, "": True, "false": False, "0": False}
_OPTION = re.compile(r"^\s*(xla_\w+)\s*:\s*(.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What XLA's tool can be told, under its own names.

    Attributes:
        platform: what runs the test side: CPU, Host, CUDA, ROCM, TPU, Interpreter, or a backend of hlotool.
        reference_platform: what runs the reference; `default` is the interpreter, empty is none.
        input_format: what the files are; empty to look inside.
        iterations: runs of each file, on other inputs each.
        print_literals: print inputs and results.
        run_test_hlo_passes: the test platform optimises the program before it runs it.
        run_reference_hlo_passes: the reference platform does.
        random_init_input_literals: inputs are random; else they are zero.
        force_fake_data: do not take the arguments of a snapshot.
        use_large_float_range: random floats of all magnitudes.
        abs_error_bound: an element is wrong only if it is further off than this, and than the next one.
        rel_error_bound: relative to the reference.
        input_literals_file: arguments, as a RunHloModuleLiterals.
        output_literals_file: gets arguments and results, as one.
        isolate_instructions: run every instruction by itself.
        different_random_seeds: seeds 1, 2, … in place of 42, 43, …
        debug_options_file: text form of a DebugOptions.
        timeout: seconds per run; of hlotool's own.
    """

    platform: str = ""
    reference_platform: str = "default"
    input_format: str = ""
    iterations: int = 1
    print_literals: bool = False
    run_test_hlo_passes: bool = True
    run_reference_hlo_passes: bool = True
    random_init_input_literals: bool = True
    force_fake_data: bool = False
    use_large_float_range: bool = False
    abs_error_bound: float | None = None
    rel_error_bound: float | None = None
    input_literals_file: str = ""
    output_literals_file: str = ""
    isolate_instructions: bool = False
    different_random_seeds: bool = False
    debug_options_file: str = ""
    timeout: float = 300.0


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line of the tool.

    Attributes:
        flags: its own.
        debug_options: `xla_…` flags by name, as text.
        files: that are to be run.
    """

    flags: Flags
    debug_options: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def parse_command_line(arguments: Sequence[str]) -> CommandLine:
    """The command line; the flags of a debug options file come first, so that those given here win.

    Raises:
        UsageError: an unknown flag, a value of another type, flags that exclude each other, no file.
    """
    flags: dict[str, Any] = {}
    debug_options: dict[str, str] = {}
    files: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            files.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        if name.startswith("xla_"):
            debug_options[name] = value if equals else "true"
            continue
        kind = _KINDS.get(name)
        if kind is None:
            raise UsageError(f"unknown flag --{name}{_meant(name)}")
        if not equals and kind is not bool:
            value = next(rest, "")
        flags[name] = _converted(name, kind, value)
    line = CommandLine(Flags(**flags), debug_options, tuple(files))
    _check(line)
    if line.flags.debug_options_file:
        given = dict(_options_in(line.flags.debug_options_file))
        line = replace(line, debug_options=given | debug_options)
    return line


def _kind(annotation: str) -> type:
    """The type of a flag's value."""
    return {"bool": bool, "int": int, "str": str}.get(annotation, float)


_KINDS = {name: _kind(str(f.type)) for name, f in Flags.__dataclass_fields__.items()}


def _converted(name: str, kind: type, text: str) -> Any:
    if kind is bool:
        if text.lower() not in _TRUTHS:
            raise UsageError(f"--{name}={text}: it is true or false")
        return _TRUTHS[text.lower()]
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"--{name}={text}: no {'whole number' if kind is int else 'number'}") from None


def _check(line: CommandLine) -> None:
    flags = line.flags
    if not flags.platform:
        raise UsageError("--platform is missing: CPU, CUDA, Interpreter, …")
    if not line.files:
        raise UsageError("no HLO file is given")
    if flags.force_fake_data and flags.input_literals_file:
        raise UsageError("--force_fake_data and --input_literals_file exclude each other")
    if flags.isolate_instructions and flags.input_literals_file:
        raise UsageError("--isolate_instructions and --input_literals_file exclude each other")
    if flags.iterations < 1:
        raise UsageError(f"--iterations={flags.iterations}: it is 1 or more")
    if flags.input_format not in FORMATS:
        raise UsageError(f"--input_format={flags.input_format}: it is one of {', '.join(FORMATS[1:])}")
    for name in ("abs_error_bound", "rel_error_bound", "timeout"):
        bound = getattr(flags, name)
        if bound is not None and not 0 <= bound < float("inf"):
            raise UsageError(f"--{name}={bound}: it is not negative and not infinite")


def _meant(name: str) -> str:
    near = nearest(name, _KINDS)
    return f"; did you mean --{near}?" if near else ""


def _options_in(path: str) -> Iterator[tuple[str, str]]:
    """The options in the text form of a DebugOptions: one to a line, of a list one entry to a line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--debug_options_file={path}: {error}") from error
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _OPTION.match(line)
        if match is None:
            raise UsageError(f"{path}:{number}: not `xla_NAME: VALUE`: {line.strip()[:80]}")
        found.setdefault(match[1], []).append(match[2].strip('"'))
    for name, values in found.items():
        yield name, ",".join(values)


#: Of the time limit: what recording and comparing may take each.
_SHARE = 0.4


class Tested(Record, frozen=True, kw_only=True):
    """An instruction.

    Attributes:
        name: of it.
        status: MATCHED, MISMATCH, COMPILATION ERROR, RUNTIME ERROR or DIDN'T RUN, as XLA's tool calls them.
        error: in one line.
    """

    name: str
    status: str
    error: str = ""


class Isolated(Record, frozen=True, kw_only=True):
    """All of a program.

    Attributes:
        instructions: in the order in which they run.
        error: why there are none.
    """

    instructions: list[Tested] = []
    error: str = ""


def run(task: Run) -> Isolated:
    """Run the program on the reference, and then each instruction on the test platform.

    Raises:
        MemoryError: there is not enough of it.
        BackendFailed: this process is of no more use.
    """
    try:
        reference = program_of(task.module, "numpy")
        if reference.runner.copies > 1:
            raise Unsupported("instructions of programs for several devices cannot be run alone")
        arguments: Sequence[Any] = generate_inputs(reference.module, task.options.seed).values
        budget = Budget(seconds=_SHARE * task.options.timeout)
        with closing(execute(on_one_device(reference.module, arguments), budget)) as execution:
            isolation = Isolation(execution, task.options.backend, _SHARE * task.options.timeout)
            return Isolated(instructions=[_tested(alone) for alone in isolation.each()])
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return Isolated(error=str(error))


def _tested(alone: Alone) -> Tested:
    if alone.error is None:
        return Tested(name=alone.instruction.name, status="MISMATCH" if alone.is_wrong else "MATCHED")
    status = "RUNTIME ERROR" if isinstance(alone.error, BackendFailed) else "DIDN'T RUN"
    return Tested(name=alone.instruction.name, status=status, error=str(alone.error).splitlines()[0])
