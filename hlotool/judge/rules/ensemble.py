"""Legal executions of one program on one set of arguments, drawn as they are needed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.base import Backend, Probe, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.noise import Member
from hlotool.backends.numpy.executions.policy import Policy
from hlotool.backends.numpy.executions.rounding_errors import has_default_precision
from hlotool.backends.numpy.executions.sums import STEPS, has_long_sums, has_narrow_sums
from hlotool.backends.numpy.executions.varied import VariedBackend
from hlotool.errors import Unsupported
from hlotool.facts import thresholds
from hlotool.facts.flow import INLINED, CallGraph
from hlotool.facts.result_facts import does_arithmetic
from hlotool.facts.retyping import Precision
from hlotool.ir.arrays import Array, flatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Shape
from hlotool.judge.rules.instructions import feeds_products_only
from hlotool.judge.rules.judgement import Side
from hlotool.judge.rules.products import contractions, other_orders
from hlotool.system.resources import UNITS_PER_SECOND, extended, seconds_starved, work_done

#: Members in f64 so far, what chooses the next one, and what executes it.
_WideRuns: TypeAlias = tuple[list[list[Array]], VariedBackend, Callable[[], Value]]

#: How likely results of narrow types stay in f32, by member.
KEEPS = (0.0, 1.0, 0.5)
#: Every so many members flush denormal numbers.
_FLUSHES = 4


class OutOfTime(Unsupported):
    """There is no time for another execution, or it is too much work; nothing is wrong with the program."""


class Clock:
    """Says whether there is time for another execution, and whether it is worth the work.

    As for a whole process (`system.process`) seconds in which no processor was free do not count.

    Args:
        deadline: in `time.monotonic`.
        work: units of work from now on.
    """

    def __init__(self, deadline: float = math.inf, work: float = math.inf) -> None:
        self._began, self._deadline = time.monotonic(), deadline
        self._starved: float | None = None
        self._end = work_done() + work
        self._slowest = 0.0
        self._largest = 0

    @property
    def work_left(self) -> float:
        """Units of work that may still be spent."""
        return self._end - work_done()

    def timed(self, run: Callable[[], Value]) -> Value:
        """What `run` returns.

        Raises:
            OutOfTime: it would not end before the deadline, or be too much work, as far as those before
                tell.
        """
        if self._largest >= self.work_left:
            largest = self._largest / UNITS_PER_SECOND
            raise OutOfTime(f"another execution is work for about {largest:.2g} s, too much for the budget")
        if self._starved is None:
            self._starved = seconds_starved(os.getpid())
        began, before = time.monotonic(), work_done()
        if began + self._slowest > self._deadline and began + self._slowest > self._put_off(self._starved):
            raise OutOfTime(f"another execution takes {self._slowest:.3g} s, and the time limit is near")
        value = run()
        self._slowest = max(self._slowest, time.monotonic() - began)
        self._largest = max(self._largest, work_done() - before)
        return value

    def _put_off(self, starved: float) -> float:
        """The deadline, moved on by the seconds in which the process starved since it was `starved`."""
        starved = seconds_starved(os.getpid()) - starved
        return self._began + extended(self._deadline - self._began, starved)


class Ensemble:
    """Executions of one side; each is run once.

    Args:
        side: what is executed.
        seed: of all random numbers.
        scale: multiplies every error.
        clock: how long executions may go on.
        product_unit: of the hardware that gave the result (`Policy.product_unit`).
        asked: to which bits executions in f64 reduce precision, too (`Policy.asked`).
        keeps: how likely results of narrow types stay in f32, by member.
        f64_unit: of the hardware, likewise (`Policy.f64_unit`).

    Attributes:
        side: likewise.
        clock: likewise; of another judgement that draws on the same executions another one.
        product_unit: likewise.
        f64_unit: likewise.
    """

    def __init__(
        self,
        side: Side,
        seed: int,
        scale: float = 1.0,
        clock: Clock | None = None,
        product_unit: float = 0.0,
        asked: frozenset[Precision] = frozenset(),
        keeps: Sequence[float] = KEEPS,
        f64_unit: float = 0.0,
    ) -> None:
        self.side = side
        self.product_unit = product_unit
        self.f64_unit = f64_unit
        self._policy = Policy(varied=True, product_unit=product_unit, f64_unit=f64_unit)
        self._asked = asked
        self._keeps = keeps
        self.clock = clock or Clock()
        self._seed = seed
        self._scale = scale
        self._members: list[list[Array]] = []
        self._wide: dict[frozenset[Instruction], _WideRuns] = {}
        self._overflows: dict[bool, Instruction | None] = {}

    def members(self, count: int) -> list[list[Array]]:
        """The leaves of the first `count` members, computed in the declared types."""
        while len(self._members) < count:
            backend, run = self._declared
            backend.noise.member = self.member(len(self._members))
            self._members.append(self.executed(run))
        return self._members[:count]

    @cached_property
    def plain(self) -> list[Array]:
        """The leaves in the declared types, nothing perturbed."""
        return self.executed(lambda: self.side.execute(self._plain(wide=False))())

    @cached_property
    def shadow(self) -> list[Array]:
        """The leaves in f64, nothing perturbed."""
        return self.executed(lambda: self.side.execute(self._plain(wide=True))())

    def watch(self, number: int, probe: Probe) -> bool:
        """Run a member under a probe; False where that is not possible."""
        if self.side.watch is None:
            return False
        backend, _ = self._declared
        backend.noise.member = self.member(number)
        self.side.watch(backend, probe)
        return True

    def overflow(self, wide: bool = False) -> Instruction | None:
        """The first instruction that overflows in the declared types (or in f64); raises as `Clock.timed`."""
        if wide not in self._overflows:
            finder = OverflowFinder(self.side.module)
            self.watch_plainly(finder, wide)
            self._overflows[wide] = finder.found
        return self._overflows[wide]

    @cached_property
    def meets_special_values(self) -> bool:
        """Whether an argument or a value on the way is NaN or infinite, as far as that can be seen."""
        found: list[Instruction] = []

        def probe(instruction: Instruction, value: Value) -> None:
            is_array = isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc"
            if not found and is_array and not np.isfinite(np.asarray(value)).all():
                found.append(instruction)

        self.watch_plainly(probe)
        return bool(found) or self.side.watch is None

    def watch_plainly(self, probe: Probe, wide: bool = False) -> None:
        """Run the program as it is (or in f64) under a probe, if it can be; raises as `Clock.timed`."""
        watch = self.side.watch
        if watch is not None:
            self.clock.timed(lambda: watch(self._plain(wide), probe))

    @cached_property
    def other_orders(self) -> list[list[Array]]:
        """The leaves with the factors of all products in other orders; none where there are no products."""
        backends = other_orders(self.side.module)
        return [self.executed(self.side.execute(backend)) for backend in backends]

    @cached_property
    def contractions(self) -> list[list[Array]]:
        """The leaves with products contracted into sums; none where there is nothing to contract."""
        return [self.executed(self.side.execute(backend)) for backend in contractions(self.side.module)]

    @cached_property
    def sums_in_turn(self) -> list[list[Array]]:
        """The leaves with the terms of long sums added in turn; none where there are no such sums."""
        if not has_long_sums(self.side.module):
            return []
        backend, run = self._declared
        found = []
        for step in STEPS:
            backend.noise.member = Member(in_turn=step)
            found.append(self.executed(run))
        return found

    @cached_property
    def narrow_sums_in_turn(self) -> list[list[Array]]:
        """The leaves of members that add the terms of sums one by one and round narrow sums every time.

        The first one is not perturbed. XLA:CPU computes so. None where there are no such sums.
        """
        if not has_narrow_sums(self.side.module):
            return []
        backend, run = self._declared
        members = [Member(), *map(self.member, range(int(thresholds.FIRST_MEMBERS.value)))]
        found = []
        for member in members:
            backend.noise.member = replace(member, in_turn=1, narrow=True)
            found.append(self.executed(run))
        return found

    def wide_members(self, count: int, uncertain: frozenset[Instruction]) -> list[list[Array]]:
        """Leaves in f64, with `uncertain` values rounded anew in their declared types.

        Members come in pairs with opposite errors: a tie that one error decides goes the other way in one
        of the two.
        """
        known, backend, run = self._wide_runs(uncertain)
        for number in range(len(known), count):
            scale = self._scale if number % 2 == 0 else -self._scale
            backend.noise.member = Member(self._seed_of(number // 2), scale=scale, signs=_signs(number))
            known.append(self.executed(run))
        return known[:count]

    def for_output(self, number: int) -> Ensemble | None:
        """Executions of what the side does for one output; None as `Side.for_output`."""
        side = self.side.for_output(number)
        if side is None:
            return None
        units = self.product_unit, self._asked, self._keeps, self.f64_unit
        return Ensemble(side, self._seed, self._scale, self.clock, *units)

    def _factors(self, uncertain: frozenset[Instruction]) -> frozenset[Instruction]:
        """The constants that nothing but products of open precision reads: compilers fold their rounding."""
        constants = (i for i in uncertain if i.opcode == "constant")
        module = self.side.module
        return frozenset(i for i in constants if feeds_products_only(module, i, has_default_precision))

    def _wide_runs(self, uncertain: frozenset[Instruction]) -> _WideRuns:
        if uncertain not in self._wide:
            factors = self._factors(uncertain) if self.product_unit else frozenset()
            policy = Policy(
                wide=True,
                varied=True,
                uncertain=uncertain,
                asked=self._asked,
                factors=factors,
                product_unit=self.product_unit if factors else 0.0,
                f64_unit=self.f64_unit,
            )
            backend = VariedBackend(policy, keeps_wide=True)
            self._wide[uncertain] = [], backend, self.side.execute(backend)
        return self._wide[uncertain]

    @cached_property
    def _declared(self) -> tuple[VariedBackend, Callable[[], Value]]:
        backend = VariedBackend(self._policy)
        return backend, self.side.execute(backend)

    def member(self, number: int) -> Member:
        """What is special about one execution."""
        keeps = self._keeps[number % len(self._keeps)]
        flushes = number % _FLUSHES == _FLUSHES - 1
        return Member(self._seed_of(number), keeps, flushes, self._scale, _signs(number))

    def _seed_of(self, number: int) -> int:
        return hash((self._seed, number))

    def _plain(self, wide: bool) -> Backend:
        """Executes programs as they are, in their types or in f64."""
        if not wide:
            return NumpyBackend()
        return VariedBackend(Policy(wide=True, asked=self._asked), keeps_wide=True)

    def unrounded(self, those: frozenset[Instruction]) -> list[Array]:
        """The leaves where some instructions do not round to less than f32, and nothing is perturbed."""
        return self.executed(self.side.execute(VariedBackend(Policy(unrounded=those))))

    def executed(self, run: Callable[[], Value]) -> list[Array]:
        """The leaves of one execution; raises as `Clock.timed`."""
        return array_leaves(self.side.shape, self.clock.timed(run))


def _signs(number: int) -> int:
    """See `Member.signs`: every other execution leaves them as they are, the others take turns."""
    return (0, 1, 0, -1)[number % 4]


def array_leaves(shape: Shape, value: Any) -> list[Array]:
    """The arrays of a value, in tuple order; what is no array is an empty one."""
    return [
        np.asarray(leaf) if isinstance(part, ArrayShape) else np.empty(0)
        for _, part, leaf in flatten(shape, value)
    ]


# Which instruction overflows: an infinity from finite operands that are merely too large.
#
# Poles do not count: log(0), 1 / 0 and their kin are infinite in every type.

#: Infinite at zero or at one.
_POLES = opcodes_with(Trait.SINGULAR)


class OverflowFinder:
    """The probe of an execution of `module`, arguments included.

    Attributes:
        found: the first instruction that overflows, None where none does.
    """

    def __init__(self, module: Module) -> None:
        self.found: Instruction | None = None
        self._finite: dict[Instruction, bool] = {}
        self._calls = CallGraph(module)

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
            return
        finite = self._finite[instruction] = bool(np.isfinite(value).all())
        if not finite and self.found is None and self._overflows(instruction, value):
            self.found = instruction

    def _overflows(self, instruction: Instruction, value: Any) -> bool:
        if instruction.opcode in _POLES or not bool(np.isinf(value).any()):
            return False
        if not (does_arithmetic(instruction) or instruction.opcode == "convert"):
            return False
        return all(map(self._is_finite, instruction.operands))

    def _is_finite(self, instruction: Instruction) -> bool:
        if instruction in self._finite:
            return self._finite[instruction]
        if instruction.literal is not None and isinstance(instruction.literal.value, np.ndarray):
            value = instruction.literal.value
            return value.dtype.kind in "biu" or bool(np.isfinite(value.astype(np.complex128)).all())
        if instruction.opcode == "parameter":
            callers = [c for c in self._calls.callers[self._calls.home[instruction]] if c.opcode in INLINED]
            return bool(callers) and self._is_finite(callers[-1].operands[instruction.parameter_number or 0])
        return True
