"""What XLA's compiler for TPUs does just before HostOffloader: copies that change layouts leave host memory.

From each tensor that comes to the host it goes up to the buffer that the tensor is written into, then down
to the moves to the device; it gives up at what it does not know, conditionals and calls among others. On the
way it refuses a branch that ends with a move to the device, and spoils what is transposed and then reshaped.
XLA: host_offload_legalize.cc, ProcessAnnotationForCopyMovement; conditional_canonicalizer.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import mul

from hlotool.checks.offload import positions as messages
from hlotool.checks.offload.positions import (
    VIEWS,
    Placement,
    Position,
    Positions,
    on_host,
    placement,
    regroups,
)
from hlotool.checks.rules import Problem, Subject
from hlotool.facts.recognition import uniform
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ShapeIndex

_SLICES = frozenset({"slice", "dynamic-slice"})
_UPWARDS = VIEWS | {
    "get-tuple-element",
    "tuple",
    "while",
    "parameter",
    "opt-barrier",
    "dynamic-update-slice",
}


class _Unknown(Exception):
    """The walk is given up."""


class Legalizing:
    """The walks of one program, which is given as the compiler's passes get it."""

    def __init__(self, subject: Subject, positions: Positions) -> None:
        self._subject = subject
        self._calls = subject.calls
        self._users = subject.users
        self._positions = positions

    def problems(self) -> Iterator[tuple[str, Problem]]:
        """Each with the id of the rule it belongs to."""
        begun: set[Instruction] = set()
        for start in self._starts():
            if start in begun or not self._users[start]:
                continue
            update = self._update_after(self._users[start][0])
            begun.add(update or start)
            try:
                yield from self._down(self._top((update, ())) if update else (start, ()))
            except _Unknown:
                continue

    def _starts(self) -> Iterator[Instruction]:
        """What comes to the host: parameters of the program, and what is moved."""
        layouts = self._subject.module.entry_layout.parameters
        yield from (p for p, shape in zip(self._subject.module.entry.parameters, layouts) if on_host(shape))
        yield from (i for i in self._subject.instructions if placement(i) is Placement.TO_HOST)

    def _update_after(self, user: Instruction) -> Instruction | None:
        """The update that writes the tensor, directly or by way of views that nothing else reads."""
        while user.opcode in VIEWS and len(self._users[user]) == 1:
            user = self._users[user][0]
        return user if user.opcode == "dynamic-update-slice" else None

    def _top(self, position: Position) -> Position:
        """Where the buffer of an update begins."""
        while not self._is_begin(position[0]):
            if position[0].opcode == "parameter":
                self._loop_of(self._calls.home[position[0]])
            before = self._positions.predecessors(position)
            if position[0].opcode not in _UPWARDS or before is None or len(before) != 1:
                raise _Unknown
            (position,) = before
        return position

    def _is_begin(self, instruction: Instruction) -> bool:
        if instruction.opcode == "broadcast":
            return instruction.operands[0].opcode == "constant"
        is_given = instruction in self._subject.module.entry.parameters
        return is_given or placement(instruction) is Placement.TO_HOST

    def _loop_of(self, computation: Computation) -> Instruction:
        """The loop whose body a computation is, and nothing else."""
        caller = self._calls.only_caller(computation)
        if caller is None or caller.opcode != "while":
            raise _Unknown
        return caller

    def _down(self, top: Position) -> Iterator[tuple[str, Problem]]:
        """From the beginning of a buffer to where it is moved back, the last user first."""
        copied: list[Instruction] = []
        stack = [top]
        while stack:
            position = stack[-1]
            instruction = position[0]
            if instruction.opcode in _SLICES or placement(instruction) is Placement.TO_DEVICE:
                end = self._end(instruction)
                if end is None:
                    return
                if self._is_end_of_branch(end):
                    callers = self._calls.callers[self._calls.home[end]]
                    problem = messages.ends_a_branch(end, self._calls.home[top[0]], callers)
                    yield "offload-branches", problem
                    return
                stack.pop()
                continue
            try:
                following = list(self._following(position))
            except _Unknown:
                break
            stack.pop()
            stack += following
            copied += [after for after, _ in following if _needs_copy(after) and not self._sinks(after)]
        for reshape in copied:
            if self._leads_to_device(reshape):
                yield "offload-transpose", messages.reshaped_after_transpose(reshape)

    def _end(self, instruction: Instruction) -> Instruction | None:
        """The move to the device behind a slice; views in between are read by nothing else."""
        while placement(instruction) is not Placement.TO_DEVICE:
            if instruction.opcode not in VIEWS | _SLICES or len(self._users[instruction]) != 1:
                return None
            instruction = self._users[instruction][0]
        return instruction

    def _is_end_of_branch(self, end: Instruction) -> bool:
        """A computation that is no loop's body returns it, in a tuple. Programs for one device have their
        conditionals return tuples, whatever the text says; with several devices those of one go again.
        """
        computation = self._calls.home[end]
        callers = self._calls.callers[computation]
        if end is computation.root:
            return self._is_for_one_device and any(caller.opcode == "conditional" for caller in callers)
        is_returned = computation.root.opcode == "tuple" and computation.root in self._users[end]
        return is_returned and bool(callers) and (len(callers) > 1 or callers[0].opcode != "while")

    @property
    def _is_for_one_device(self) -> bool:
        return self._subject.module.num_partitions == 1

    def _following(self, position: Position) -> Iterator[Position]:
        instruction, index = position
        users = self._users[instruction]
        computation = self._calls.home[instruction]
        if instruction.opcode == "conditional":
            raise _Unknown
        is_root = instruction is computation.root and computation is not self._subject.module.entry
        callers = self._calls.callers[computation]
        if is_root and self._is_for_one_device and callers[0].opcode == "conditional":
            yield callers[0], index
        elif is_root and not users:
            yield from self._elements(self._loop_of(computation), index)
        if instruction.opcode == "parameter" and not isinstance(instruction.shape, ArrayShape):
            yield from self._elements(instruction, index)
            return
        for user in users:
            yield from self._into(user, instruction, index)

    def _elements(self, whole: Instruction, index: ShapeIndex) -> Iterator[Position]:
        """The readers of one element of a tuple that is read element by element."""
        for user in self._users[whole]:
            if user.opcode != "get-tuple-element" or not index:
                raise _Unknown
            if user.integer("index") == index[0]:
                yield user, index[1:]

    def _into(self, user: Instruction, instruction: Instruction, index: ShapeIndex) -> Iterator[Position]:
        numbers = [number for number, operand in enumerate(user.operands) if operand is instruction]
        match user.opcode:
            case "get-tuple-element" if index:
                if user.integer("index") == index[0]:
                    yield user, index[1:]
            case "tuple" if len(numbers) == 1:
                yield user, (numbers[0], *index)
            case "while":
                yield user.computation("body").parameters[0], index
            case "conditional" if self._is_for_one_device and isinstance(instruction.shape, ArrayShape):
                yield user, index
            case "dynamic-update-slice" if numbers[0] == 0:
                yield user, index
            case "custom-call" if placement(user) is Placement.TO_DEVICE:
                yield user, index
            case "reshape" if not self._is_for_one_device and regroups(user):
                raise _Unknown  # collectives do it
            case opcode if opcode in VIEWS | _SLICES | {"opt-barrier"}:
                yield user, index
            case "async-start" if user.text("async_execution_thread", "main") == "host":
                return
            case _:
                raise _Unknown

    def _sinks(self, reshape: Instruction) -> bool:
        """All that reads it computes element by element with it and numbers alone: it comes after that.

        XLA: reshape_mover.cc.
        """
        users = self._users[reshape]
        return bool(users) and all(
            user.row.opcode_class is Class.ELEMENTWISE
            and all(operand is reshape or uniform(operand) is not None for operand in user.operands)
            for user in users
        )

    def _leads_to_device(self, start: Instruction) -> bool:
        """Every way ends with a move to the device, none with the program's result."""
        seen: set[Position] = {(start, ())}
        waiting: list[Position] = [(start, ())]
        while waiting:
            position = waiting.pop()
            if self._positions.is_entry_root(position[0]):
                return False
            for after in self._positions.successors(position):
                if placement(after[0]) is not Placement.TO_DEVICE and after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return True


def _needs_copy(reshape: Instruction) -> bool:
    """A reshape of what is transposed, whose dimensions do not lie in memory as they are joined and split."""
    if reshape.opcode != "reshape" or reshape.operands[0].opcode != "transpose":
        return False
    transpose = reshape.operands[0]
    before, after = transpose.array_shape.dims, reshape.array_shape.dims
    places = transpose.integers("dimensions")
    own, ends = list(accumulate(before, mul)), set(accumulate(after, mul))
    group: list[int] = []
    for dimension, (size, end) in enumerate(zip(before, own)):
        group += [places[dimension]] if size > 1 else []
        if end in ends:
            if not _is_run(group, transpose.operands[0].array_shape.dims):
                return True
            group = []
    return False


def _is_run(places: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether dimensions follow each other, those of size 1 apart."""
    return all(
        first < second and all(size == 1 for size in dims[first + 1 : second])
        for first, second in pairwise(places)
    )
