"""Sets made by inverse arithmetic: what decisions would need to see, as far as arguments can give it.

A wish (`wanted`) is solved backwards (`backwards`) for some elements, by the values of one run: those of
the first time that an instruction ran. Wishes that ask different elements of the arguments go into one set,
so that few runs serve many decisions.

A compiler that is right keeps what a program decides, or decides it otherwise for a reason. So a comparison
with another direction or constant, a guard that is gone and a limit that only one side has are asked about
before everything else. Nothing of this accuses a program: it says where to look first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final, TypeAlias, TypeVar

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.decisions import Decision, Kind, asks, decisions, question, questions
from hlotool.facts.flow import CallGraph
from hlotool.facts.ranges import Interval
from hlotool.facts.work import of_lowering
from hlotool.inputs.adversarial import corners
from hlotool.inputs.adversarial.backwards import Assignment, Backwards
from hlotool.inputs.adversarial.sets import InputSet, Leaf, Range, leaves_of, unspecified, with_chosen
from hlotool.inputs.adversarial.wanted import Wish, is_wished, wishes
from hlotool.inputs.coverage.outcomes import outcome_tests
from hlotool.ir.arrays import Array, integer_limits
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex
from hlotool.system.resources import spend

#: Elements of an array that is kept; larger ones are not solved for.
_LARGEST: Final = 1 << 16


class FirstValues:
    """A probe that keeps copies of small arrays.

    Attributes:
        values: by instruction.
    """

    def __init__(self) -> None:
        self.values: dict[Instruction, Array] = {}

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`."""
        if instruction in self.values or not isinstance(value, np.ndarray | np.generic):
            return
        array = np.asarray(value)
        if array.size <= _LARGEST:
            self.values[instruction] = np.array(array)


def first_values(module: Module, arguments: Sequence[Value]) -> dict[Instruction, Array]:
    """What every instruction of a program for one device returned first; raises as `Executable.run`."""
    probe = FirstValues()
    for parameter, value in zip(module.entry.parameters, arguments):
        probe(parameter, value)
    spend(of_lowering(module))
    NumpyBackend().compile(module).run(arguments, probe)
    return probe.values


#: Elements of an operand that are solved for: the fault may be at any, and each costs time.
_ELEMENTS: Final = 12
#: Elements of an operand without a way back after which no others are tried: most fail for one reason.
_HOPELESS: Final = 3
#: Wishes that one set serves at most, so that one does not undo another on the way.
_TOGETHER: Final = 6
#: Wishes that are granted before the sets for them are made: who takes the first few pays for no more.
_AT_ONCE: Final = 12
#: Magnitude of the numbers that an argument may hold.
_SOLVED_LARGEST: Final = sys.float_info.max

#: Sets of ties alone, by what they start from: their names.
TIES_OF_WHOLE: Final = "solved tie"
TIES_OF_PLAIN: Final = "plain tie"

T = TypeVar("T")

_Place: TypeAlias = tuple[int, ShapeIndex]


@dataclass(eq=False)
class _Plan:
    """A set in the making: numbers by place and element."""

    odd: str
    wanted: dict[_Place, dict[int, float]] = field(default_factory=dict)
    served: list[Wish] = field(default_factory=list)
    #: What leads to the branches that are taken.
    leads: set[_Place] = field(default_factory=set)

    def takes(self, wish: Wish, assignments: Sequence[Assignment]) -> bool:
        """Take a wish in where nothing that it asks is taken."""
        if len(self.served) >= _TOGETHER or self.odd != wish.odd:
            return False
        # What one operand should be goes by what the other one was.
        if any(other.instruction is wish.instruction for other in self.served):
            return False
        for one in assignments:
            if one.element in self.wanted.get((one.number, one.index), ()):
                return False
        for one in assignments:
            self.wanted.setdefault((one.number, one.index), {})[one.element] = one.value
            if wish.instruction.opcode == "conditional":
                self.leads.add((one.number, one.index))
        self.served.append(wish)
        return True


def solved_sets(
    module: Module,
    plain: Sequence[Value],
    seed: int,
    ties: str = "",
    within: Range = None,
    tested: Module | None = None,
    of_tested: bool = False,
) -> Iterator[InputSet]:
    """Sets that should show decisions at their corners; equal seeds give equal sets.

    Decisions that only one of two programs has come first, then those of which the plain arguments do not
    show every outcome.

    Args:
        module: a program for one device.
        plain: arguments whose values the inverse arithmetic goes by.
        seed: chooses elements.
        ties: where it is not empty, leave out all but ties, each of which has a set of this name for itself:
            one that is exact lasts as long as nothing else moves.
        within: bounds of floats that no use bounds.
        tested: the program that `module` is compared with, which takes the same arguments.
        of_tested: solve for the decisions that only `tested` has, instead of those of `module`.

    Raises:
        as `Executable.run`.
    """
    subject, other = (tested, module) if of_tested and tested is not None else (module, tested)
    backwards = Backwards(subject, first_values(subject, plain), is_exact=ties == TIES_OF_WHOLE)
    rank = ranked(backwards.calls, backwards.value_of, None if other is None else CallGraph(other))
    leaves = leaves_of(module, plain, within)
    by_place = {(leaf.parameter.parameter_number or 0, leaf.index): leaf for leaf in leaves}
    rng = np.random.default_rng([seed, 2])
    may_be_nan = "NaN" not in unspecified(module, within is not None)
    name = ("tested " if of_tested else "") + (ties or "solved")
    numbers = count(1)
    last = NO_COUNTERPART if of_tested else LATER
    for granted in _batches(_solutions(backwards, rng, rank, last, bool(ties)), _AT_ONCE):
        plans: list[_Plan] = []
        for wish, assignments in granted:
            allowed = [
                one for one in assignments if _is_allowed(by_place.get((one.number, one.index)), one, wish)
            ]
            if allowed and (ties or not any(plan.takes(wish, allowed) for plan in plans)):
                plan = _Plan(wish.odd)
                plan.takes(wish, allowed)
                plans.append(plan)
        for number, plan in zip(numbers, sorted(plans, key=lambda p: bool(p.odd))):
            yield _as_set(module, plain, leaves, plan, f"{name} {number}")
            if may_be_nan and (plan.leads or any(not _is_float(by_place[place]) for place in plan.wanted)):
                yield from _with_nan(module, plain, leaves, plan, f"{name} {number} and NaN", rng)


def _batches(source: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(islice(source, size)):
        yield batch


def _solutions(
    backwards: Backwards,
    rng: np.random.Generator,
    rank: Callable[[Instruction], int],
    last: int,
    is_tie: bool,
) -> Iterator[tuple[Wish, list[Assignment]]]:
    """Wishes that can be granted, those of the lowest rank first; none beyond the rank `last`."""
    ranks = {i: rank(i) for i in backwards.calls.in_order_of_execution() if is_wished(i)}
    hopeless: set[Instruction] = set()
    for instruction in sorted(ranks, key=lambda i: ranks[i]):
        if ranks[instruction] > last:
            return
        operands = [backwards.value_of(o) for o in instruction.operands]
        for wish in wishes(instruction, operands):
            operand = instruction.operands[wish.operand]
            if (is_tie and not wish.is_tie) or operand in hopeless:
                continue
            size = wish.wanted.size
            flat = wish.wanted.reshape(-1)
            # In any order: where one number is to serve all elements, the first of them gets it. Zeros are
            # last: a tie of zeros often changes nothing, for any factor of zero is zero.
            order = rng.permutation(size)
            chosen = order[np.argsort(flat[order] == 0, kind="stable")][:_ELEMENTS]
            taken: dict[tuple[_Place, int], Assignment] = {}
            for tried, element in enumerate(chosen, 1):
                for one in backwards.solve(operand, int(element), float(flat[element])):
                    taken.setdefault(((one.number, one.index), one.element), one)
                if not taken and tried >= _HOPELESS:
                    break
            if taken:
                yield wish, list(taken.values())
            else:
                hopeless.add(operand)


def _is_allowed(leaf: Leaf | None, one: Assignment, wish: Wish) -> bool:
    """Whether an argument may hold a number: ordinary sets keep wishes, odd ones only what is required."""
    if leaf is None or not leaf.is_free or leaf.needs_order:
        return False
    asked = leaf.required if wish.odd else leaf.constraint
    interval = _interval(asked.intervals, asked.axis, leaf.plain, one.element)
    if leaf.element_type.is_integer:
        low, high = integer_limits(leaf.element_type)
        if not low <= one.value <= high:
            return False
    # Whole numbers that were solved for may be wider than any that NumPy knows.
    return (
        abs(one.value) <= _SOLVED_LARGEST
        and interval.low <= one.value <= interval.high
        and (one.value != interval.avoid)
    )


def _interval(intervals: Sequence[Interval], axis: int | None, like: Array, element: int) -> Interval:
    if axis is None or len(intervals) == 1:
        return intervals[0]
    return intervals[int(np.unravel_index(element, like.shape)[axis])]


def _with_nan(
    module: Module,
    plain: Sequence[Value],
    leaves: Sequence[Leaf],
    plan: _Plan,
    name: str,
    rng: np.random.Generator,
) -> Iterator[InputSet]:
    """The same branch, position or count with NaN in half of all floats that do not lead to a branch: what
    the program makes of them there.
    """
    solved = _as_set(module, plain, leaves, plan, name)
    special = corners.special(rng, np.nan, share=0.5)

    def choose(leaf: Leaf) -> Array | None:
        leads = (leaf.parameter.parameter_number or 0, leaf.index) in plan.leads
        return None if leads else special(leaf)

    values, changed = with_chosen(module, solved.values, leaves, choose)
    if changed:
        yield InputSet(name, values, ("NaN",), solved.aims)


def _is_float(leaf: Leaf) -> bool:
    return leaf.element_type.is_inexact


def _as_set(
    module: Module, plain: Sequence[Value], leaves: Sequence[Leaf], plan: _Plan, name: str
) -> InputSet:
    def choose(leaf: Leaf) -> Array | None:
        wanted = plan.wanted.get((leaf.parameter.parameter_number or 0, leaf.index))
        if wanted is None:
            return None
        new = np.array(leaf.plain)
        flat = new.reshape(-1)
        elements = list(wanted)
        with np.errstate(all="ignore"):
            numbers = np.array(
                [wanted[e] for e in elements], object if leaf.element_type.is_integer else float
            )
            flat[elements] = numbers.astype(leaf.plain.dtype)
        return new

    values, _ = with_chosen(module, plain, leaves, choose)
    aims = tuple(wish.purpose for wish in plan.served)
    return InputSet(name, values, (plan.odd,) if plan.odd else (), aims)


# Which decisions of a program need inputs most: those that the other program lacks, then open ones.
#
# A compiler that is right keeps what a program decides, or decides it otherwise for a reason. So a
# comparison with another direction or constant, a guard that is gone and a limit that only one side has are
# asked about before everything else. It is no evidence of a fault: it says where to look first.

#: How soon what an instruction decides is asked about: what the other program has not, what no run has shown
#: yet, all else.
NO_COUNTERPART, OPEN, LATER = range(3)

#: Decisions that operands alone do not show, or that are looked at in a run as a whole.
_OF_RUNS: Final = frozenset({Kind.TRIP_COUNT, Kind.ORDER, Kind.TIES, Kind.NAN, Kind.OVERLAP})
#: Units of work of a look at a decision.
_LOOK: Final = 10_000


def ranked(
    calls: CallGraph, value_of: Callable[[Instruction], Array | None], other: CallGraph | None
) -> Callable[[Instruction], int]:
    """How soon what an instruction decides is to be asked about.

    Args:
        calls: of the program.
        value_of: the value of an instruction in a run on the plain arguments.
        other: of the program that it is compared with.
    """
    known = None if other is None else questions(other)
    deciding = list(decisions(calls))
    is_open = {d.instruction for d in deciding if _is_open(d, value_of)}
    is_seen = {d.instruction for d in deciding} - is_open

    def rank(instruction: Instruction) -> int:
        if known is not None and asks(instruction) and question(instruction, calls) not in known:
            return NO_COUNTERPART
        return LATER if instruction in is_seen else OPEN

    return rank


def _is_open(decision: Decision, value_of: Callable[[Instruction], Array | None]) -> bool:
    """Whether an outcome of sensible inputs did not occur when the instruction first ran."""
    if decision.kind in _OF_RUNS or not decision.is_open:
        return False
    spend(_LOOK)
    values = [value_of(operand) for operand in decision.instruction.operands]
    if any(values[number] is None for number in decision.operands):
        return False
    tests = outcome_tests(decision)
    with np.errstate(all="ignore"):
        return not all(tests[outcome](values) for outcome in decision.outcomes)
