"""What single instructions do in an execution: overflow, feed products alone, round to less than f32.

An overflow is an infinity from finite operands that are merely too large. Poles do not count: log(0), 1 / 0
and their kin are infinite in every type. A value that is read by products alone may be rounded, for that is
rounding their operands.

Roundings: in f64 two programs compute the same values whatever they round. A few elements of each value
that one of them rounds are kept, and looked for in all values of the other one: in any order and shape,
whatever their signs and powers of two are, since those change nothing about what is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from hlotool.backends.base import Value
from hlotool.facts.float_order import epsilon
from hlotool.facts.flow import INLINED, CallGraph
from hlotool.facts.result_facts import EXACT, rounding_epsilon, sum_length
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ElementType, array_shapes
from hlotool.ir.walk import Context, contexts, users

#: What chooses or moves numbers: a rounding before it is one behind it. XLA lets a narrow type pass through
#: them (hlo/transforms/bfloat16_propagation.cc, service/float_support.cc).
_MOVING = frozenset({Class.DATA_MOVEMENT, Class.ANNOTATION})
_PASSING = EXACT | {
    *(
        "all-gather",
        "collective-permute",
        "convert",
        "dynamic-slice",
        "dynamic-update-slice",
        "gather",
        "sort",
    )
}
#: Where a value goes from there is not followed; XLA follows it.
_HIDING = opcodes_with(Class.TUPLE, Trait.CONTROL_FLOW) - {"call"} | {"async-start"}


def feeds_products_only(module: Module, value: Instruction, reads: Callable[[Instruction], bool]) -> bool:
    """Whether all that reads a value, with nothing but choices and movement between, are certain products.

    Args:
        module: of the value.
        value: an array.
        reads: whether an instruction is such a product.
    """
    calls = CallGraph(module)
    seen: set[Instruction] = set()
    waiting = [value]
    while waiting:
        instruction = waiting.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        if instruction is module.entry.root:
            return False
        for user in _readers(instruction, calls):
            if reads(user) or user.opcode in _HIDING:
                continue
            is_passing = user.row.opcode_class in _MOVING or user.opcode in _PASSING
            if not (is_passing or user.opcode == "parameter" or user.opcode in INLINED):
                return False
            waiting.append(user)
    return True


def _readers(instruction: Instruction, calls: CallGraph) -> Iterator[Instruction]:
    """Its users; of what enters a fusion the parameter inside, of the root of one the fusion itself."""
    home = calls.home[instruction]
    for user in users(home).get(instruction, ()):
        if user.opcode not in INLINED:
            yield user
            continue
        inside = next(user.called).parameters
        yield from (inside[n] for n, operand in enumerate(user.operands) if operand is instruction)
    if instruction is home.root:
        yield from calls.callers[home]


#: Elements of a value that are looked for, and how many visits of an instruction are looked at: the first
#: iterations of a loop.
_SAMPLE, _VISITS = 32, 4
#: Elements that are sorted, over all values of a program: about three seconds.
_ELEMENTS = 30_000_000
#: Relative difference of numbers in f64 that are one value: compilers fold constants in f32, and those of a
#: narrow type in that. Among many numbers one is that near by chance, so that the difference is smaller where
#: there are more, and beside the rounding in question it is small in any case.
_NEAR, _BY_CHANCE, _OF_ROUNDING = 2.0**-20, 0.05, 1 / 16
#: So many numbers are not all that near by chance, where constants are narrow.
_TELLING: Final = 8
#: Shares of a sample that a value must have to be the same one, and to be a part of it: a compiler may round
#: an array of which the program rounds a slice.
_WHOLE, _PART = 0.9, 0.1
#: They hand on what an operand has.
_SHOWING = opcodes_with(Trait.REGROUPS) | {"copy", "get-tuple-element"}
#: What is in them is looked at where it is computed.
_GATHERING = opcodes_with(Trait.CONTROL_FLOW, Trait.INLINED) | {"tuple"}


class Narrowing(Struct, frozen=True):
    """One instruction that rounds to less than f32.

    Attributes:
        instruction: that rounds.
        unit: one ulp at 1 of what it rounds to.
        adds: it adds up in that type, so that every partial sum is rounded.
    """

    instruction: Instruction
    unit: float
    adds: bool = False

    @property
    def is_of_narrow_type(self) -> bool:
        """Whether its result is declared in a narrow type."""
        return any(part.element_type.is_narrow_float for part in array_shapes(self.instruction.shape))

    @property
    def type_text(self) -> str:
        """What it rounds to, in words."""
        steps = [step for computation in self.instruction.called for step in computation.instructions]
        kinds = {part.element_type for one in (self.instruction, *steps) for part in array_shapes(one.shape)}
        named = next((kind for kind in kinds if kind.is_narrow_float and epsilon(kind) == self.unit), None)
        if named is None and self.unit == epsilon(ElementType.BF16):
            named = ElementType.BF16
        return str(named) if named is not None else f"{round(-np.log2(self.unit))} bits of mantissa"


def narrowings(module: Module) -> list[Narrowing]:
    """All instructions that round to less than f32, but constants."""
    kinds = contexts(module)
    found = []
    for computation in module.computations:
        if not kinds.get(computation, set()) - {Context.EMBEDDED}:
            continue
        for instruction in computation.instructions:
            own = max((u for u in _units(instruction)), default=0.0)
            inner = _unit_of_reducer(instruction)
            if max(own, inner) > epsilon(ElementType.F32):
                adds = inner > 0 or (own > 0 and _adds_step_by_step(instruction))
                found.append(Narrowing(instruction, max(own, inner), adds))
    return found


def pieces(module: Module) -> Iterator[Instruction]:
    """Roundings of values of which the rest is computed, too: such a value is taken apart, not lost."""
    for instruction in module.instructions():
        if instruction.opcode == "subtract":
            whole, piece = instruction.operands
            for one in (piece, *piece.operands):
                if one.opcode in ("convert", "reduce-precision") and one.operands[0] is whole:
                    yield one


def _units(instruction: Instruction) -> Iterator[float]:
    """What the arrays of a result are rounded to, where an instruction rounds to less than f32."""
    if instruction.opcode in _GATHERING | {"constant", "parameter"}:
        return
    for part in array_shapes(instruction.shape):
        kind = part.element_type
        if instruction.opcode == "reduce-precision" or kind.is_narrow_float:
            unit = rounding_epsilon(instruction, kind)
            if unit > epsilon(ElementType.F32):
                yield unit


def _adds_step_by_step(instruction: Instruction) -> bool:
    """Whether it rounds every partial sum to the type of its result."""
    return _adding(instruction) in instruction.attributes and instruction.opcode not in ("call", "map")


def _adding(instruction: Instruction) -> str:
    """The attribute that names the function of its steps, where it has steps."""
    return "scatter" if instruction.opcode == "select-and-scatter" else "to_apply"


def steps_of(instruction: Instruction) -> Sequence[Instruction]:
    """What an instruction that adds up does at every step."""
    return instruction.computation(_adding(instruction)).instructions


def _unit_of_reducer(instruction: Instruction) -> float:
    """What every step of a reduction in a wide type is rounded to; 0 where that is its own type."""
    if not _adds_step_by_step(instruction):
        return 0.0
    return max((unit for step in steps_of(instruction) for unit in _units(step)), default=0.0)


class Sampler(Struct, eq=False):
    """A probe that keeps a few elements of each value that is rounded: those that lose something by it.

    Attributes:
        wanted: what rounds.
        terms: what makes the terms of those that add up (`terms_of`).
        samples: magnitudes without their powers of two.
    """

    wanted: Mapping[Instruction, Narrowing]
    terms: Mapping[Instruction, Instruction]
    samples: dict[Instruction, npt.NDArray[np.float64]] = field(default_factory=dict)
    _largest: dict[Instruction, float] = field(default_factory=dict)
    _watched: frozenset[Instruction] = frozenset()

    def __post_init__(self) -> None:
        """Note whose sizes are asked for."""
        self._watched = frozenset(self.terms.values())

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        if instruction in self._watched:
            self._largest[instruction] = max((_largest(part) for part in _float_parts(value)), default=0.0)
        narrowing = self.wanted.get(instruction)
        if narrowing is None or instruction in self.samples:
            return
        for part in _float_parts(value):
            found = _mantissas(part, self._noise(instruction))
            lossy = found if narrowing.adds else found[_is_rounded(found, narrowing.unit)]
            if lossy.size:
                distinct = np.unique(lossy[:: max(1, lossy.size // (4 * _SAMPLE))])
                step = max(1, distinct.size // _SAMPLE)
                self.samples[instruction] = distinct[::step][:_SAMPLE]
                return

    def _noise(self, instruction: Instruction) -> float:
        """What f64's own roundings leave of a sum whose terms cancel: another order gives another number."""
        terms = self.terms.get(instruction)
        if terms is None:
            return 0.0
        count = sum_length(instruction, array_shapes(instruction.shape)[0])
        return self._largest.get(terms, 0.0) * count * epsilon(ElementType.F64)


def terms_of(module: Module, wanted: Mapping[Instruction, Narrowing]) -> dict[Instruction, Instruction]:
    """By instruction that adds up: what makes its terms, whatever they pass through on the way."""
    calls = CallGraph(module)
    found = {}
    for instruction, narrowing in wanted.items():
        if narrowing.adds and (origin := _origin(instruction.operands[0], calls)) is not None:
            found[instruction] = origin
    return found


def _origin(value: Instruction, calls: CallGraph) -> Instruction | None:
    while True:
        if value.opcode == "parameter":
            caller = calls.only_caller(calls.home[value])
            if caller is None or caller.opcode not in INLINED:
                return None
            value = caller.operands[value.parameter_number or 0]
        elif value.opcode in _SHOWING:
            value = value.operands[0]
        else:
            return value


def _largest(values: Array) -> float:
    """The largest finite magnitude."""
    finite = np.isfinite(values)
    return float(np.max(np.abs(values), initial=0.0, where=finite))


def _is_rounded(mantissas: npt.NDArray[np.float64], unit: float) -> npt.NDArray[np.bool_]:
    """Which numbers in [0.5, 1) a type with this ulp at 1 is off by, and by more than f32 is."""
    units = mantissas / (unit / 2)
    lost: npt.NDArray[np.bool_] = np.abs(units - np.rint(units)) * unit > 8 * epsilon(ElementType.F32)
    return lost


class Searcher(Struct, eq=False):
    """A probe that looks for samples among all values of a program.

    Attributes:
        samples: by instruction of the other program.
        units: what this program rounds a result to, where that is less than its type.
        adds: instructions that add up in that type.
        wanted: what rounds the samples.
        folded: one ulp at 1 of the coarsest type in which a compiler may have folded constants.
    """

    samples: Mapping[Instruction, npt.NDArray[np.float64]]
    units: Mapping[Instruction, float]
    adds: frozenset[Instruction]
    wanted: Mapping[Instruction, Narrowing]
    folded: float
    #: By sample: where it is found whole, with the unit of the type there; and where a part of it is.
    whole: dict[Instruction, dict[Instruction, float]] = field(default_factory=dict)
    part: dict[Instruction, dict[Instruction, float]] = field(default_factory=dict)
    _visits: dict[Instruction, int] = field(default_factory=dict)
    _left: int = _ELEMENTS

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        visits = self._visits[instruction] = self._visits.get(instruction, 0) + 1
        if visits > _VISITS or instruction.opcode in _GATHERING:
            return
        for number, array in enumerate(_float_parts(value)):
            if array.size > self._left:
                self._left = 0
                return
            self._left -= array.size
            self._look(instruction, number, np.unique(_mantissas(array)))

    def _look(self, instruction: Instruction, number: int, values: npt.NDArray[np.float64]) -> None:
        if not values.size:
            return
        shapes = list(array_shapes(instruction.shape))
        kinds = [part.element_type for part in shapes if part.element_type.is_inexact]
        unit = max(self.units.get(instruction, 0.0), epsilon(kinds[min(number, len(kinds) - 1)]))
        for other, sample in self.samples.items():
            near = min(self._near(other, sample.size), _BY_CHANCE / values.size)
            places = np.searchsorted(values, sample)
            below, above = values[np.maximum(places - 1, 0)], values[np.minimum(places, values.size - 1)]
            share = float((np.minimum(np.abs(sample - below), np.abs(above - sample)) <= near).mean())
            if share >= _WHOLE:
                self.whole.setdefault(other, {})[instruction] = unit
            if share >= _PART:
                self.part.setdefault(other, {})[instruction] = unit

    def _near(self, other: Instruction, size: int) -> float:
        if size < _TELLING:
            return _NEAR
        return max(_NEAR, min(self.folded / 2, _OF_ROUNDING * self.wanted[other].unit))


def _float_parts(value: Any) -> Iterator[Array]:
    """The float arrays of a value; complex ones as their parts."""
    if isinstance(value, tuple):
        for part in value:
            yield from _float_parts(part)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc":
        flat = np.ascontiguousarray(value).reshape(-1)
        yield flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _mantissas(array: Array, above: float = 0.0) -> npt.NDArray[np.float64]:
    """Larger magnitudes without their powers of two: signs and those change nothing about what is rounded."""
    with np.errstate(all="ignore"):
        numbers = np.abs(array[np.isfinite(array)]).astype(np.float64)
        found: npt.NDArray[np.float64] = np.frexp(numbers[numbers > above])[0]
    return found
