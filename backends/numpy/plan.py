"""Compiled computations as flat lists of steps, their execution, and what kernels may do with memory.

Arguments are checked against the entry's parameters; an exception of a kernel becomes a typed error that
names the instruction.

An operand may be overwritten when nothing else holds its buffer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hlotool.backends.base import Probe, ReadingProbe
from hlotool.backends.numpy.registry import Calling, Executed
from hlotool.errors import BackendCrashed, BackendOutOfMemory, HlotoolError
from hlotool.facts.work import Prices
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import TOKEN

if TYPE_CHECKING:
    from hlotool.backends.numpy.lockstep import Device


#: Seed of the numbers that `rng` draws; every run starts from it.
SEED = 0

#: Initial state of `rng-get-and-update-state`. XLA: rng_bit_generator_expander and the CPU code generator.
INITIAL_RNG_STATE = 0x7012395


class Run:
    """State of one execution on one device.

    Attributes:
        probe: sees the result of every instruction, or None.
        reading: sees what some instructions read, or None.
        device: which of several devices this is and how it meets the others; None for the only one.
        rng_state: 128-bit state of `rng-get-and-update-state`, one per module.
    """

    def __init__(
        self,
        probe: Probe | None = None,
        device: Device | None = None,
        reading: ReadingProbe | None = None,
    ) -> None:
        is_reading = isinstance(probe, ReadingProbe)
        self.reading = probe if isinstance(probe, ReadingProbe) else reading
        self.probe = None if is_reading else probe
        self.device = device
        self.rng_state = INITIAL_RNG_STATE

    @cached_property
    def generator(self) -> np.random.Generator:
        """Source of the numbers of `rng`, in the order of execution."""
        return np.random.Generator(np.random.Philox(SEED))


def failure(instruction: Instruction, error: Exception) -> HlotoolError:
    """The error to raise in place of `error`; one that is typed already stays as it is."""
    if isinstance(error, HlotoolError):
        return error
    if isinstance(error, MemoryError):
        return BackendOutOfMemory("numpy", f"out of memory at {describe(instruction)}: {error}", here=True)
    return BackendCrashed("numpy", f"{type(error).__name__} at {describe(instruction)}: {error}")


def describe(instruction: Instruction) -> str:
    """An instruction as errors name it: `add %sum f32[4] (line 7)`."""
    where = f" (line {instruction.line})" if instruction.line else ""
    return f"{instruction.opcode} %{instruction.name} {instruction.shape}{where}"


@dataclass(slots=True, frozen=True)
class Step:
    """One kernel call.

    Attributes:
        kernel: what to call.
        operands: slots of its arguments.
        result: slot of its result.
        dying: slots that nothing reads after this step.
        instruction: what it executes, for errors and probes.
    """

    kernel: Executed
    operands: tuple[int, ...]
    result: int
    dying: tuple[int, ...]
    instruction: Instruction


#: A step as the interpreter loop reads it; the last item tells a calling kernel.
_Call: TypeAlias = tuple[Callable[..., Any], tuple[int, ...], int, tuple[int, ...], bool]


@dataclass(frozen=True)
class Code:
    """How a computation is executed.

    Attributes:
        steps: in order.
        template: what lies in the slots before a run; arguments take the first ones.
        root: slot of the result.
        unused: slots of arguments that nothing reads.
        calls: the steps, as the interpreter loop reads them.
    """

    steps: Sequence[Step]
    template: list[Any]
    root: int
    unused: Sequence[int]

    @cached_property
    def calls(self) -> list[_Call]:
        """See `Code`."""
        return [
            (s.kernel.function, s.operands, s.result, s.dying, True)
            if isinstance(s.kernel, Calling)
            else (s.kernel, s.operands, s.result, s.dying, False)
            for s in self.steps
        ]

    def slots(self, arguments: list[Any]) -> list[Any]:
        """What lies in the slots when a run begins; takes over the arguments."""
        slots = self.template.copy()
        slots[: len(arguments)] = arguments
        arguments.clear()
        for slot in self.unused:
            slots[slot] = None
        return slots


class Plan:
    """A computation ready to run; call it with a list of arguments, one per parameter.

    Calling takes ownership of the list's values: the list is emptied, so that the values can be freed or
    updated in place as soon as nothing else holds them.

    Attributes:
        computation: what it executes.
        seen: one step per instruction: what runs under the eyes of a probe.
        quick: what runs otherwise, made when it does so first; the same bits.
        instructions: that it executes.
        price: units of work of one execution, apart from loops and branches within it, which count theirs.

    Args:
        make_quick: makes `quick`; without it, that is `seen`.
        called: instructions of other computations that `quick` executes.
    """

    def __init__(
        self,
        computation: Computation,
        seen: Code,
        make_quick: Callable[[], Code] | None = None,
        called: frozenset[Instruction] = frozenset(),
        prices: Prices | None = None,
    ) -> None:
        self.computation = computation
        self.seen = seen
        self.instructions = called.union(step.instruction for step in seen.steps)
        self._make_quick = make_quick or (lambda: seen)
        self._prices = prices or Prices()

    @cached_property
    def quick(self) -> Code:
        """See `Plan`."""
        return self._make_quick()

    @property
    def price(self) -> int:
        """See `Plan`; worked out when it is asked for first."""
        return self._prices.of(self.computation)

    def __call__(self, arguments: list[Any], run: Run | None = None) -> Any:
        run = run or Run()
        if run.probe is not None or (
            run.reading is not None and not run.reading.readers.keys().isdisjoint(self.instructions)
        ):
            return self._run_seen(arguments, run)
        code, result = self.quick, -1
        slots = code.slots(arguments)
        try:
            for kernel, operands, result, dying, calling in code.calls:
                values = [slots[i] for i in operands]
                for i in dying:
                    slots[i] = None
                slots[result] = kernel(values, run) if calling else kernel(*values)
        except HlotoolError:
            raise
        except Exception as error:
            raise failure(_instruction(code.steps, result), error) from error
        return slots[code.root]

    def _run_seen(self, arguments: list[Any], run: Run) -> Any:
        """Step by step, shown to the probe of the run; what dies is the kernel's own all the same."""
        slots = self.seen.slots(arguments)
        probe, readers = run.probe, run.reading.readers if run.reading is not None else {}
        result = -1
        try:
            for step, (kernel, operands, result, dying, calling) in zip(self.seen.steps, self.seen.calls):
                values = [slots[i] for i in operands]
                reader = readers.get(step.instruction)
                after = None if reader is None else reader(values)
                for i in dying:
                    slots[i] = None
                value = slots[result] = kernel(values, run) if calling else kernel(*values)
                if after is not None:
                    after(value)
                if probe is not None:
                    probe(step.instruction, value)
                del value
        except HlotoolError:
            raise
        except Exception as error:
            raise failure(_instruction(self.seen.steps, result), error) from error
        return slots[self.seen.root]


def _instruction(steps: Sequence[Step], result: int) -> Instruction:
    return next(s.instruction for s in steps if s.result == result)


def owned(array: Array, count: int) -> bool:
    """Whether `array` may be overwritten: nothing else refers to it, or to the buffer that it is a view of.

    Args:
        array: the operand, as the kernel's own positional argument.
        count: `sys.getrefcount(array)`, taken by the kernel itself, in a statement of its own (another
            argument of the same call would count as a reference).
    """
    return count <= _exclusive_count() and _is_whole_buffer(array)


def owns_item(values: list[Any], position: int) -> bool:
    """Whether `values[position]` may be overwritten: only this list, which the kernel owns, holds it."""
    return _item_references(values, position) <= _exclusive_item_count() and _is_whole_buffer(
        values[position]
    )


def _is_whole_buffer(array: Array) -> bool:
    """Whether it is writable, and there is no other reference to what it is a view of."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return False
    return array.base is None or _base_references(array) <= _exclusive_base_count()


def _item_references(values: list[Any], position: int) -> int:
    return sys.getrefcount(values[position])


@cache
def _exclusive_item_count() -> int:
    """What `_item_references` says of an array that only the list holds."""
    return _item_references([np.zeros(1)], 0)


def _base_references(view: Array) -> int:
    """How many references there are to what `view` is a view of; many for what is not a plain array."""
    base = view.base
    if not isinstance(base, np.ndarray) or base.base is not None or base.nbytes < view.nbytes:
        return sys.maxsize
    return sys.getrefcount(base)


@cache
def _exclusive_base_count() -> int:
    """What `_base_references` says of a view whose base has no other reference."""
    return _base_references(np.zeros(1).view())


@cache
def _exclusive_count() -> int:
    """What `sys.getrefcount` says in a kernel whose operand has no other reference."""
    seen: list[int] = []

    def make() -> Array:
        return np.zeros(1)

    def look(array: Array) -> Array:
        seen.append(sys.getrefcount(array))
        return array

    source = Instruction("source", "iota", TOKEN)
    sink = Instruction("sink", "copy", TOKEN, (source,))
    steps = [Step(make, (), 0, (), source), Step(look, (0,), 1, (0,), sink)]
    Plan(Computation("probe", [source, sink], sink), Code(steps, [None, None], 1, ()))([])
    return seen[0]
