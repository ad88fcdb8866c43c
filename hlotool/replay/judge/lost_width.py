"""Roundings that only one of two programs does: width that the tested one lost, or kept.

A narrow type is no excuse for itself. A program that makes an f32 sum in bf16 is as far off as its own legal
executions, so these must not judge it. Both programs are executed in f64, where they compute the same values
whatever they round, and every value that the tested one rounds is looked for among those of the reference. A
value that the reference rounds as coarsely, too, wherever that is, may be rounded. One that it has in a wider
type only has lost its width, unless the target may round it (operands of default-precision products on a TPU,
those of an `algorithm`). What the reference never computes, a product in another order, says nothing.

The other way round, a value that only the reference rounds kept more than its type has: that is legal (excess
precision) unless the compiler was told not to (`xla_allow_excess_precision=false`).

Both count for a result only as far as they change it: the program is executed once more without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotool.backends.base import Value
from hlotool.backends.numpy.rounding_errors import has_default_precision
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.ir.walk import Context, contexts
from hlotool.numerics import thresholds
from hlotool.numerics.contributions import rounding_epsilon
from hlotool.numerics.facts import origin_of
from hlotool.numerics.retyping import Precision, precision_of
from hlotool.numerics.ulp import epsilon
from hlotool.replay.freedoms import Freedoms
from hlotool.replay.judge.ensemble import Ensemble
from hlotool.replay.judge.judgement import Leaf
from hlotool.replay.judge.product_uses import feeds_products_only

#: Elements of a value that are looked for, and how many visits of an instruction are looked at: the first
#: iterations of a loop.
_SAMPLE, _VISITS = 32, 4
#: Elements that are sorted, over all values of a program: about three seconds.
_ELEMENTS = 30_000_000
#: Relative difference of numbers in f64 that are one value: compilers fold constants in f32. Among many
#: numbers one is that near by chance, so that the difference is smaller where there are more.
_NEAR, _BY_CHANCE = 2.0**-20, 0.05
#: Shares of a sample that a value must have to be the same one, and to be a part of it: a compiler may round
#: an array of which the program rounds a slice.
_WHOLE, _PART = 0.9, 0.1


@dataclass(frozen=True, slots=True)
class Narrowing:
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


def _units(instruction: Instruction) -> Iterator[float]:
    """What the arrays of a result are rounded to, where an instruction rounds to less than f32."""
    if instruction.opcode in ("constant", "parameter", "fusion", "while", "call", "conditional", "tuple"):
        return
    for part in array_shapes(instruction.shape):
        kind = part.element_type
        if instruction.opcode == "reduce-precision" or kind.is_narrow_float:
            unit = rounding_epsilon(instruction, kind)
            if unit > epsilon(ElementType.F32):
                yield unit


def _adds_step_by_step(instruction: Instruction) -> bool:
    """Whether it rounds every partial sum to the type of its result."""
    return "to_apply" in instruction.attributes and instruction.opcode not in ("call", "map")


def _unit_of_reducer(instruction: Instruction) -> float:
    """What every step of a reduction in a wide type is rounded to; 0 where that is its own type."""
    if not _adds_step_by_step(instruction):
        return 0.0
    steps = instruction.computation("to_apply").instructions
    return max((unit for step in steps for unit in _units(step)), default=0.0)


@dataclass(slots=True, eq=False)
class _Sampler:
    """A probe that keeps a few elements of each value that is rounded: those that lose something by it."""

    wanted: Mapping[Instruction, Narrowing]
    samples: dict[Instruction, npt.NDArray[np.float64]] = field(default_factory=dict)

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        narrowing = self.wanted.get(instruction)
        if narrowing is None or instruction in self.samples:
            return
        for part in _float_parts(value):
            found = _mantissas(part)
            lossy = found if narrowing.adds else found[_is_rounded(found, narrowing.unit)]
            if lossy.size:
                distinct = np.unique(lossy[:: max(1, lossy.size // (4 * _SAMPLE))])
                step = max(1, distinct.size // _SAMPLE)
                self.samples[instruction] = distinct[::step][:_SAMPLE]
                return


def _is_rounded(mantissas: npt.NDArray[np.float64], unit: float) -> npt.NDArray[np.bool_]:
    """Which numbers in [0.5, 1) a type with this ulp at 1 is off by, and by more than f32 is."""
    units = mantissas / (unit / 2)
    lost: npt.NDArray[np.bool_] = np.abs(units - np.rint(units)) * unit > 8 * epsilon(ElementType.F32)
    return lost


@dataclass(slots=True, eq=False)
class _Searcher:
    """A probe that looks for samples among all values of a program.

    Attributes:
        samples: by instruction of the other program.
        units: what this program rounds a result to, where that is less than its type.
        adds: instructions that add up in that type.
    """

    samples: Mapping[Instruction, npt.NDArray[np.float64]]
    units: Mapping[Instruction, float]
    adds: frozenset[Instruction]
    #: By sample: where it is found whole, with the unit of the type there; and where a part of it is.
    whole: dict[Instruction, dict[Instruction, float]] = field(default_factory=dict)
    part: dict[Instruction, dict[Instruction, float]] = field(default_factory=dict)
    _visits: dict[Instruction, int] = field(default_factory=dict)
    _left: int = _ELEMENTS

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        visits = self._visits[instruction] = self._visits.get(instruction, 0) + 1
        if visits > _VISITS or instruction.opcode in ("fusion", "call", "while", "conditional", "tuple"):
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
        near = min(_NEAR, _BY_CHANCE / values.size)
        for other, sample in self.samples.items():
            places = np.searchsorted(values, sample)
            below, above = values[np.maximum(places - 1, 0)], values[np.minimum(places, values.size - 1)]
            share = float((np.minimum(np.abs(sample - below), np.abs(above - sample)) <= near).mean())
            if share >= _WHOLE:
                self.whole.setdefault(other, {})[instruction] = unit
            if share >= _PART:
                self.part.setdefault(other, {})[instruction] = unit


def _float_parts(value: Any) -> Iterator[Array]:
    """The float arrays of a value; complex ones as their parts."""
    if isinstance(value, tuple):
        for part in value:
            yield from _float_parts(part)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc":
        flat = np.ascontiguousarray(value).reshape(-1)
        yield flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _mantissas(array: Array) -> npt.NDArray[np.float64]:
    """Magnitudes without their powers of two: signs and those change nothing about what is rounded."""
    with np.errstate(all="ignore"):
        numbers = np.abs(array[np.isfinite(array)]).astype(np.float64)
        found: npt.NDArray[np.float64] = np.frexp(numbers[numbers > 0])[0]
    return found


class Widths:
    """What only one of two programs rounds.

    Args:
        reference: executions of the program as it should be.
        tested: executions of the program in question; None: there is none.
        freedoms: what the target allows.
    """

    def __init__(self, reference: Ensemble, tested: Ensemble | None, freedoms: Freedoms) -> None:
        self._reference = reference
        self._tested = tested
        self._freedoms = freedoms
        self._runs: dict[tuple[bool, frozenset[Instruction]], list[Array] | None] = {}

    def lost(self, leaf: Leaf) -> str:
        """Why the tested program must not round what it rounds; empty where that does not change a leaf."""
        if self._tested is None or not self._narrower:
            return self._against_orders(leaf)
        if not self._changes(leaf, self._tested, self._narrower, leaf.actual):
            return self._against_orders(leaf)
        first = self._narrower[0]
        what = "adds up in" if first.adds else "rounds to"
        wide = self._held_in[first.instruction]
        text = f"the tested program {what} {first.type_text} at {origin_of(first.instruction)} what the "
        more = f", and {len(self._narrower) - 1} more values" if len(self._narrower) > 1 else ""
        return f"{text}reference has in {wide}{more}: the target may not lose width there"

    def removed(self, leaf: Leaf) -> str:
        """Which roundings of the reference the tested program left out, in words; empty where that does not
        change a leaf."""
        if self._tested is None or not self._wider:
            return ""
        if not self._changes(leaf, self._reference, self._wider, leaf.expected):
            return ""
        first = self._wider[0]
        cast = "a cast" if first.instruction.opcode == "convert" else "a rounding"
        more = f", and {len(self._wider) - 1} more" if len(self._wider) > 1 else ""
        where = origin_of(first.instruction)
        return f"{cast} to {first.type_text} was removed (excess precision): {where} of the reference{more}"

    def _against_orders(self, leaf: Leaf) -> str:
        if self._freedoms.excess_precision or not (removed := self.removed(leaf)):
            return ""
        return f"{removed}; xla_allow_excess_precision=false asks for every rounding"

    @cached_property
    def dropped(self) -> str:
        """The `reduce-precision` of the reference that the tested program has fewer of, in words."""
        if self._tested is None:
            return ""
        own, other = (_reductions(side.side.module) for side in (self._reference, self._tested))
        missing = [those[0] for bits, those in own.items() if len(those) > len(other.get(bits, ()))]
        return f"{origin_of(missing[0])} of the reference was dropped, which asks for it" if missing else ""

    def _changes(self, leaf: Leaf, side: Ensemble, those: Sequence[Narrowing], value: Array) -> bool:
        """Whether what some instructions round makes a good part of what a leaf is off by.

        Args:
            leaf: in question.
            side: whose program rounds.
            those: instructions of it.
            value: that it returned.
        """
        unrounded = self._unrounded(side, frozenset(one for n in those for one in _with_steps(n)))
        # Without narrow types sums of one are not rounded at each step, whatever rounds besides.
        plain = [] if any(n.adds for n in those) else self._unrounded(side, frozenset())
        if unrounded is None or plain is None:
            return False
        without, value = unrounded[leaf.number], plain[leaf.number] if plain else value
        if without.shape != value.shape or value.shape != leaf.expected.shape:
            return False
        if not leaf.is_inexact:
            return not np.array_equal(without, value)
        kind = np.complex128 if leaf.shape.element_type.is_complex else np.float64
        with np.errstate(all="ignore"):
            moved = np.abs(without.astype(kind) - value.astype(kind))
            off = np.abs(leaf.expected.astype(kind) - leaf.actual.astype(kind))
            if np.array_equal(np.isfinite(moved), np.isfinite(off)):
                moved, off = moved[np.isfinite(moved)], off[np.isfinite(off)]
            return bool(np.linalg.norm(moved) > thresholds.SHOWN.value * np.linalg.norm(off))

    def _unrounded(self, side: Ensemble, those: frozenset[Instruction]) -> list[Array] | None:
        """The leaves of one side where some instructions do not round; None where it cannot be executed."""
        key = side is self._tested, those
        if key not in self._runs:
            try:
                self._runs[key] = side.unrounded(those)
            except HlotoolError:
                self._runs[key] = None
        return self._runs[key]

    @cached_property
    def _narrower(self) -> list[Narrowing]:
        """What the tested program rounds, and the reference has in a wider type only."""
        if self._tested is None:
            return []
        own = narrowings(self._tested.side.module)
        found = self._found(own, self._tested, self._reference)
        if found is None:
            return []
        asked = _asked(self._reference.side.module)
        lost = []
        for narrowing in own:
            instruction = narrowing.instruction
            whole, part = found.whole.get(instruction, {}), found.part.get(instruction, {})
            is_known = any(
                unit >= narrowing.unit and (not narrowing.adds or i in found.adds) for i, unit in part.items()
            )
            if is_known or not whole:
                continue
            if not narrowing.adds and self._may_round(narrowing, part, asked):
                continue
            self._held_in[instruction] = _type_text(min(whole, key=lambda i: whole[i]))
            lost.append(narrowing)
        return lost

    @cached_property
    def _held_in(self) -> dict[Instruction, str]:
        return {}

    def _may_round(
        self, narrowing: Narrowing, part: Mapping[Instruction, float], asked: Mapping[Instruction, float]
    ) -> bool:
        """Whether the target may round a value, since nothing but products reads it."""
        assert self._tested is not None
        module, instruction = self._tested.side.module, narrowing.instruction
        if any(asked.get(one, 0.0) >= narrowing.unit for one in part):
            return feeds_products_only(module, instruction, _is_product)
        if self._freedoms.product.unit < narrowing.unit:
            return False
        return feeds_products_only(module, instruction, has_default_precision)

    @cached_property
    def _wider(self) -> list[Narrowing]:
        """What the reference rounds, and the tested program has in a wider type only."""
        if self._tested is None:
            return []
        own = [n for n in narrowings(self._reference.side.module) if not n.adds]
        own = [n for n in own if n.instruction.opcode != "reduce-precision"]
        found = self._found(own, self._reference, self._tested)
        if found is None:
            return []
        return [
            n
            for n in own
            if found.whole.get(n.instruction)
            and all(unit < n.unit for unit in found.part.get(n.instruction, {}).values())
        ]

    def _found(self, own: Iterable[Narrowing], side: Ensemble, other: Ensemble) -> _Searcher | None:
        """Where `other` has the values that `side` rounds; None where they cannot be looked at."""
        wanted = {narrowing.instruction: narrowing for narrowing in own}
        if not wanted or side.side.watch is None or other.side.watch is None:
            return None
        sampler = _Sampler(wanted)
        rounded = narrowings(other.side.module)
        try:
            side.watch_plainly(sampler, wide=True)
            units = {n.instruction: n.unit for n in rounded}
            adds = frozenset(n.instruction for n in rounded if n.adds)
            searcher = _Searcher(sampler.samples, units, adds)
            other.watch_plainly(searcher, wide=True)
        except (HlotoolError, MemoryError):
            return None
        return searcher


def _with_steps(narrowing: Narrowing) -> Iterator[Instruction]:
    """What rounds, and what does so at every step of it."""
    yield narrowing.instruction
    if narrowing.adds:
        yield from narrowing.instruction.computation("to_apply").instructions


def _reductions(module: Module) -> dict[Precision, list[Instruction]]:
    """Each `reduce-precision`, by the bits that it leaves."""
    found: dict[Precision, list[Instruction]] = {}
    for instruction in module.instructions():
        if instruction.opcode == "reduce-precision":
            found.setdefault(precision_of(instruction), []).append(instruction)
    return found


def _is_product(instruction: Instruction) -> bool:
    return instruction.row.opcode_class is Class.CONTRACTION


def _asked(module: Module) -> dict[Instruction, float]:
    """The operands of products that ask for an algorithm in bf16 or TF32."""
    found: dict[Instruction, float] = {}
    for instruction in module.instructions():
        algorithm = str(instruction.attributes.get("algorithm", "")).lower()
        if _is_product(instruction) and algorithm:
            unit = {"bf16": 2.0**-7, "tf32": 2.0**-10, "f16": 2.0**-10}
            known = [value for name, value in unit.items() if name in algorithm]
            found |= {operand: max(known, default=0.0) for operand in instruction.operands}
    return found


def _type_text(instruction: Instruction) -> str:
    shape = instruction.shape
    return str(shape.element_type) if isinstance(shape, ArrayShape) else "a wider type"
