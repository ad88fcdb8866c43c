"""A program with its arguments, in memory and as files: what a reduction makes smaller.

What only points elsewhere (positions in the user's source) is taken out of a program first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlotool.backends.base import Probe, Value
from hlotool.backends.registry import get_backend, get_devices_backend
from hlotool.errors import HlotoolError, Unsupported
from hlotool.inputs.frames import Frame
from hlotool.inputs.given import arrays_in, npz_bytes
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.attributes import Metadata
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import for_grid, is_one_program_with_regions, own_arguments
from hlotool.ir.walk import reachable
from hlotool.judge.locate.recording import Recorder
from hlotool.runs.program import Program
from hlotool.system.files import digest
from hlotool.system.paths import write_file
from hlotool.system.urls import name_of


def remove_positions(module: Module) -> None:
    """Drop tables of source positions, which are longer than a small program; names of operations stay."""
    for instruction in module.instructions():
        _strip(instruction)
    module.stack_frames = None


def without_positions(module: Module) -> Module:
    """A copy without positions; see `remove_positions`."""
    copy = clone_module(module).module
    remove_positions(copy)
    return copy


def _strip(instruction: Instruction) -> None:
    if instruction.metadata is not None:
        name = instruction.metadata.op_name
        instruction.metadata = Metadata(op_name=name) if name else None


#: Bytes of values that may be held while parts of a program are replaced by them.
LIMIT = 1 << 31


@dataclass(slots=True, eq=False)
class Case:
    """A program and arguments on which it fails (or does not).

    Attributes:
        module: the program, which is never changed: a smaller one is a copy.
        arguments: one per parameter of the entry; of a program for each of several devices one tuple of these
            per device.
        device: one of those where it fails; what is left of the program for one of them is that one's.
        exact: the program's text where it was not made here, and must be judged as it was written.
    """

    module: Module
    arguments: tuple[Any, ...]
    device: int = 0
    exact: str = ""
    _text: str = field(default="", repr=False)

    @property
    def text(self) -> str:
        """HLO text of the program."""
        if not self._text:
            self._text = self.exact or self.module.to_text()
        return self._text

    @property
    def copies(self) -> int:
        """How many devices have arguments of their own."""
        return own_arguments(self.module)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The arguments of each device, or of all as one."""
        return [self.arguments] if self.copies == 1 else list(self.arguments)

    def with_rows(self, module: Module, rows: Sequence[Sequence[Any]]) -> Case:
        """Another program, made of this one.

        Args:
            module: where nothing in it knows of devices any more, it is a program for one of them.
            rows: arguments on each device that executes this program; one row where all have the same.
        """
        count = own_arguments(module)
        if count > 1:
            own = rows if len(rows) > 1 else [rows[0]] * count
            return Case(module, tuple(map(tuple, own)), self.device)
        if self.copies > 1:
            module = for_one_device(module)
        return Case(module, tuple(rows[self.device if len(rows) > 1 else 0]))

    def changed(self, module: Module, change: Callable[[Sequence[Any]], Sequence[Any]] = tuple) -> Case:
        """Another program, made of this one, on what `change` makes of the arguments of each device."""
        return self.with_rows(module, [change(row) for row in self.rows])

    @property
    def size(self) -> int:
        """Instructions that the entry reaches, parameters not counted."""
        return sum(
            instruction.opcode != "parameter"
            for computation in reachable(self.module.entry)
            for instruction in computation.instructions
        )

    @property
    def elements(self) -> int:
        """Elements of all arguments."""
        return sum(a.size for a in arrays_in(self.arguments))

    @property
    def key(self) -> str:
        """Everything that a judgement of the program depends on."""
        arrays = list(arrays_in(self.arguments))
        parts = [part for a in arrays for part in (str((a.dtype, a.shape)).encode(), a.tobytes())]
        return digest(self.text, *parts)


def case_of(program: Program, arguments: Sequence[Any]) -> Case:
    """A program with the arguments of a replay; a partitioned one gets its parts of global ones."""
    rows = program.runner.on_devices(arguments)
    return Case(program.module, tuple(rows) if own_arguments(program.module) > 1 else rows[0])


def for_one_device(module: Module) -> Module:
    """A copy for a single device; nothing in it may know of them."""
    copy = clone_module(module).module
    for instruction in copy.instructions():
        instruction.attributes = with_attributes(instruction.attributes, sharding=None)
    return for_grid(copy, ONE_DEVICE)


def _execute(case: Case, probe_of: Callable[[], Probe]) -> list[tuple[Any, ...]]:
    """Execute on the reference, each device under a probe of its own; returns the arguments of each.

    A program on global arrays that has regions for each device is executed as a whole by each of them.
    """
    module, rows = case.module, case.rows
    grid = DeviceGrid(module.replica_count, module.num_partitions)
    if is_one_program_with_regions(module):
        rows = rows * len(grid)
    if len(rows) == 1:
        get_backend("numpy").compile(module).run(case.arguments, probe_of())
    else:
        executable = get_devices_backend("numpy").compile_devices(module, grid)
        executable.run_devices(rows, [probe_of() for _ in rows])
    return rows


def executed(case: Case, most: int | None = None) -> int:
    """How many instructions the reference executes, on the device that executes most of them.

    Raises:
        Unsupported: they are more than `most`, or the reference cannot run it.
    """
    counts: list[int] = []

    def probe() -> Probe:
        number = len(counts)
        counts.append(0)

        def add(instruction: Instruction, value: Value) -> None:
            counts[number] += 1
            if most is not None and counts[number] > most:
                raise Unsupported("too many instructions are executed", instruction.name)

        return add

    _execute(case, probe)
    return max(counts)


def terminates(case: Case, limit: int) -> bool:
    """Whether the reference executes no more than `limit` instructions; also False where it cannot run it."""
    try:
        executed(case, limit)
    except HlotoolError:
        return False
    return True


def observe(case: Case, wanted: Sequence[Instruction] | None = None) -> list[dict[Instruction, Value]]:
    """What the instructions of the entry give on the reference, parameters included, on each device.

    Args:
        case: the program and its arguments.
        wanted: the instructions to look at; all of the entry when None.

    Raises:
        Unsupported: the reference cannot run it, or the values do not fit into memory.
    """
    entry = case.module.entry
    looked_at = set(entry.instructions if wanted is None else wanted)
    devices: list[dict[Instruction, Value]] = []
    left = LIMIT

    def probe() -> Probe:
        values: dict[Instruction, Value] = {}
        devices.append(values)

        def keep(instruction: Instruction, value: Value) -> None:
            nonlocal left
            if instruction in looked_at:
                values[instruction] = value
                left -= sum(a.nbytes for a in arrays_in(value))
                if left < 0:
                    reason = "the values of all instructions do not fit into memory"
                    raise Unsupported(reason, instruction.name)

        return keep

    for values, row in zip(devices, _execute(case, probe)):
        values.update(zip(entry.parameters, row))
    return devices


def traces(case: Case) -> list[Frame]:
    """What every instruction returned on each device that executes the program, as frames of the entry.

    Raises:
        Unsupported: it cannot be executed, or makes more values than can be looked at.
        OutOfTime: it takes too long.
    """
    recorders: list[Recorder] = []

    def probe() -> Recorder:
        recorders.append(Recorder(case.module, Budget()))
        return recorders[-1]

    rows = _execute(case, probe)
    frames = [recorder.frame(row) for recorder, row in zip(recorders, rows)]
    for frame in frames:
        if frame.trace.incomplete:
            raise Unsupported(f"more than {frame.trace.count} values")
    return frames


def write_case(case: Case, path: str) -> None:
    """Write the program to `path`, which may be a URL, and its arguments beside it, as .npz.

    Raises:
        UsageError: a file cannot be written.
        DumpError: nor can the store's.
    """
    write_file(path, [case.text.encode("utf-8")])
    if case.arguments:
        write_file(with_suffix(path, ".npz"), [npz_bytes(case.arguments, case.copies)])


def with_suffix(path: str, suffix: str) -> str:
    """The path of what lies beside `path` and has another suffix."""
    return f"{os.path.splitext(path)[0]}{suffix}"


def default_output(path: str, what: str = "reduced") -> str:
    """`NAME.reduced.hlo` in the working directory, for a file or folder called NAME."""
    name = "stdin" if path == "-" else name_of(path.replace(os.sep, "/"))
    for suffix in (".txt", ".hlo", ".pb"):
        name = name.removesuffix(suffix)
    return f"{name}.{what}.hlo"
