"""Instructions after which threads go on elsewhere, or wait (PTX ISA, "Control Flow Instructions", "bar")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.gpu_ptx.arena import AccessFault
from hlotool.backends.gpu_ptx.lowering import Site
from hlotool.backends.gpu_ptx.model import Instruction, Kernel, Symbol, Target, Vector
from hlotool.backends.gpu_ptx.transactions import BARRIER_BYTES
from hlotool.backends.gpu_ptx.types import Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

U32 = type_of("u32")


class Control(ABC):
    """What decides where threads go on."""

    @abstractmethod
    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        """The instruction at which all active threads go on, or -1: the machine knows where each of them
        does.

        Args:
            place: the instruction itself.
            holds: which of the active threads execute it; None: all.
        """


class Branch(Control):
    """`bra`."""

    def __init__(self, target: int) -> None:
        self.target = target

    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        if holds is None:
            return self.target
        return machine.part(holds, self.target, place + 1)


class BranchTable(Control):
    """`brx.idx`: to the label at an index."""

    def __init__(self, site: Site) -> None:
        targets = site.operands[1]
        assert isinstance(targets, Vector)
        self.targets = np.array(
            [part.index for part in targets.elements if isinstance(part, Target)], np.int64
        )
        self.index = site.read(0, U32)

    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        if holds is not None and not holds.all():
            raise AccessFault("barrier", "a branch by index under a predicate is not executed")
        index = machine.spread(self.index(machine))
        if (index >= len(self.targets)).any():
            raise AccessFault(
                "bounds", "branches beyond its table", int(np.argmax(index >= len(self.targets)))
            )
        goals = self.targets[index]
        threads = machine.active_threads
        for goal in np.unique(goals):
            machine.push(threads[goals == goal], int(goal))
        return -1


class Exit(Control):
    """`ret` of a kernel, and `exit`."""

    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        threads = machine.active_threads
        if holds is not None and not holds.all():
            if not holds.any():
                return place + 1
            machine.push(threads[~machine.spread(holds)], place + 1)
            threads = threads[machine.spread(holds)]
        machine.barriers.exited(threads)
        return -1


class Stop(Control):
    """`trap`, and a failed assertion: the kernel dies."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.message = kind, message

    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        if holds is None:
            raise AccessFault(self.kind, self.message)
        if holds.any():
            raise AccessFault(self.kind, self.message, int(np.argmax(holds)) if holds.ndim else 0)
        return place + 1


class Barrier(Control):
    """`bar.sync`, `bar.arrive`, `bar.red` and the same of `barrier`; ids and counts may be computed."""

    def __init__(self, site: Site) -> None:
        words = site.accept("cta", "sync", "arrive", "red", "popc", "and", "or", "aligned")
        self.waits = "arrive" not in words
        self.combine = next((word for word in words if word in ("popc", "and", "or")), None)
        operands = list(site.operands)
        self.write: Any = None
        self.predicate: Any = None
        if "red" in words:
            self.write = site.writer(operands.pop(0), U32 if self.combine == "popc" else type_of("pred"))
            self.predicate = site.reader(operands.pop(), type_of("pred"))
        self.number = site.reader(operands[0], U32)
        self.threads = site.reader(operands[1], U32) if len(operands) > 1 else None
        if not self.waits and self.threads is None:
            raise site.unsupported("it needs a number of threads")

    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        if holds is not None and not holds.all():
            if not holds.any():
                return place + 1
            threads = machine.active_threads
            machine.push(threads[~machine.spread(holds)], place + 1)
            machine.active = threads[machine.spread(holds)]
        return machine.barriers.arrive(self, place)


class TryWait(Control):
    """`mbarrier.try_wait.parity`: threads go on when the phase is complete, and the answer is that it is."""

    def __init__(self, site: Site) -> None:
        site.accept("try_wait", "parity", "b64", "acquire", "cta", "shared", "shared::cta")
        if not site.instruction.has("parity"):
            raise site.unsupported("a phase by its state")
        self.write = site.write(0, type_of("pred"))
        self.address = site.address(site.operands[1])
        self.parity = site.read(2, U32)

    def go(self, machine: Machine, place: int, holds: Values | None) -> int:
        if holds is not None and not holds.all():
            raise AccessFault("barrier", "a wait under a predicate is not executed")
        self.write(machine, np.full(machine.active_count, True))
        threads = machine.active_threads
        where, parity = (machine.spread(read(machine)) for read in (self.address, self.parity))
        machine.races.reads(machine.locate("shared", where, BARRIER_BYTES)[1], BARRIER_BYTES)
        keys = np.stack([machine.block[threads], where, parity.astype(np.int64)], axis=1)
        over = np.zeros(len(threads), np.bool_)
        for key in np.unique(keys, axis=0):
            same = (keys == key).all(axis=1)
            over[same] = machine.transactions.wait(int(key[1]), threads[same], int(key[2]))
        if over.all():
            return place + 1
        if over.any():
            machine.push(threads[over], place + 1)
        return -1


def control_of(kernel: Kernel, instruction: Instruction) -> Control | None:
    """The control instruction that this is, or None."""
    site = Site(kernel, instruction)
    opcode = instruction.opcode
    if opcode == "bra":
        site.accept("uni")
        target = instruction.operands[0]
        assert isinstance(target, Target)
        return Branch(target.index)
    if opcode == "brx":
        site.accept("idx", "uni")
        return BranchTable(site)
    if opcode in ("ret", "exit"):
        site.accept("uni")
        return Exit()
    if opcode == "mbarrier" and instruction.has("try_wait"):
        return TryWait(site)
    if opcode == "trap":
        return Stop("trap", "trap is executed")
    if opcode == "call" and _called(instruction) == "__assertfail":
        return Stop("assert", "an assertion of the kernel fails")
    if opcode in ("bar", "barrier") and not instruction.has("warp") and not instruction.has("cluster"):
        return Barrier(site)
    return None


def _called(instruction: Instruction) -> str:
    """The function that a call names."""
    return next((part.name for part in instruction.operands if isinstance(part, Symbol)), "")
