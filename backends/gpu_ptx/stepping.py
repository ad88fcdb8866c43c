"""Executes the steps of a program on the memory of a device.

Kernels are executed from their PTX. What a library does, or what needs no code (a copy that slices), is
computed by the reference from the values in memory, and counted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.gpu_ptx.assignment import Slice
from hlotool.backends.gpu_ptx.device import Device
from hlotool.backends.gpu_ptx.dump import GpuDump
from hlotool.backends.gpu_ptx.launch import launch
from hlotool.backends.gpu_ptx.program import Kernel
from hlotool.backends.gpu_ptx.thunks import Launch, Thunk
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import KernelFault, Location, Unsupported
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.edit_calls import extract
from hlotool.ir.module import Instruction
from hlotool.ir.walk import through_tuple

#: They execute their parts, or nothing but an order of steps.
_SEQUENCES = frozenset({"kSequential", "kCommandBuffer", "kAsyncStart"})
_ORDER = frozenset({"kAsyncDone", "kWaitForStreams", "kCopyDone", "kHostExecuteDone"})
_BYTES_OF_ADDRESS = 8
#: Bytes of shared memory that a block has at most on any GPU (compute capability 9.0 and 10.0).
_MOST_SHARED = 232448


@dataclass(slots=True)
class Counts:
    """What an execution consisted of.

    Attributes:
        launches: of kernels.
        thread_instructions: in them.
        by_reference: names of the instructions that the reference computed.
        shared_unknown: names of kernels that had as much shared memory as there is.
    """

    launches: int = 0
    thread_instructions: int = 0
    by_reference: dict[str, None] = field(default_factory=dict)
    shared_unknown: dict[str, None] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What ran otherwise than on a GPU."""
        said = {
            "computed by the reference, as their code is no PTX": self.by_reference,
            "with all shared memory that there is, as the dump does not say how much": self.shared_unknown,
        }
        return [f"{what}: {', '.join(names)}" for what, names in said.items() if names]


class Stepping:
    """The steps of a program, ready to be executed.

    Args:
        dump: the program.
        seed: of what the hardware may choose; see `launch`.
        grid: the devices that execute it, each in a thread of its own.

    Raises:
        Unsupported: a kernel without PTX.
    """

    def __init__(self, dump: GpuDump, seed: int, grid: DeviceGrid = ONE_DEVICE) -> None:
        self._dump, self._seed, self._grid = dump, seed, grid
        self._lock = threading.Lock()
        self._named = {i.name: i for i in dump.module.instructions()}
        self._library: dict[Instruction, _Library] = {}
        self._kinds: dict[str, set[str]] = {}
        for top in dump.steps:
            for step in top.all():
                self._kinds.setdefault(step.instruction, set()).add("kernel" if step.launch else step.kind)
                if step.launch is not None and step.launch.kernel not in dump.kernels:
                    raise self._unsupported(step, f"there is no PTX for kernel {step.launch.kernel}")

    def steps_of(self, name: str) -> list[Thunk]:
        """The outermost steps that were made for an instruction."""
        found: list[Thunk] = []
        pending = list(reversed(self._dump.steps))
        while pending:
            step = pending.pop()
            if step.instruction == name:
                found.append(step)
            else:
                pending += [one for _, part in reversed(step.parts) for one in reversed(part)]
        return found

    def run(self, steps: Sequence[Thunk], device: Device, counts: Counts) -> None:
        """Execute steps.

        Raises:
            Unsupported: a step or a PTX instruction that is not known.
            KernelFault: a kernel does what is not allowed.
        """
        for step in steps:
            self._run(step, device, counts)

    def _run(self, step: Thunk, device: Device, counts: Counts) -> None:
        if step.launch is not None:
            self._launch(step, step.launch, device, counts)
        elif step.kind in _SEQUENCES:
            for _, part in step.parts:
                self.run(part, device, counts)
        elif step.kind == "kWhile":
            self._loop(step, device, counts)
        elif step.kind == "kConditional":
            self._branch(step, device, counts)
        elif step.kind == "kMemzero":
            device.zero(device.slices(self._instruction(step))[step.ordinal])
        elif step.kind == "kCopy" and (pair := self._copied(step, device)) is not None:
            device.copy(*pair)
        elif step.kind not in _ORDER and not self._is_preparation(step):
            self._by_reference(step, device, counts)

    def _instruction(self, step: Thunk) -> Instruction:
        found = self._named.get(step.instruction)
        if found is None:
            raise self._unsupported(
                step, f"the dump does not say what step {step.number} ({step.kind}) is for"
            )
        return found

    def _launch(self, step: Thunk, called: Launch, device: Device, counts: Counts) -> None:
        instruction = self._instruction(step)
        kernel = self._dump.kernels[called.kernel]
        places = _arguments(kernel, instruction, device)
        if places is None:
            count = len(kernel.parameters)
            raise self._unsupported(
                step, f"kernel {kernel.name} has {count} parameters, which are not known", instruction
            )
        arguments = [device.address(place).to_bytes(_BYTES_OF_ADDRESS, "little") for place in places]
        for number, tensor in self._dump.tensors.get(kernel.name, {}).items():
            arguments[number] = replace(tensor, address=device.address(places[number])).encode()
        statistics = launch(
            kernel,
            called.grid,
            called.block,
            arguments,
            device.memory,
            dynamic_shared=self._shared(kernel, called, counts),
            seed=self._seed,
            written=device.span(device.slices(instruction)),
        )
        if (behind := device.overrun()) is not None:
            what = f"writes behind allocation {behind.number} of {behind.size} bytes"
            raise KernelFault("bounds", what, kernel.name, Location(kernel.program))
        counts.launches += 1
        counts.thread_instructions += statistics.thread_instructions

    def _shared(self, kernel: Kernel, called: Launch, counts: Counts) -> int:
        """Bytes of dynamic shared memory."""
        if called.shared is not None or not kernel.is_dynamic:
            return called.shared or 0
        counts.shared_unknown[kernel.name] = None
        return _MOST_SHARED - kernel.shared_bytes

    def _loop(self, step: Thunk, device: Device, counts: Counts) -> None:
        instruction = self._instruction(step)
        parts = dict(step.parts)
        condition = instruction.computation("condition").root
        while True:
            self.run(parts["condition"], device, counts)
            if not np.asarray(device.read(condition)).item():
                return
            self.run(parts["body"], device, counts)

    def _branch(self, step: Thunk, device: Device, counts: Counts) -> None:
        """Labels are not asked: XLA prints `false_branch` above the first one, which is the true branch."""
        chosen = np.asarray(device.read(self._instruction(step).operands[0]))
        last = len(step.parts) - 1
        number = int(not chosen) if chosen.dtype == np.bool_ else int(chosen)
        self.run(step.parts[number if 0 <= number <= last else last][1], device, counts)

    def _copied(self, step: Thunk, device: Device) -> tuple[Slice, Slice] | None:
        """What a copy copies, where it copies whole values; None where the reference has to say."""
        instruction = self._instruction(step)
        if instruction.opcode in ("copy", "copy-start"):
            return device.slices(instruction.operands[0])[0], device.slices(instruction)[0]
        if "kernel" not in self._kinds[step.instruction] or (sort := _sort_in(instruction)) is None:
            return None
        pairs = [
            (device.slices(given)[0], place)
            for operand, place in zip(sort.operands, device.slices(instruction))
            if (given := _given(instruction, operand)) is not None
        ]
        moved = [pair for pair in pairs if pair[0] != pair[1]]
        return moved[step.ordinal] if step.ordinal < len(moved) else None

    def _is_preparation(self, step: Thunk) -> bool:
        """Whether it copies what a library then works on, which the reference reads from where it was."""
        others = self._kinds[step.instruction] - {"kCopy", "kernel"} - _SEQUENCES - _ORDER
        return step.kind == "kCopy" and bool(others)

    def _by_reference(self, step: Thunk, device: Device, counts: Counts) -> None:
        instruction = self._instruction(step)
        if "kernel" in self._kinds[instruction.name]:
            raise self._unsupported(step, f"what step {step.number} ({step.kind}) does beside its kernel")
        # Devices meet at an instruction of one program, which all of them have to execute.
        with self._lock:
            if instruction not in self._library:
                self._library[instruction] = _Library(self._dump, instruction, self._grid)
        self._library[instruction].run(device)
        counts.by_reference[instruction.name] = None

    def _unsupported(self, step: Thunk, reason: str, instruction: Instruction | None = None) -> Unsupported:
        module = self._dump.module
        if instruction is None:
            instruction = self._named.get(step.instruction)
        if instruction is None:
            return Unsupported(f"{module.path}: {reason}")
        return module.unsupported(instruction, reason)


class _Library:
    """An instruction that the reference computes; collectives are executed where they start."""

    def __init__(self, dump: GpuDump, instruction: Instruction, grid: DeviceGrid) -> None:
        members = [instruction]
        if instruction.opcode.endswith("-start"):
            members += [
                i for c in dump.module.computations for i in c.instructions if instruction in i.operands
            ][:1]
        self._result = members[-1]
        cut = extract(dump.module, members, members[-1:])
        self._inputs = cut.inputs
        self._alone = NumpyBackend().compile(cut.module) if len(grid) == 1 else None
        self._together = NumpyBackend().compile_devices(cut.module, grid) if len(grid) > 1 else None

    def run(self, device: Device) -> None:
        arguments: list[Value] = [device.read(each) for each in self._inputs]
        if self._alone is not None:
            result = self._alone.run(arguments)
        else:
            assert self._together is not None
            assert device.place is not None
            result = self._together.run_on(device.place, arguments)
        device.write(self._result, result)


def _arguments(kernel: Kernel, instruction: Instruction, device: Device) -> list[Slice] | None:
    """What a kernel's parameters point to: its operands and results, of which XLA names each slice once."""
    given = [place for operand in instruction.operands for place in device.slices(operand)]
    made = device.slices(instruction)
    each = list(dict.fromkeys([*given, *made]))
    candidates = ([*given, *made], each, made)
    return next((places for places in candidates if len(places) == len(kernel.parameters)), None)


def _sort_in(instruction: Instruction) -> Instruction | None:
    """The sort that a kernel of `instruction` makes in place."""
    if instruction.opcode == "fusion":
        root = next(instruction.called).root
        return root if root.opcode == "sort" else None
    return instruction if instruction.opcode == "sort" else None


def _given(fusion: Instruction, operand: Instruction) -> Instruction | None:
    """What the caller gives for an operand inside of a fusion; None for what is made in it."""
    if fusion.opcode != "fusion":
        return operand
    while operand.opcode in ("bitcast", "get-tuple-element", "tuple"):
        through = through_tuple(operand, ())
        operand = operand.operands[0] if through is None else through[0]
    return fusion.operands[operand.parameter_number or 0] if operand.opcode == "parameter" else None
