"""The instruction that makes runs of one program differ, on a backend that shows nothing of what is inside.

Halving under noise: the first half of a program, run alone, differs from run to run (or is wrong in some of
its runs) if the instruction is in it. That it agrees may be chance, so each half is run as often as the rate
of the whole program demands: after n = ln(alpha / steps) / ln(1 - rate) runs without a case, the probability
that any of the steps agreed by chance is at most alpha. What is found is run alone on right operands, where
it has to show the same.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.facts.dataflow import leaf_facts
from hlotool.inputs.frames import Frame, Node, resolve, value_in
from hlotool.inputs.recorded_values import Budget, OutOfTime
from hlotool.ir.arrays import flatten
from hlotool.ir.edit_calls import extract
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, TokenShape, leaves
from hlotool.ir.walk import users
from hlotool.judge.locate.isolation import differ, record_of_one
from hlotool.judge.locate.locator import NotFound
from hlotool.judge.locate.recording import Execution, execute, on_one_device
from hlotool.judge.records import DivergenceRecord

#: The probability that a step of the search agrees by chance, all steps together.
_ALPHA = 0.01
#: The rate is taken at the lower end of what its runs leave open, with this probability of being lower still.
_TAIL = 0.05
#: Of rarer cases a search takes too long: they are looked for as if they were so frequent.
_LEAST_RATE = 0.02
#: Iterations of a loop that are looked into.
_MOST_ITERATIONS = 8


@dataclass(frozen=True, slots=True)
class Spread:
    """What several runs of a whole program showed.

    Attributes:
        cases: runs whose result is wrong; where none is, runs unlike the most frequent result.
        runs: how many there were.
        is_wrong: cases are wrong results.
    """

    cases: int
    runs: int
    is_wrong: bool

    @property
    def rate(self) -> float:
        """What the rate of cases is at least, but for a small probability."""
        from scipy.special import betaincinv

        low = float(betaincinv(self.cases, self.runs - self.cases + 1, _TAIL)) if self.cases else 0.0
        return min(max(low, _LEAST_RATE), 0.99)


def repeats(rate: float, steps: int, alpha: float = _ALPHA) -> int:
    """Runs without a case after which a step may be said to agree."""
    return max(1, math.ceil(math.log(alpha / steps) / math.log1p(-rate)))


def origin_of_spread(
    backend: str, module: Module, arguments: Sequence[Value], spread: Spread, budget: Budget
) -> DivergenceRecord:
    """Find the first instruction whose result differs from run to run.

    Args:
        backend: whose runs differ.
        module: the program, for one device.
        arguments: of all runs.
        spread: what these showed.
        budget: how much may be kept, and how many seconds the search may take.

    Returns:
        the instruction; its finding is `wrong` where its own runs are that, though those of the program may
        not show it, and `varies` where rounding explains how far they are apart.

    Raises:
        NotFound: the program does not differ again, or none of its parts does.
        OutOfTime: the search takes too long.
        Unsupported: the calls of the program cannot be flattened, or it cannot be executed.
    """
    with closing(execute(on_one_device(module, arguments), budget)) as execution:
        search = _Halving(execution, backend, spread, budget.seconds)
        found = search.first()
        what = "wrong" if spread.is_wrong else "unlike the most frequent result"
        notes = [
            f"{search.halvings} parts were run; one is said to agree after {search.most} runs without a case:"
            f" at a rate of {spread.rate:.2g} ({spread.cases} of {spread.runs} runs) one of these answers is"
            f" chance with a probability of at most {_ALPHA:g}",
            f"alone on right operands: {found.cases} of {found.runs} runs {what}",
        ]
        is_wrong = spread.is_wrong or search.is_wrong_alone(found)
        kind = ("wrong" if is_wrong else "varies") if found.cases else "suspected"
        return record_of_one(execution, found.node, kind, notes, doubt=_ALPHA)


@dataclass(frozen=True, slots=True)
class _Origin:
    """An instruction, and what its runs alone showed."""

    node: Node
    cases: int
    runs: int


class _Halving:
    """The search; the arguments of `origin_of_spread`.

    Attributes:
        halvings: parts of the program that were run.
        most: the most runs of one of these that could be needed.
    """

    def __init__(self, execution: Execution, backend: str, spread: Spread, seconds: float) -> None:
        self.halvings = self.most = 0
        self._execution = execution
        self._backend = get_backend(backend)
        self._spread = spread
        self._is_wrong_sought = spread.is_wrong
        self._end = time.monotonic() + seconds
        count = sum(len(c.instructions) for c in execution.module.computations)
        self._steps = math.ceil(math.log2(count + 1)) + 1

    def first(self) -> _Origin:
        """The first instruction that differs; raises as `origin_of_spread`."""
        unconfirmed = None
        for alpha in (_ALPHA, _ALPHA / 100):
            found = self._within(self._execution.entry, self._spread.rate, alpha)
            if found is not None and found.cases:
                return found
            unconfirmed = unconfirmed or found
        if unconfirmed is None:
            raise NotFound("halves of the program do not differ from run to run, as often as they are run")
        return unconfirmed

    def _within(self, frame: Frame, rate: float, alpha: float) -> _Origin | None:
        """The first instruction of a computation that differs; None where all of it agrees."""
        parts = [i for i in frame.computation.instructions if i.opcode != "parameter"]
        ends = [n for n in range(1, len(parts) + 1) if not _is_between(parts, n)]
        count = repeats(rate, self._steps, alpha)
        self.most = max(self.most, count)
        if not ends or not self._cases(frame, parts, count, is_enough=1):
            return None
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high) // 2
            if self._cases(frame, parts[: ends[middle]], count, is_enough=1):
                high = middle
            else:
                low = middle + 1
        found = parts[ends[high] - 1]
        return self._inside(frame, found, rate, alpha) or self._alone(frame, found, count)

    def _inside(self, frame: Frame, found: Instruction, rate: float, alpha: float) -> _Origin | None:
        """What differs in the computations that it runs: in each of many iterations the rate is lower."""
        callees = frame.callees.get(found, [])
        counts = Counter(callee.computation for callee in callees)
        for callee in callees:
            if callee.iteration < _MOST_ITERATIONS:
                own = -math.expm1(math.log1p(-rate) / counts[callee.computation])
                try:
                    inside = self._within(callee, max(own, _LEAST_RATE / 10), alpha)
                except OutOfTime:
                    return None
                if inside is not None:
                    return inside
        return None

    def _alone(self, frame: Frame, found: Instruction, count: int) -> _Origin:
        index = next((index for index, shape in leaves(found.shape) if isinstance(shape, ArrayShape)), ())
        return _Origin(Node(frame, found, index), self._cases(frame, [found], count, is_enough=count), count)

    def is_wrong_alone(self, found: _Origin) -> bool:
        """Whether what was found is wrong in one of its runs, and not just another legal result."""
        self._is_wrong_sought = True
        return bool(self._cases(found.node.frame, [found.node.instruction], found.runs, is_enough=1))

    def _cases(self, frame: Frame, members: Sequence[Instruction], count: int, is_enough: int) -> int:
        """In how many runs some instructions are wrong, or unlike the others; ends when that is enough.

        Raises:
            OutOfTime: see the class.
        """
        results = _read_outside(frame, members)
        if not results:
            return 0
        self.halvings += len(members) > 1
        cut = extract(self._execution.module, members, results)
        arguments = [value_in(frame, operand) for operand in cut.inputs]
        executable = self._backend.compile(cut.module)
        seen: Counter[bytes] = Counter()
        verdicts: dict[bytes, bool] = {}
        for _ in range(count):
            if time.monotonic() > self._end:
                raise OutOfTime("a search among runs that differ takes longer (--first-divergence: no limit)")
            value = executable.run(arguments)
            bits = b"".join(part.tobytes() for part in _arrays(cut.module, value))
            seen[bits] += 1
            if self._is_wrong_sought and bits not in verdicts:
                verdicts[bits] = self._is_wrong(frame, results, cut.module, value)
            cases = self._counted(seen, verdicts)
            if cases >= is_enough:
                break
        return cases

    def _counted(self, seen: Counter[bytes], verdicts: dict[bytes, bool]) -> int:
        if self._is_wrong_sought:
            return sum(number for bits, number in seen.items() if verdicts[bits])
        return seen.total() - max(seen.values())

    def _is_wrong(self, frame: Frame, results: Sequence[Instruction], module: Module, value: Value) -> bool:
        """Whether a result of a part is further from the reference than rounding explains."""
        shapes = [(result, index, shape) for result in results for index, shape in leaves(result.shape)]
        found = [part for _, _, part in flatten(module.entry.root.shape, value)]
        for (result, index, shape), facts, actual in zip(shapes, leaf_facts(module), found):
            if not isinstance(shape, ArrayShape) or facts.random is not None:
                continue
            expected = resolve(frame, result, index).value
            if expected is not None and differ(expected, np.asarray(actual), shape, facts):
                return True
        return False


def _is_between(parts: Sequence[Instruction], end: int) -> bool:
    """Whether the first `end` instructions begin something that others of them end."""
    return any(i.opcode.endswith(("-start", "-update")) for i in _read_later(parts[:end], parts[end:]))


def _read_later(first: Sequence[Instruction], rest: Sequence[Instruction]) -> Iterator[Instruction]:
    read = {operand for i in rest for operand in i.operands}
    return (i for i in first if i in read)


def _read_outside(frame: Frame, members: Sequence[Instruction]) -> list[Instruction]:
    """Those of some instructions that others read, or that are the result."""
    inside, readers = set(members), users(frame.computation)
    return [
        i
        for i in members
        if not isinstance(i.shape, TokenShape)
        and i.opcode != "constant"
        and (i is frame.computation.root or any(reader not in inside for reader in readers[i]))
    ]


def _arrays(module: Module, value: Value) -> Iterator[Any]:
    for _, shape, part in flatten(module.entry.root.shape, value):
        if isinstance(shape, ArrayShape):
            yield np.asarray(part)
