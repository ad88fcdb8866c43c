"""Compiled computations as flat lists of steps over numbered slots, and one execution of such a plan.

Arguments are checked against the entry's parameters; an exception of a kernel becomes a typed error that
names the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.base import Probe, ReadingProbe
from hlotool.backends.numpy.registry import Calling, Executed
from hlotool.errors import BackendCrashed, BackendOutOfMemory, HlotoolError
from hlotool.facts.work import Prices
from hlotool.ir.module import Computation, Instruction

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


class Plan:
    """A computation ready to run; call it with a list of arguments, one per parameter.

    Calling takes ownership of the list's values: the list is emptied, so that the values can be freed or
    updated in place as soon as nothing else holds them.

    Attributes:
        computation: what it executes.
        steps: one per instruction: what runs under the eyes of a probe.
        fused: what runs otherwise; the same bits, quicker.
        root: slot of the result.
        unused: slots of arguments that nothing reads.
        instructions: that `steps` execute.
        price: units of work of one execution, apart from loops and branches within it, which count theirs.
    """

    __slots__ = (
        *("_code", "_prices", "_seen_code", "_template"),
        *("computation", "fused", "instructions", "root", "steps", "unused"),
    )

    def __init__(
        self,
        computation: Computation,
        steps: Sequence[Step],
        template: list[Any],
        root: int,
        unused: Sequence[int],
        fused: Sequence[Step] | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.computation = computation
        self.steps = tuple(steps)
        self.fused = tuple(fused) if fused is not None else self.steps
        self.root = root
        self.unused = tuple(unused)
        self.instructions = frozenset(step.instruction for step in self.steps)
        self._template = template
        self._prices = prices or Prices()
        self._seen_code = [_code(step) for step in self.steps]
        self._code = [_code(step) for step in self.fused] if fused is not None else self._seen_code

    @property
    def price(self) -> int:
        """See `Plan`; worked out when it is asked for first."""
        return self._prices.of(self.computation)

    def __call__(self, arguments: list[Any], run: Run | None = None) -> Any:
        run = run or Run()
        slots = self._template.copy()
        slots[: len(arguments)] = arguments
        arguments.clear()
        for slot in self.unused:
            slots[slot] = None
        if run.probe is not None or (
            run.reading is not None and not run.reading.readers.keys().isdisjoint(self.instructions)
        ):
            return self._run_seen(slots, run)
        result = -1
        try:
            for kernel, operands, result, dying, calling in self._code:
                values = [slots[i] for i in operands]
                for i in dying:
                    slots[i] = None
                slots[result] = kernel(values, run) if calling else kernel(*values)
        except HlotoolError:
            raise
        except Exception as error:
            raise failure(_instruction(self.fused, result), error) from error
        return slots[self.root]

    def _run_seen(self, slots: list[Any], run: Run) -> Any:
        """Step by step, shown to the probe of the run; what dies is the kernel's own all the same."""
        probe, readers = run.probe, run.reading.readers if run.reading is not None else {}
        result = -1
        try:
            for step, (kernel, operands, result, dying, calling) in zip(self.steps, self._seen_code):
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
            raise failure(_instruction(self.steps, result), error) from error
        return slots[self.root]


def _instruction(steps: Sequence[Step], result: int) -> Instruction:
    return next(s.instruction for s in steps if s.result == result)


def _code(step: Step) -> tuple[Callable[..., Any], tuple[int, ...], int, tuple[int, ...], bool]:
    """The step as the interpreter loop reads it; the last item tells a calling kernel."""
    calling = isinstance(step.kernel, Calling)
    function = step.kernel.function if isinstance(step.kernel, Calling) else step.kernel
    return function, step.operands, step.result, step.dying, calling
