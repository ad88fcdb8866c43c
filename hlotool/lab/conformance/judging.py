"""A result beside what is expected: the same, another one that a named freedom allows, or wrong.

Those of XLA's CPU compiler have rules in departures.toml. The others stand here: what no document determines,
and what is rounded.

Each leaf goes through the freedoms, the narrow ones first: the ulps of the tables, the rules by which XLA
departs from the reference, what the documents leave open, the values that XLA was measured to give. What is
left then is judged as a replay judges it: is it one more legal execution of the program?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from hlotool.backends.base import TOKEN, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array, dtype_of, flatten, integer_limits, unflatten
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.types import leaves as shape_leaves
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.freedoms import freedoms_on
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.rules.semantics import PAIRS
from hlotool.judge.verdicts import Verdict
from hlotool.lab.conformance.agreement import (
    DEPARTURES,
    Tolerance,
    differing,
    distances,
    other_bits,
    tolerance,
    wrong,
)
from hlotool.lab.conformance.generators.cases import Case
from hlotool.lab.conformance.trials import Difference, Trial, explained

#: Within the ulps of a table: of the case, or of tolerances.toml.
ROUNDING: Final = "rounding"
#: As far off as other legal executions of the program.
LEGAL_EXECUTION: Final = "legal-execution"
NAN_PAYLOAD: Final = "nan-payload"
RANGE: Final = "overflow-on-the-way"
UNSTABLE: Final = "unstable"

_Explains: TypeAlias = Callable[[Difference], Array]


@dataclass(frozen=True, slots=True)
class Freedom:
    """What the documents leave open.

    Attributes:
        opcodes: that it is about.
        meaning: what is open, and by which document.
        explains: which elements of a difference it explains.
    """

    opcodes: frozenset[str]
    meaning: str
    explains: _Explains


def _division_overflows(difference: Difference) -> Array:
    """A divisor of zero, or the smallest number over -1."""
    if not difference.kind.is_integer or len(difference.operands) != 2:
        return np.asarray(False)
    number, divisor = (operand.astype(np.int64) for operand in difference.operands)
    smallest, _ = integer_limits(difference.kind)
    return np.asarray((divisor == 0) | ((smallest < 0) & (number == smallest) & (divisor == -1)))


@np.errstate(all="ignore")
def _is_out_of_range(difference: Difference) -> Array:
    """A float that the integer type cannot hold, NaN among them."""
    source, kind = difference.source, difference.kind
    if source is None or not source.is_inexact or not kind.is_integer or not difference.operands:
        return np.asarray(False)
    operand = difference.operands[0]
    wide = np.trunc((operand.real if operand.dtype.kind == "c" else operand).astype(np.float64))
    low, high = integer_limits(kind)
    # f64 holds no 2^63 - 1: what is not below the next number is too large.
    return np.asarray(~((wide >= low) & (wide < float(high) + 1)))


@np.errstate(all="ignore")
def _is_rounded_on_the_way(difference: Difference) -> Array:
    """What conversions at once, by way of f32, or by way of f16 give."""
    kind, source = difference.kind, difference.source
    if not kind.is_narrow_float or source is None or source.is_complex or not difference.operands:
        return np.asarray(False)
    operand, dtype = difference.operands[0], dtype_of(kind)
    if not (source.is_floating or source.is_integer):
        return np.asarray(False)
    single = operand.astype(np.float32)
    ways = (single, operand.astype(np.float16), single.astype(np.float16), _rounded_to_odd(operand))
    same = [~differing(difference.theirs, way.astype(dtype)) for way in ways]
    return np.asarray(np.logical_or.reduce(same))


@np.errstate(all="ignore")
def _rounded_to_odd(values: Array) -> Array:
    """f32 values that any narrower type rounds as it would round `values` themselves.

    Where f32 does not hold a value, it becomes the neighbour on its own side of all ties.
    """
    single = values.astype(np.float32)
    exact, back = values.astype(np.float64), single.astype(np.float64)
    towards = np.where(exact > back, np.float32(np.inf), np.float32(-np.inf))
    is_exact = (exact == back) | ~np.isfinite(back)
    return np.where(is_exact, single, np.nextafter(single, towards)).astype(np.float32)


#: By name.
OPEN: Final[Mapping[str, Freedom]] = MappingProxyType(
    {
        "division-overflow": Freedom(
            frozenset({"divide", "remainder"}),
            "integers: division by zero, and of the smallest number by -1, is implementation-defined "
            "(operation_semantics.md#div)",
            _division_overflows,
        ),
        "conversion-out-of-range": Freedom(
            frozenset({"convert"}),
            "floats that an integer type cannot hold convert to what the implementation says "
            "(StableHLO, convert)",
            _is_out_of_range,
        ),
        "conversion-by-way-of-another-type": Freedom(
            frozenset({"convert"}),
            "to narrow floats at once, or rounded to f32 or f16 first: XLA's CPU code goes by the processor",
            _is_rounded_on_the_way,
        ),
    }
)

_OTHERS = {
    ROUNDING: "within the ulps that tolerances.toml, or the case itself, allows",
    LEGAL_EXECUTION: "within what rounding and the order of sums explain",
    NAN_PAYLOAD: "a NaN of other bits where no document says which",
    RANGE: "infinite or NaN on one side, because a value on the way is too large for its type there",
    PAIRS.id: PAIRS.text,
    UNSTABLE: "too sensitive to rounding to judge",
}


def meaning(name: str) -> str:
    """What a freedom allows, in one sentence.

    Raises:
        KeyError: there is none of that name.
    """
    if name in OPEN:
        return OPEN[name].meaning
    if name in DEPARTURES:
        rule = DEPARTURES[name]
        return f"as XLA's {'CPU code' if rule.side == 'cpu' else 'evaluator'}: {rule.xla}"
    return _OTHERS[name]


#: Elements that a message shows.
_SHOWN = 3

#: What the verdicts of a replay that show no fault are called here; all others show one.
_NAMES = {
    Verdict.AGREE: LEGAL_EXECUTION,
    Verdict.ROUNDING: LEGAL_EXECUTION,
    Verdict.RANGE: RANGE,
    Verdict.UNSTABLE: UNSTABLE,
}


@dataclass(slots=True)
class Judged:
    """What is said of a trial.

    Attributes:
        freedoms: names of those that the result takes.
        ulps: the furthest that a value is off within them, in the unit of the tolerance that allows it: ulps
            of the value, of the largest one of the array, or of the sum of absolute terms.
        wrong: what no freedom explains, in words; empty where all is well.
    """

    freedoms: set[str] = field(default_factory=set)
    ulps: int = 0
    wrong: list[str] = field(default_factory=list)


def reference_leaves(trial: Trial) -> list[list[Any]]:
    """Per device, what each leaf of the result must be; tokens are TOKEN.

    Raises:
        HlotoolError: the reference cannot say; specs can.
    """
    if trial.spec is not None:
        return [trial.spec.expected(trial.module, device) for device in range(len(trial.grid))]
    value = NumpyBackend().compile(trial.module).run(trial.rows[0])
    return [[leaf for _, _, leaf in flatten(trial.module.entry.root.shape, value)]]


def judged(trial: Trial, results: Sequence[Sequence[Any]], target: str = "") -> Judged:
    """What is to be said of what a backend returned.

    Args:
        trial: what it ran.
        results: per device, the leaves of the result; what stands for a token is not looked at.
        target: what the backend compiles for (`backends.base.target_of`).
    """
    said = Judged()
    for device, (actual, expected) in enumerate(zip(results, reference_leaves(trial), strict=True)):
        _judge_device(trial, device, actual, expected, said, target)
    return said


def _judge_device(
    trial: Trial, device: int, actual: Sequence[Any], expected: Sequence[Any], said: Judged, target: str
) -> None:
    shapes = [shape for _, shape in shape_leaves(trial.module.entry.root.shape)]
    departing = trial.spec.departing(trial.module, device) if trial.spec is not None else None
    left: dict[int, Array] = {}
    for number, shape in enumerate(shapes):
        if expected[number] is TOKEN or not isinstance(shape, ArrayShape):
            continue
        given, wanted = np.asarray(actual[number]), np.asarray(expected[number])
        where = f"device {device}, leaf {number}" if len(trial.grid) > 1 else f"leaf {number}"
        if given.shape != wanted.shape or given.dtype != dtype_of(shape.element_type):
            said.wrong.append(f"{where}: {given.dtype}{list(given.shape)}, and not {shape}")
            return
        wanted = wanted.astype(given.dtype, copy=False)
        compared = _Compared(trial, number, shape.element_type, wanted, given)
        also = np.asarray(departing[number]) if departing is not None else None
        open_ = compared.judge(said, also)
        if open_.any():
            left[number] = open_
    if left:
        said.wrong += _by_verdict(trial, device, actual, expected, left, said, target)


@dataclass(slots=True, eq=False)
class _Compared:
    """One leaf on its way through the freedoms."""

    trial: Trial
    number: int
    kind: ElementType
    wanted: Array
    given: Array

    def judge(self, said: Judged, departing: Array | None) -> Array:
        """Where nothing explains the difference; what does is noted in `said`."""
        own = self.trial.tolerance
        unequal = wrong(self.wanted, self.given, self.kind) if not own.bits else self._other_bits()
        if not own.bits and (self._other_bits() & ~unequal).any():
            said.freedoms.add(NAN_PAYLOAD)
        if not unequal.any():
            return unequal
        for allowed in self._tolerances():
            scale = self._terms() if allowed.of == "terms" else None
            left = unequal & wrong(self.wanted, self.given, self.kind, allowed, scale)
            if (rounded := unequal & ~left).any():
                said.freedoms.add(ROUNDING)
                off = distances(self.wanted, self.given, self.kind, allowed.of, scale)
                said.ulps = max(said.ulps, math.ceil(off[rounded].max()))
            unequal = left
        for name, mask in self._explained(unequal, departing):
            if (mask & unequal).any():
                said.freedoms.add(name)
            unequal = unequal & ~mask
        return unequal

    def _other_bits(self) -> Array:
        return other_bits(self.wanted, self.given)

    def _tolerances(self) -> list[Tolerance]:
        """That of the case, and that of the table."""
        both = (self.trial.tolerance, tolerance(self.trial.opcode, self.kind))
        return [allowed for allowed in dict.fromkeys(both) if allowed.ulps and self.kind.is_inexact]

    def _terms(self) -> Array | None:
        try:
            return absolute_terms(self.trial.case)[self.number]
        except (HlotoolError, IndexError):
            return None

    def _explained(self, unequal: Array, departing: Array | None) -> Iterator[tuple[str, Array]]:
        difference = Difference(self.trial.case, self.number, self.kind, self.wanted, self.given)
        if unequal.any():
            for rule in DEPARTURES.values():
                yield rule.id, explained(rule, difference)
            nothing = np.zeros(self.given.shape, np.bool_)
            for name, freedom in OPEN.items():
                if self.trial.opcode in freedom.opcodes:
                    yield name, nothing | freedom.explains(difference)
        if departing is not None and self.trial.rule is not None:
            yield self.trial.rule, ~wrong(departing.astype(self.given.dtype), self.given, self.kind)


def absolute_terms(case: Case) -> list[Array]:
    """The same module on absolute values: for sums of products, the sum of the absolute terms."""
    sizes = [np.abs(a) if a.dtype.kind in "fc" or "float" in a.dtype.name else a for a in case.arguments]
    positive = [s.astype(a.dtype) for s, a in zip(sizes, case.arguments)]
    value = NumpyBackend().compile(case.module).run(positive)
    return [np.asarray(leaf) for _, _, leaf in flatten(case.module.entry.root.shape, value)]


def _by_verdict(
    trial: Trial,
    device: int,
    actual: Sequence[Any],
    expected: Sequence[Any],
    left: dict[int, Array],
    said: Judged,
    target: str,
) -> list[str]:
    """What a replay's judge accuses of the elements that are left; what is explained takes their place."""
    mended = [
        np.where(left[n], actual[n], expected[n]).astype(np.asarray(actual[n]).dtype) if n in left else value
        for n, value in enumerate(expected)
    ]
    verdicts = _verdicts(trial, mended, expected, target)
    messages = []
    for number, mask in left.items():
        verdict = verdicts.get(number)
        name = _name_of(verdict)
        if name is None:
            reason = f"{verdict.reason}; " if verdict is not None else ""
            where = f"device {device}, leaf {number}" if len(trial.grid) > 1 else f"leaf {number}"
            messages.append(f"{where}: {reason}{_elements(actual[number], expected[number], mask)}")
            continue
        said.freedoms.add(name)
        if verdict is not None and verdict.metrics is not None:
            said.ulps = max(said.ulps, verdict.metrics.max_ulp or 0)
    return messages


def _name_of(verdict: LeafComparison | None) -> str | None:
    """The freedom that a verdict grants; None for an accusation."""
    if verdict is None:
        return None
    if verdict.verdict is Verdict.SEMANTICS and verdict.evidence is not None:
        return verdict.evidence.rule or None
    return _NAMES.get(verdict.verdict)


def _verdicts(
    trial: Trial, actual: Sequence[Any], expected: Sequence[Any], target: str
) -> dict[int, LeafComparison]:
    """By leaf; none for several devices, where bits count, and where nothing else can be executed."""
    if len(trial.grid) > 1 or trial.tolerance.bits:
        return {}
    shape = trial.module.entry.root.shape
    given, wanted = (cast(Value, unflatten(shape, leaves)) for leaves in (actual, expected))
    try:
        allowed = freedoms_on(target, trial.module)
        found = judge(judgement_of(trial.module, trial.rows[0], given, expected=wanted, freedoms=allowed))
    except HlotoolError:
        return {}
    numbers = {index: number for number, (index, _) in enumerate(shape_leaves(shape))}
    return {numbers[leaf.index]: leaf for leaf in found.leaves if leaf.index in numbers}


def _elements(actual: Any, expected: Any, mask: Array) -> str:
    places = [tuple(map(int, index)) for index in np.argwhere(mask)[:_SHOWN]]
    given, wanted = np.asarray(actual), np.asarray(expected)
    shown = [f"{given[place]} instead of {wanted[place]} at {list(place)}" for place in places]
    rest = int(mask.sum()) - len(places)
    return "; ".join([*shown, *([f"{rest} more"] if rest else [])])
