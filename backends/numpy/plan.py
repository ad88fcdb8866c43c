"""Compiled computations: flat lists of steps over numbered slots.

A step reads its operands' slots, frees those that die here *before* the kernel runs, and fills its own slot.
Freeing first lets a kernel see that it owns an operand (see `ownership`) and update it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlotool.analysis.work import Prices
from hlotool.backends.numpy.failures import failure
from hlotool.backends.numpy.registry import Calling, Executed
from hlotool.backends.numpy.run import Run
from hlotool.errors import HlotoolError
from hlotool.ir.module import Computation, Instruction


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
