"""Follows host memory through a program, in the order of XLA's HostOffloader, without changing anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from hlotool.checks.offload import positions
from hlotool.checks.offload.positions import (
    HOST_MEMORY,
    PASSES_ON,
    VIEWS,
    Placement,
    Position,
    Positions,
    is_host_compute,
    memory_space,
    on_host,
    placement,
    regroups,
    true_dims,
)
from hlotool.checks.rules import Problem, Subject
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.shapes.base import compatible
from hlotool.ir.types import ArrayShape, leaves

#: What may stand between a slice of a host tensor and its move to the device, beside views of the data.
_AFTER_SLICE = frozenset({"tuple", "opt-barrier", "get-tuple-element", "parameter", "while"})
_HOST_THREAD = "host"


@dataclass(frozen=True, slots=True)
class Returned:
    """A host tensor that reaches the end of the program, where device memory is promised.

    Attributes:
        position: of the entry's root.
        start: where XLA begins to follow it; its message names this one.
        annotation: that moved it, None for a parameter in host memory.
        path: from its origin to the root.
    """

    position: Position
    start: Instruction
    annotation: Instruction | None
    path: tuple[Position, ...]


@dataclass(eq=False)
class HostMemory:
    """What is in host memory, and what is wrong with that.

    Attributes:
        subject: the program.
        host: positions in host memory.
        problems: by the id of the rule they belong to.
        returned: tensors that are returned although their output is in device memory.
        begun_as_broadcast: updates on the host of buffers that are broadcasts on the device.
    """

    subject: Subject
    host: set[Position] = field(default_factory=set)
    problems: dict[str, list[Problem]] = field(default_factory=dict)
    returned: list[Returned] = field(default_factory=list)
    begun_as_broadcast: set[Instruction] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._handled: set[Instruction] = set()
        self._updates: dict[Instruction, bool] = {}
        self._ended: set[Instruction] = set()
        if not self._is_annotated():
            return
        self._check_annotations()
        self._check_host_computations()
        if not any("operand" in p.message for p in self.problems.get("offload-annotation", ())):
            # Most programs have nothing on the host, and each worker would pay for importing passes.
            from hlotool.checks.offload.prepared import prepared

            self.subject = Subject(prepared(self.subject.module))
        self._positions = Positions(self.subject)
        loops = [i for i in self.subject.instructions if i.opcode == "while"]
        self._conditions = {loop.computation("condition") for loop in loops}
        from hlotool.checks.offload.legalize import Legalizing

        for rule, problem in Legalizing(self.subject, self._positions).problems():
            self.add(rule, problem)
        self._run()

    def _is_annotated(self) -> bool:
        """There is something to follow, and XLA has not done so already."""
        if any(placement(i) is not None for i in self.subject.instructions):
            return True
        layout = self.subject.module.entry_layout
        is_streamed = any(map(on_host, [*layout.parameters, layout.result]))
        is_done = any(on_host(i.shape) for i in self.subject.instructions if i.opcode != "parameter")
        return is_streamed and not is_done

    def add(self, rule: str, problem: Problem) -> None:
        """Report a problem of `rule`, once."""
        known = self.problems.setdefault(rule, [])
        if all((p.message, p.where) != (problem.message, problem.where) for p in known):
            known.append(problem)

    def _run(self) -> None:
        for number, shape in enumerate(self.subject.module.entry_layout.parameters):
            for index, part in leaves(shape):
                if isinstance(part, ArrayShape) and memory_space(part) == HOST_MEMORY:
                    self._walk((self.subject.module.entry.parameters[number], index), None, ())
        for annotation in self._in_order_of_execution(self.subject.module.entry):
            self._move_to_host(annotation)
        from hlotool.checks.offload.updates import check_updates

        check_updates(self, self._positions, self._updates)
        self._check_ends()

    def _check_annotations(self) -> None:
        for instruction in self.subject.instructions:
            wanted = placement(instruction)
            if wanted is None:
                continue
            if wanted is Placement.UNKNOWN:
                self.add("offload-annotation", positions.unknown_place(instruction))
            elif len(instruction.operands) != 1:
                self.add("offload-annotation", positions.operand_count(instruction))
            elif not compatible(instruction.shape, instruction.operands[0].shape):
                self.add("offload-annotation", positions.changes_shape(instruction))

    def _check_host_computations(self) -> None:
        """What is started on the host holds parameters and one call."""
        for instruction in self.subject.instructions:
            if instruction.opcode != "async-start" or not _runs_on_host(instruction):
                continue
            for computation in instruction.called:
                for inner in computation.instructions:
                    if inner.opcode != "parameter" and inner is not computation.root:
                        self.add("offload-host-computation", positions.unexpected_in_host_computation(inner))

    def _in_order_of_execution(self, computation: Computation) -> Iterator[Instruction]:
        """Annotations to the host, callees where they are called."""
        for instruction in computation.instructions:
            if placement(instruction) is Placement.TO_HOST:
                yield instruction
            for called in instruction.called:
                yield from self._in_order_of_execution(called)

    def _move_to_host(self, annotation: Instruction) -> None:
        if annotation in self._handled or len(annotation.operands) != 1:
            return
        self._handled.add(annotation)
        starts = self._starts(annotation)
        if not starts and self._positions.is_entry_root(annotation):
            self._check_lonely_root(annotation)
        for start, before in starts:
            is_update = start[0].opcode == "dynamic-update-slice"
            if is_update:
                self._updates[start[0]] = True
            if start[0].opcode == "conditional" and self._is_partitioned:
                self.add("offload-branches", positions.moved_at_the_end(annotation, start[0]))
                continue
            if start[0].opcode == "call" and self._positions.is_entry_root(start[0]):
                self._check_lonely_root(annotation)  # compilers inline calls before they look at memory
                continue
            self._walk(start, annotation, before)

    def _starts(self, annotation: Instruction) -> list[tuple[Position, tuple[Position, ...]]]:
        """Where the tensor is first used in host memory, and what merely views it on the way there."""
        found: list[tuple[Position, tuple[Position, ...]]] = []
        before: tuple[Position, ...] = ((annotation.operands[0], ()), (annotation, ()))
        queue = deque((position, before) for position in self._positions.successors((annotation, ())))
        while queue:
            position, path = queue.popleft()
            if position[0].opcode in VIEWS and not (self._is_partitioned and regroups(position[0])):
                for successor in self._positions.successors(position):
                    queue.append((successor, (*path, position)))
            else:
                found.append((position, path))
        return found

    def _check_lonely_root(self, annotation: Instruction) -> None:
        """XLA copies the result to the host; the layout of the output has to say so."""
        if memory_space(self.subject.module.entry_layout.result) != HOST_MEMORY:
            path: tuple[Position, ...] = ((annotation.operands[0], ()), (annotation, ()))
            self.returned.append(Returned((annotation, ()), annotation, annotation, path))

    def _walk(self, start: Position, annotation: Instruction | None, before: tuple[Position, ...]) -> None:
        """Follow the tensor from `start` to the end of every path."""
        came_from: dict[Position, Position | None] = {start: None}
        queue = deque([start])
        reached: list[Position] = []
        while queue:
            position = queue.popleft()
            if not self._visit(position, start, came_from, before):
                continue
            reached.append(position)
            if self._positions.is_entry_root(position[0]):
                if memory_space(self.subject.module.entry_layout.result, position[1]) != HOST_MEMORY:
                    path = tuple(_trail_positions(position, came_from, before))
                    self.returned.append(Returned(position, start[0], annotation, path))
                continue
            for successor in self._positions.successors(position):
                if successor not in came_from and successor not in self.host:
                    came_from[successor] = position
                    queue.append(successor)
        self.host.update(p for p in reached if p[0].opcode != "dynamic-update-slice")

    def _visit(
        self,
        position: Position,
        start: Position,
        came_from: dict[Position, Position | None],
        before: tuple[Position, ...],
    ) -> bool:
        """Judge one position; False where the path ends there."""
        instruction = position[0]

        def trail() -> list[Instruction]:
            return [p[0] for p in _trail_positions(position, came_from, before)]

        wanted = placement(instruction)
        if wanted is Placement.TO_HOST:
            if instruction not in self._handled:
                self.add("offload-annotation", positions.moved_twice(instruction))
            self._handled.add(instruction)
        elif wanted is Placement.TO_DEVICE:
            if update := self._update_that_is_copied(instruction, trail()):
                self.add("offload-compute", positions.buffer_is_copied(update, trail()))
            self._ended.add(instruction)
            return False
        elif instruction.opcode == "dynamic-update-slice":
            self._updates.setdefault(instruction, False)
        elif instruction.opcode in ("dynamic-slice", "slice"):
            if self._leads_to_device(instruction):
                return False
            self.add("offload-slice", positions.slice_stays(instruction, trail()))
        elif instruction.opcode == "copy":
            if _leaves_host(instruction):
                return False
            if instruction.shape == instruction.operands[0].shape and position != start:
                self.add(
                    "offload-compute",
                    positions.device_compute(instruction, trail()),
                )
        elif instruction.opcode not in PASSES_ON and not _keeps_tiles(instruction):
            if self._runs_on_host(instruction):
                return False
            if self.subject.calls.home[instruction] in self._conditions:
                self.add("offload-condition", positions.used_in_condition(instruction))
                return False
            self.add("offload-compute", positions.device_compute(instruction, trail()))
        self._check_users(instruction)
        return True

    def _update_that_is_copied(
        self, to_device: Instruction, trail: Sequence[Instruction]
    ) -> Instruction | None:
        """The update after which the host copies a whole buffer that is then moved to the device.

        XLA puts its copy to the device behind the update when it follows the first tensor; following the
        next, it takes this copy for one within host memory. With several devices loops are pipelined, and
        their last update is such a next one.
        """
        updates = [i for i in trail if i.opcode == "dynamic-update-slice"]
        if to_device in self._ended:
            return updates[-1] if to_device.operands[0] in updates else None
        entry = self.subject.module.entry
        looped = [i for i in updates if self.subject.calls.home[i] is not entry]
        return looped[-1] if looped and self._is_partitioned else None

    def _runs_on_host(self, instruction: Instruction) -> bool:
        """It belongs to a host computation, which is what the tensor was moved for."""
        computation = self.subject.calls.home[instruction]
        callers = self.subject.calls.callers[computation]
        return computation.execution_thread == _HOST_THREAD or any(
            map(is_host_compute, [instruction, *callers])
        )

    @property
    def _is_partitioned(self) -> bool:
        return self.subject.module.num_partitions > 1

    def _check_users(self, instruction: Instruction) -> None:
        for user in self.subject.users[instruction]:
            if user.opcode == "conditional" and user.operands[0] is instruction:
                self.add("offload-branches", positions.decides(instruction, user))
            if user.custom_call_target in ("X64SplitLow", "X64SplitHigh"):
                self.add("offload-64-bit", positions.halves(user))

    def _leads_to_device(self, slice_: Instruction) -> bool:
        """Every path from the slice ends at a move to the device, with views of the data in between only."""
        queue = deque(self._positions.successors((slice_, ())))
        seen = set(queue)
        while queue:
            position = queue.popleft()
            instruction = position[0]
            if placement(instruction) is Placement.TO_DEVICE:
                self._ended.add(instruction)
                continue
            if not _may_follow_slice(instruction):
                return False
            fresh = [p for p in self._positions.successors(position) if p not in seen]
            seen.update(fresh)
            queue.extend(fresh)
        return True

    def _check_ends(self) -> None:
        """Moves to the device of what is there already."""
        for instruction in self.subject.instructions:
            if placement(instruction) is Placement.TO_DEVICE and instruction not in self._ended:
                self.add("offload-annotation", positions.not_on_host(instruction))


@lru_cache(maxsize=1)
def host_memory(subject: Subject) -> HostMemory:
    """What is in host memory of a program; followed once for all rules that ask."""
    return HostMemory(subject)


def _trail_positions(
    position: Position, came_from: dict[Position, Position | None], before: tuple[Position, ...]
) -> list[Position]:
    """From the origin of the tensor to `position`."""
    trail: list[Position] = []
    current: Position | None = position
    while current is not None:
        trail.append(current)
        current = came_from[current]
    return [*before, *reversed(trail)]


def _runs_on_host(async_start: Instruction) -> bool:
    return async_start.text("async_execution_thread", "main") == _HOST_THREAD


def _keeps_tiles(instruction: Instruction) -> bool:
    """A transpose, which becomes another layout, or a reshape that leaves all data where tiles have it.

    Tiles are of 8 x 128 elements of the last two dimensions; dimensions of size 1 do not count.
    """
    if instruction.opcode != "reshape" or not regroups(instruction):
        return instruction.opcode in ("reshape", "transpose")
    (operand,) = instruction.operands
    before, after = true_dims(operand), true_dims(instruction)
    if operand.opcode == "transpose" or before[-1:] != after[-1:]:
        return False
    return before[-2:] == after[-2:] or all(len(dims) > 1 and dims[-2] % 8 == 0 for dims in (before, after))


def _may_follow_slice(instruction: Instruction) -> bool:
    if instruction.opcode == "reduce":
        return len(true_dims(instruction.operands[0])) == len(true_dims(instruction))
    return instruction.opcode in _AFTER_SLICE | VIEWS


def _leaves_host(copy: Instruction) -> bool:
    """A copy that XLA inserted: from host memory to device memory, by its layouts."""
    is_from_host = memory_space(copy.operands[0].shape) == HOST_MEMORY
    return is_from_host and memory_space(copy.shape) != HOST_MEMORY
