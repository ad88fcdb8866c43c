"""Updates of slices in host memory: which memory both are in, and what of a buffer is never written.

XLA: host_offloader.cc, HandleDynamicUpdateSlices and CreateAllocateBufferForDynamicUpdateSlice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hlotool.checks.offload import positions as messages
from hlotool.checks.offload.positions import PASSES_ON, Placement, Position, Positions, placement
from hlotool.checks.rules import Problem, Subject
from hlotool.facts.trip_counts import trip_count
from hlotool.ir.module import Instruction

if TYPE_CHECKING:
    from hlotool.checks.offload.walk import HostMemory


def check_updates(memory: HostMemory, positions: Positions, updates: Mapping[Instruction, bool]) -> None:
    """Judge every update that host memory has to do with.

    Args:
        memory: gets the problems, and the buffers that are in host memory because of updates.
        positions: of the program.
        updates: each with whether its update was moved to the host just before.
    """
    allocated: set[Instruction] = set()
    for update, is_annotated in updates.items():
        buffer_on_host = (update.operands[0], ()) in memory.host
        value_on_host = (update.operands[1], ()) in memory.host
        if value_on_host:
            where = "host" if buffer_on_host else "device"
            memory.add("offload-compute", _host_update(update, where))
        if buffer_on_host:
            memory.host.add((update, ()))
        elif is_annotated and not value_on_host and update not in allocated:
            _allocate(memory, positions, update, allocated)
    _check_all_is_written(memory, positions, updates)


def _check_all_is_written(memory: HostMemory, positions: Positions, updates: Iterable[Instruction]) -> None:
    """What begins as a broadcast on the device begins as anything on the host: all of it is to be written,
    unless it is read by slices alone, which may be those that are.
    """
    histories = {update: positions.history((update, ())) for update in updates}
    for update, history in histories.items():
        is_last = not any(update in other for later, other in histories.items() if later not in history)
        if not is_last or memory.begun_as_broadcast.isdisjoint(history):
            continue
        if not _is_read_whole(positions, update):
            continue
        if share := unwritten_share(memory.subject, history):
            memory.add("offload-lost-rows", _lost(update, share))


def _is_read_whole(positions: Positions, update: Instruction) -> bool:
    """Whether all of the buffer gets back to the device, or out of the program."""
    seen: set[Position] = {(update, ())}
    waiting: list[Position] = [(update, ())]
    while waiting:
        position = waiting.pop()
        if placement(position[0]) is Placement.TO_DEVICE or positions.is_entry_root(position[0]):
            return True
        for after in positions.successors(position):
            if after[0].opcode not in ("dynamic-slice", "slice") and after not in seen:
                seen.add(after)
                waiting.append(after)
    return False


def _allocate(
    memory: HostMemory, positions: Positions, update: Instruction, allocated: set[Instruction]
) -> None:
    """The buffer must begin as a broadcast, which XLA replaces by memory on the host."""
    queue: deque[tuple[Position, Position | None]] = deque([((update, ()), None)])
    seen: set[Position] = {(update, ())}
    found = False
    while queue:
        position, after = queue.popleft()
        instruction = position[0]
        memory.host.add(position)
        if instruction.opcode == "parameter":
            if memory.subject.calls.home[instruction] is memory.subject.module.entry:
                _check_parameter(memory, position)
                return
            _check_condition(memory, positions, position)
        elif instruction.opcode == "dynamic-update-slice":
            allocated.add(instruction)
        elif instruction.custom_call_target == "AllocateBuffer":
            _check_shared_buffer(memory, positions, position, after)
            return
        before = positions.predecessors(position)
        if before is None:
            return  # it is computed, and copied to the host
        for predecessor in before:
            if predecessor[0].opcode == "broadcast":
                found = True
                memory.host.add(predecessor)
            elif predecessor not in seen:
                seen.add(predecessor)
                queue.append((predecessor, position))
    if not found:
        memory.add("offload-update", _no_broadcast(update))
    else:
        memory.begun_as_broadcast.add(update)


def _check_parameter(memory: HostMemory, position: Position) -> None:
    """A buffer from outside is to come in host memory."""
    parameter, index = position
    layout = memory.subject.module.entry_layout.parameters[parameter.parameter_number or 0]
    if messages.memory_space(layout, index) != messages.HOST_MEMORY:
        at = "{" + ",".join(map(str, index)) + "}"
        memory.add(
            "offload-update",
            Problem(
                f'Entry computation parameter "{parameter.name}" (shape index {at}) is not in host memory '
                "space.",
                parameter,
                remedy="give the argument memory kind `pinned_host`, or begin the buffer with jnp.zeros",
            ),
        )


def _check_condition(memory: HostMemory, positions: Positions, position: Position) -> None:
    """A loop's condition must do nothing with the buffer."""
    parameter, index = position
    for caller in memory.subject.calls.callers[memory.subject.calls.home[parameter]]:
        if caller.opcode != "while":
            continue
        condition = caller.computation("condition")
        queue: deque[Position] = deque([(condition.parameters[0], index)])
        while queue:
            current = queue.popleft()
            if current[0].opcode not in PASSES_ON:
                memory.add("offload-condition", messages.used_in_condition(current[0]))
                continue
            memory.host.add(current)
            if memory.subject.calls.home[current[0]] is condition:
                queue.extend(p for p in positions.successors(current) if p not in memory.host)


def _check_shared_buffer(
    memory: HostMemory, positions: Positions, position: Position, after: Position | None
) -> None:
    """A buffer with users on the device is doubled, which XLA cannot do for one that is passed twice."""
    is_shared = any(successor not in memory.host for successor in positions.successors(position))
    if after is None or not is_shared or after[0].opcode == "tuple":
        return
    if sum(operand is position[0] for operand in after[0].operands) > 1:
        memory.add(
            "offload-update",
            Problem(
                "We do not yet support adjusting AllocateBuffer when it appears in multiple operand indices "
                "unless in a tuple.",
                after[0],
            ),
        )


def _host_update(update: Instruction, where: str) -> Problem:
    return Problem(
        f"the update of %{update.name} is in host memory and its buffer in {where} memory: the host does it",
        update,
        remedy="move the update to the device before it is written",
    )


def _no_broadcast(update: Instruction) -> Problem:
    return Problem(
        f'DynamicUpdateSlice "{update.name}"\'s first operand is not the result of a broadcast.',
        update,
        remedy="begin the buffer as a broadcast of a constant (jnp.zeros) in the same program",
    )


def _lost(update: Instruction, share: float) -> Problem:
    return Problem(
        f"{share:.0%} of the buffer of %{update.name} is never written: offloaded, the broadcast that it "
        "begins as becomes memory that nothing has initialised, and these elements are lost",
        update,
        details=["a fault of the TPU's compiler, measured: libtpu 0.0.42 and 0.0.52"],
        remedy="write every element of it, or build the buffer on the device and move all of it to the host",
    )


# How much of a buffer that begins as a broadcast no update ever writes, as far as the program says it.

#: Elements of the largest buffer whose written parts are marked one by one.
_MOST = 1 << 24


def unwritten_share(subject: Subject, chain: Iterable[Instruction]) -> float:
    """The share of a buffer's elements that no update of it writes; 0 where that is not known.

    Known are updates at constant places, and those in a loop of a known number of rounds, which write one
    place in each round at most.

    Args:
        subject: the program.
        chain: what the buffer goes through, updates and what hands it on.
    """
    updates = [i for i in chain if i.opcode == "dynamic-update-slice"]
    rounds = [_rounds(subject, update) for update in updates]
    if not updates or any(n is None for n in rounds):
        return 0.0
    dims = updates[0].array_shape.dims
    total = prod(dims)
    if any(u.array_shape.dims != dims for u in updates) or not total:
        return 0.0
    written = 0
    fixed: list[tuple[slice, ...]] = []
    for update, count in zip(updates, rounds):
        place = _place(update)
        if place is None:
            written += (count or 0) * update.operands[1].array_shape.size
        else:
            fixed.append(place)
    if fixed and total <= _MOST:
        marks = np.zeros(dims, bool)
        for place in fixed:
            marks[place] = True
        written += int(marks.sum())
    elif fixed:
        written += sum(prod(s.stop - s.start for s in place) for place in fixed)
    return max(0, total - written) / total


def _rounds(subject: Subject, update: Instruction) -> int | None:
    """How often an update is executed at most; None where nothing says so."""
    count = 1
    computation = subject.calls.home[update]
    while callers := subject.calls.callers[computation]:
        if len(callers) > 1:
            return None
        (caller,) = callers
        if caller.opcode == "while":
            trips = trip_count(caller)
            if trips is None:
                return None
            count *= trips
        elif caller.opcode not in ("call", "conditional"):
            return None
        computation = subject.calls.home[caller]
    return count


def _place(update: Instruction) -> tuple[slice, ...] | None:
    """What an update writes at constant indices, clamped as HLO clamps them; None at others."""
    starts = [_constant(index) for index in update.operands[2:]]
    dims, sizes = update.array_shape.dims, update.operands[1].array_shape.dims
    if any(start is None for start in starts) or len(starts) != len(dims):
        return None
    clamped = [min(max(start or 0, 0), d - s) for start, d, s in zip(starts, dims, sizes)]
    return tuple(slice(start, start + size) for start, size in zip(clamped, sizes))


def _constant(index: Instruction) -> int | None:
    literal = index.literal if index.opcode == "constant" else None
    return int(literal.value) if literal is not None and isinstance(literal.value, np.ndarray) else None
