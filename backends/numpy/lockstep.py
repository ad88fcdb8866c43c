"""Devices that execute the same program in lock-step, one thread each, and which of them meet at a
collective.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.errors import BackendDeadlock, HlotoolError, VerificationError
from hlotool.ir.attributes import Ints
from hlotool.ir.devices import DeviceGrid, device_groups, expand_groups
from hlotool.ir.module import Instruction, Module

#: From what the members hand in, in the order of the group, to the result of each.
Combine: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]


class Stopped(HlotoolError):
    """Raised in a waiting device when the run has failed elsewhere; never leaves the world."""


@dataclass(slots=True, eq=False)
class _Meeting:
    """One execution of a collective by one group."""

    members: Ints
    arrived: dict[int, Any] = field(default_factory=dict)
    results: dict[int, Any] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def missing(self) -> list[int]:
        return [member for member in self.members if member not in self.arrived]


@dataclass(slots=True)
class _Wait:
    """Where a device waits, for whom, and what will wake it."""

    instruction: Instruction
    missing: Callable[[], list[int]]
    event: threading.Event


class World:
    """The devices of one run.

    Attributes:
        grid: how many there are.
        failure: what ended the run early, or None.
    """

    def __init__(self, grid: DeviceGrid) -> None:
        self.grid = grid
        self.failure: BaseException | None = None
        self._lock = threading.Lock()
        self._working = set(range(len(grid)))
        self._waiting: dict[int, _Wait] = {}
        self._meetings: dict[Hashable, _Meeting] = {}
        self._messages: dict[Hashable, Any] = {}
        self._awaited: dict[Hashable, tuple[int, threading.Event]] = {}

    def run(self, body: Callable[[int], Any]) -> list[Any]:
        """`body(device)` on every device at the same time; the results by device.

        Raises:
            BackendDeadlock: the devices that are left wait for each other for ever.
            Exception: the first that a device raised.
        """
        results: list[Any] = [None] * len(self.grid)

        def work(device: int) -> None:
            try:
                results[device] = body(device)
            except BaseException as error:
                self.fail(error)
            finally:
                self._leave(device)

        threads = [threading.Thread(target=work, args=(d,), daemon=True) for d in range(len(self.grid))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:
            self.fail(error)
            raise
        if self.failure is not None:
            raise self.failure
        return results

    def fail(self, error: BaseException) -> None:
        """End the run: wake all who wait. The first error stays."""
        with self._lock:
            self._fail(error)

    def meet(
        self,
        device: int,
        key: Hashable,
        instruction: Instruction,
        members: Ints,
        value: Any,
        combine: Combine,
    ) -> Any:
        """Hand in `value` and take this device's result, once all members have come.

        Args:
            device: who comes.
            key: equal for all members, and different for every other meeting of the run.
            instruction: where the device is in the program.
            members: the group, in the order in which `combine` gets the values.
            value: what it brings.
            combine: computes the results of all members.
        """
        with self._lock:
            self._check()
            meeting = self._meetings.setdefault(key, _Meeting(members))
            meeting.arrived[device] = value
            del value
            is_last = len(meeting.arrived) == len(members)
            if not is_last:
                self._wait(device, _Wait(instruction, lambda: meeting.missing, meeting.over))
        if is_last:
            self._conclude(key, meeting, combine)
        else:
            self._sleep(meeting.over)
        return meeting.results.pop(device)

    def _conclude(self, key: Hashable, meeting: _Meeting, combine: Combine) -> None:
        """Compute outside the lock: other groups go on meanwhile."""
        values = [meeting.arrived.pop(member) for member in meeting.members]
        results = combine(values)
        values.clear()
        with self._lock:
            meeting.results.update(zip(meeting.members, results))
            del self._meetings[key]
            for member in meeting.members:
                self._resume(member)
        meeting.over.set()

    def post(self, key: Hashable, value: Any) -> None:
        """Leave `value` for the device that takes `key`; it does not wait. Each key is used once."""
        with self._lock:
            self._check()
            self._messages[key] = value
            waiting = self._awaited.pop(key, None)
            if waiting is not None:
                device, arrived = waiting
                self._resume(device)
                arrived.set()

    def take(self, device: int, key: Hashable, instruction: Instruction, sender: int) -> Any:
        """What `sender` posts with `key`; waits for it."""
        arrived = threading.Event()
        with self._lock:
            self._check()
            if key in self._messages:
                return self._messages.pop(key)
            self._awaited[key] = device, arrived
            self._wait(device, _Wait(instruction, lambda: [sender], arrived))
        self._sleep(arrived)
        with self._lock:
            return self._messages.pop(key)

    # The methods below are called with the lock held, except `_sleep` and `_leave`.

    def _check(self) -> None:
        if self.failure is not None:
            raise Stopped

    def _wait(self, device: int, wait: _Wait) -> None:
        self._waiting[device] = wait
        self._working.discard(device)
        self._check_progress()

    def _resume(self, device: int) -> None:
        if self._waiting.pop(device, None) is not None:
            self._working.add(device)

    def _sleep(self, event: threading.Event) -> None:
        event.wait()
        if self.failure is not None:
            raise Stopped

    def _leave(self, device: int) -> None:
        with self._lock:
            self._working.discard(device)
            self._check_progress()

    def _check_progress(self) -> None:
        if self._waiting and not self._working and self.failure is None:
            self._fail(BackendDeadlock("numpy", self._who_waits()))

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        for wait in self._waiting.values():
            wait.event.set()

    def _who_waits(self) -> str:
        """One clause for each instruction at which devices wait."""
        places: dict[Instruction, list[int]] = {}
        for device, wait in sorted(self._waiting.items()):
            places.setdefault(wait.instruction, []).append(device)
        clauses = [_clause(i, devices, self._missing(devices)) for i, devices in places.items()]
        return "the devices wait for each other for ever: " + "; ".join(clauses)

    def _missing(self, devices: list[int]) -> list[str]:
        missing = sorted({other for device in devices for other in self._waiting[device].missing()})
        return [str(d) if d in self._waiting else f"{d} (which has ended)" for d in missing]


def _clause(instruction: Instruction, devices: list[int], missing: list[str]) -> str:
    line = f" (line {instruction.line})" if instruction.line else ""
    who = ", ".join(map(str, devices))
    verb = "waits" if len(devices) == 1 else "wait"
    place = f"{instruction.opcode} %{instruction.name}{line}"
    return f"{who} {verb} at {place} for {', '.join(missing)}"


class Device:
    """One device of a world, as the kernels that it executes see it.

    Attributes:
        world: all devices.
        number: replica * partitions + partition.
        replica: its replica id.
        partition: its partition id.
    """

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.replica, self.partition = world.grid.position(number)
        self._counts: dict[Hashable, int] = {}
        self._expected: list[tuple[Hashable, int] | None] = []

    def count(self, key: Hashable) -> int:
        """How often this was called with `key`, this time included."""
        self._counts[key] = count = self._counts.get(key, 0) + 1
        return count

    def meet(self, instruction: Instruction, members: Ints, value: Any, combine: Combine) -> Any:
        """Execute a collective with `members`; all meet for the n-th time when each comes the n-th time."""
        key = instruction, self.count(instruction), members
        return self.world.meet(self.number, key, instruction, members, value, combine)

    def send(self, channel: int, target: int, value: Any) -> None:
        """Send `value` to a device, which gets it with its n-th receipt when this is the n-th dispatch."""
        path = channel, self.number, target
        self.world.post((path, self.count(path)), value)

    def expect(self, channel: int, sender: int | None) -> int:
        """Start to receive from a device, or from none; the handle that `receive` takes."""
        path = channel, sender, self.number
        self._expected.append(None if sender is None else ((path, self.count(path)), sender))
        return len(self._expected) - 1

    def receive(self, handle: int, instruction: Instruction) -> Any:
        """The value of an expected transfer, None when no device sends one."""
        expected = self._expected[handle]
        if expected is None:
            return None
        key, sender = expected
        return self.world.take(self.number, key, instruction, sender)


#: From the operands of every member, in the order of the group, to the result of each.
Exchange: TypeAlias = Callable[[Sequence[tuple[Any, ...]]], Sequence[Any]]


def group_of_each(instruction: Instruction, lowering: Lowering) -> dict[int, Ints]:
    """The group of every device that is in one.

    Raises:
        Unsupported: one device is executed, and the collective is between several.
        VerificationError: malformed groups.
    """
    if len(lowering.grid) == 1:
        _check_alone(instruction, lowering)
        return {0: (0,)}
    groups = device_groups(instruction, lowering.grid)
    return {device: group for group in groups for device in group}


def collective(instruction: Instruction, lowering: Lowering, exchange: Exchange) -> Kernel:
    """The kernel of a collective in which every device is in a group; one that is alone does not wait.

    Raises:
        VerificationError: a device is in no group, or malformed groups.
        Unsupported: see `group_of_each`.
    """
    groups = group_of_each(instruction, lowering)
    outside = [d for d in range(len(lowering.grid)) if d not in groups]
    if outside:
        raise VerificationError(
            "replica-groups",
            f"{instruction.opcode}: device {outside[0]} is in no group",
            instruction.name,
            lowering.module.location(instruction),
        )
    if all(len(group) == 1 for group in groups.values()):
        return lambda *operands: exchange([operands])[0]

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        operands = tuple(values)
        values.clear()
        return device.meet(instruction, groups[device.number], operands, exchange)

    return Calling(kernel)


def this_device(run: Run) -> Device:
    """The device that a run is on, where there are several."""
    if run.device is None:
        raise RuntimeError("a program for several devices runs without any")
    return run.device


def check_single_device(instruction: Instruction, lowering: Lowering) -> None:
    """Where one device is executed: accept a module that was compiled for one.

    Raises:
        Unsupported: naming the module attribute that asks for more.
    """
    several = _several_devices(lowering.module)
    if several and len(lowering.grid) == 1:
        raise lowering.unsupported(instruction, f"the module has {several}; one device is executed")


def _check_alone(instruction: Instruction, lowering: Lowering) -> None:
    """Accept a collective whose every group has one member."""
    size = max(map(len, expand_groups(instruction.replica_groups)), default=0)
    if size == 0:
        check_single_device(instruction, lowering)
    elif size > 1:
        raise lowering.unsupported(
            instruction, f"replica_groups of {size} participants; one device is executed"
        )


def _several_devices(module: Module) -> str:
    """The module attribute that asks for more than one device, or nothing."""
    counts = {"num_partitions": module.num_partitions, "replica_count": module.replica_count}
    return ", ".join(f"{name}={count}" for name, count in counts.items() if count > 1)
