"""Compiles programs for a device that need not be here, and says what the compiler makes of them.

The compiler runs in a process of its own; what it dies of becomes part of a record.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.aot.options import TARGETS, Target
from hlotool.backends.aot.protocol import COUNTED, AheadResult
from hlotool.backends.base import DumpingBackend, SlowToStart
from hlotool.backends.registry import get_backend, parse_spec
from hlotool.checks.explain.messages import explain_text
from hlotool.checks.inspect.programs import stage_info
from hlotool.checks.inspect.run import USAGE_REPORT
from hlotool.checks.records import StageInfo
from hlotool.errors import BackendUnavailable, HlotoolError, Unsupported, UsageError
from hlotool.ir.module import Module
from hlotool.judge.failures import error_record, verdict_of
from hlotool.runs.ahead_records import COMPILES, REFUSED, CompiledRecord, LaunchesRecord, SpaceRecord
from hlotool.runs.program import compile_program
from hlotool.runs.scripts import lower
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.mlir import unwrapped
from hlotool.sources.records import DumpModule
from hlotool.sources.stages import read_stage
from hlotool.system.files import brief_folder

#: The ends of a compilation are written always.
_NO_PASS, _EVERY_PASS = "^$", ".*"

#: Of XLA's report on its allocations: a memory, and how much of it is taken.
_SPACE = re.compile(r"^Memory Space: (\w+) \(color=(\d+)\)\nTotal bytes: (\d+)", re.MULTILINE)
#: Names of memories by XLA's numbers, where the report has no name or another one.
_SPACES = {0: "hbm", 5: "host"}
#: A warning or an error in a log, without date and thread.
_COMPLAINT = re.compile(r"^[WE]\d{4} \S+ +\d+ (\S+:\d+)\] (.*)", re.MULTILINE)
#: What every compilation says.
_NOISE = (
    "llo_module.h:",
    "Invalid stack_frame_id",
    "unexpected worker hostname",
    "HloShardingV3",
    "0-iteration loop inserted",
)
#: What the compiler of GPUs says that it executes, and a kernel in what it compiles.
_LAUNCH = re.compile(r"^\s*\d+: k\w+ .*\bgrid: ", re.MULTILINE)
_KERNEL = re.compile(r"\.entry\b")


@dataclass(frozen=True, slots=True)
class AheadTask:
    """A program to be compiled.

    Attributes:
        module: of a dump; None for a function of a script.
        script: `SCRIPT.py:FUNCTION` otherwise.
        shapes: of that function's arguments; None where the script says which they are.
        backend: whose compiler it is.
        folder: gets the dump.
        passes: the program after every pass, too.
    """

    module: DumpModule | None
    script: str
    shapes: tuple[str, ...] | None
    backend: str
    folder: str
    passes: bool

    @property
    def name(self) -> str:
        """Of the program in reports."""
        return self.module.title if self.module is not None else self.script

    @property
    def path(self) -> str:
        """The file that speaks for it."""
        if self.module is None or not self.module.stages:
            return self.name
        return str(self.module.stages[0].source)


def target_spec(target: str, timeout: float) -> str:
    """The backend that compiles for `target`: a device, or a backend by its own name; it starts here.

    Args:
        target: as the user gave it.
        timeout: seconds for each compilation, where the target does not say.

    Raises:
        UsageError: there is none, or it does not show what it makes of a program.
    """
    spec = parse_spec(target)
    name = f"aot:{target}" if spec.name.partition(",")[0] in TARGETS else target
    if name.startswith("aot:") and "timeout=" not in name:
        name += f",timeout={timeout:g}"
    try:
        backend = get_backend(name)
    except UsageError as error:
        if spec.name != target:
            raise
        raise UsageError(f"--for {target}: no such target; there are: {', '.join(TARGETS)}") from error
    if not isinstance(backend, DumpingBackend):
        raise UsageError(f"--for {target}: backend {name} does not show what it makes of a program")
    if isinstance(backend, AotBackend) and backend.options.target is None:
        raise UsageError(f"--for {target}: for what? There are: {', '.join(TARGETS)}")
    if isinstance(backend, SlowToStart):
        backend.warm_up()
    return name


def compile_ahead(task: AheadTask) -> CompiledRecord:
    """Compile a program; errors become part of the record."""
    backend = get_backend(task.backend)
    assert isinstance(backend, DumpingBackend)
    folder = Path(task.folder)
    began = time.perf_counter()
    outcome, error, parts, log, version = COMPILES, None, dict[str, int](), "", ""
    try:
        version = backend.version
        dumping = backend.dumping(folder, _EVERY_PASS if task.passes else _NO_PASS)
        if isinstance(dumping, AotBackend):
            made = _compiled(task, dumping)
            parts, log = made.memory, made.log
        else:
            compile_program("", "", _module(task), dumping)
    except HlotoolError as problem:
        error = error_record(problem)
        is_refusal = bool(version) and type(problem) is Unsupported
        outcome = REFUSED if is_refusal else verdict_of(problem).value
        log = "" if isinstance(problem, UsageError | BackendUnavailable) else error.log
    seconds = time.perf_counter() - began
    owner = _owner(folder) if error is None else None
    warnings = list(dict.fromkeys(_warnings(log)))
    told = [error.message] if error is not None else []
    target = backend.options.target if isinstance(backend, AotBackend) else None
    return CompiledRecord(
        name=task.name,
        path=task.path,
        outcome=outcome,
        compiler=version,
        folder=task.folder if owner is not None else "",
        error=error,
        memory=list(_memory(owner, target, parts)) if owner is not None else [],
        parts=parts,
        launches=_launches(owner) if owner is not None else None,
        program=_program(owner) if owner is not None else None,
        warnings=warnings,
        explained=explain_text("\n".join([*told, *warnings])),
        seconds=seconds,
    )


def _compiled(task: AheadTask, backend: AotBackend) -> AheadResult:
    with brief_folder() as name:
        file = Path(name) / "program.mlir"
        module = task.module
        if module is None:
            options, devices = backend.options, backend.setup.devices
            assert options.target is not None
            platform = options.target.platform
            lower(task.script, task.shapes, file, platform, devices, options.python, options.timeout)
            return backend.compile_ahead(file)
        given = module.stablehlo or (module.stages[0].mlir if module.stages else None)
        if given is None:
            return backend.compile_ahead(_module(task))
        file.write_bytes(unwrapped(given.read_bytes()))
        return backend.compile_ahead(file)


def _module(task: AheadTask) -> Module:
    """The program as it was given first.

    Raises:
        Unsupported: there is none.
    """
    assert task.module is not None
    if not task.module.stages:
        raise Unsupported("it has no program to compile")
    return load_stage(task.module, task.module.stages[0])


def _owner(folder: Path) -> DumpModule | None:
    """What the dump says of the program; helpers that a compiler makes of it are smaller."""
    ends = [(owner, owner.after) for owner in open_dump(folder).modules if owner.after is not None]
    return max(ends, key=lambda end: len(end[1].source.read_bytes()))[0] if ends else None


def _program(owner: DumpModule) -> StageInfo | None:
    assert owner.after is not None
    try:
        module = read_stage(owner.after, reads_literals=False)
    except HlotoolError:
        return None  # what runs it says why
    return stage_info(module, owner.after.title, str(owner.after.source))


def _memory(owner: DumpModule, target: Target | None, parts: dict[str, int]) -> Iterator[SpaceRecord]:
    """By space; of the device's own memory the compiler's count has the code, too."""
    capacities = target.capacities if target is not None else {}
    used: dict[str, int] = {}
    for text in _artefacts(owner, USAGE_REPORT):
        for name, number, size in _SPACE.findall(text):
            space = _SPACES.get(int(number), name) if target is not None else name
            used[space] = max(used.get(space, 0), int(size))
    for space, prefix in (("hbm", ""), ("host", "host_")):
        counted = {what: parts.get(f"{prefix}{what}", 0) for what in COUNTED}
        total = sum(counted.values()) - 2 * counted["alias"]
        if total > 0:
            used[space] = total
    for space in dict.fromkeys([*capacities, *used]):
        yield SpaceRecord(space=space, used=used.get(space, 0), capacity=capacities.get(space))


def _launches(owner: DumpModule) -> LaunchesRecord | None:
    """Of a GPU's program, which has a file of what is executed."""
    sequences = list(_artefacts(owner, "thunk_sequence.txt"))
    if not sequences:
        return None
    steps = [line for text in sequences for line in text.splitlines() if re.match(r"\s*\d+: k", line)]
    launches = sum(len(_LAUNCH.findall(text)) for text in sequences)
    kernels = sum(len(_KERNEL.findall(text)) for text in _artefacts(owner, ".ptx"))
    return LaunchesRecord(kernels=kernels, launches=launches, calls=len(steps) - launches)


def _artefacts(owner: DumpModule, suffix: str) -> Iterator[str]:
    return (file.source.read_text() for file in owner.artefacts if file.name.text.endswith(suffix))


def _warnings(log: str) -> Iterator[str]:
    """What the compiler complained of, without what it always says."""
    for place, text in _COMPLAINT.findall(log):
        if not any(noise in f"{place} {text}" for noise in _NOISE):
            yield text.strip()
