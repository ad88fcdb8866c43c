"""Reductions: what combines two values, and the loops over elements inside one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlotool.backends.cuda.codegen.elements import (
    NotGenerated,
    array_shape,
    computed,
    element_type,
    finished,
    integer_literal,
    literal,
)
from hlotool.backends.cuda.codegen.elementwise import binary
from hlotool.backends.cuda.codegen.emit import Emitter, writes
from hlotool.backends.cuda.codegen.indices import Index, digit, scaled, shifted, variable
from hlotool.backends.cuda.codegen.movement import ints, within
from hlotool.backends.numpy.monoids import Monoid, find_monoids
from hlotool.backends.numpy.scalar_form import ScalarForm, scalar_form
from hlotool.ir.attributes import Window
from hlotool.ir.dtypes import integer_limits
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType

#: Elements of windows that a single thread walks, whatever there are of them; cumulative sums of long arrays,
#: whose windows are as long as the array, are left to better algorithms.
_LARGE_WINDOW, _MOST_STEPS = 1024, 1 << 27


@dataclass(frozen=True, slots=True)
class Combiner:
    """The computation of a reduction.

    Attributes:
        form: it, from accumulators and elements to accumulators.
        monoids: one for each result, if each is a sum, product, extremum or the like.
        kinds: element types of the results.
    """

    form: ScalarForm
    monoids: tuple[Monoid, ...] | None
    kinds: tuple[ElementType, ...]

    @property
    def is_tree(self) -> bool:
        """Whether threads may share the elements among them."""
        return self.monoids is not None

    @property
    def held(self) -> tuple[ElementType, ...]:
        """Types of the accumulators: monoids of narrow floats accumulate in f32 and round once."""
        if self.monoids is None:
            return self.kinds
        return tuple(ElementType.F32 if kind.is_narrow_float else kind for kind in self.kinds)

    def combined(self, emitter: Emitter, left: Sequence[str], right: Sequence[str]) -> tuple[str, ...]:
        """Expressions of the accumulators after one more application."""
        if self.monoids is None:
            return emitter.apply(self.form, [*left, *right])
        pairs = zip(self.monoids, self.held, left, right)
        return tuple(_combine(monoid, kind, a, b) for monoid, kind, a, b in pairs)

    def identities(self) -> tuple[str, ...]:
        """Neutral elements of the monoids."""
        return tuple(_identity(m, kind) for m, kind in zip(self.monoids or (), self.held))

    def results(self, accumulators: Sequence[str]) -> tuple[str, ...]:
        """Accumulators in their declared types."""
        if self.monoids is None:
            return tuple(accumulators)
        return tuple(finished(a, kind, is_from_kind=True) for a, kind in zip(accumulators, self.kinds))


def combiner(instruction: Instruction) -> Combiner:
    """How a reduction combines values.

    Raises:
        NotGenerated: its computation is not made of elementwise operations on scalars.
    """
    computation = instruction.attributes.get("to_apply")
    form = scalar_form(computation) if isinstance(computation, Computation) else None
    if form is None:
        raise NotGenerated("its computation is not elementwise", instruction)
    monoids = find_monoids(form)
    kinds = tuple(element_type(output) for output in form.outputs)
    return Combiner(form, monoids, kinds)


def _combine(monoid: Monoid, kind: ElementType, a: str, b: str) -> str:
    operation = Instruction("combine", monoid.opcode, ArrayShape(kind, ()))
    return binary(operation, kind, kind, (a, b))


def _identity(monoid: Monoid, kind: ElementType) -> str:
    """The neutral element; -0 for sums of floats, since +0 + -0 is not -0."""
    opcode = monoid.opcode
    if kind is ElementType.PRED:
        return "true" if opcode in ("multiply", "minimum", "and") else "false"
    if kind.is_integer:
        low, high = integer_limits(kind)
        numbers = {"multiply": 1, "maximum": low, "minimum": high, "and": -1}
        return integer_literal(numbers.get(opcode, 0), kind)
    floats = {"multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}
    value = floats.get(opcode, -0.0)
    wide = complex(value, 0.0 if opcode == "multiply" else value) if kind.is_complex else value
    return literal(np.asarray(wide, np.complex128 if kind.is_complex else np.float64), kind)


@writes("reduce")
def reduce(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A loop over the reduced dimensions, in row-major order, that starts from the initial values."""
    combine = combiner(instruction)
    inputs, inits = _halves(instruction)
    reduced, kept = ints(instruction, "dimensions"), iter(index)
    accumulators = _accumulators(emitter, combine, inits)
    dims = array_shape(inputs[0]).dims
    counters = {d: emitter.name("j") for d in reduced}
    place = [variable(counters[d], dims[d]) if d in reduced else next(kept) for d in range(len(dims))]
    with emitter.block(" ".join(_loop(counters[d], dims[d]) for d in sorted(reduced))):
        values = [emitter.value(x, place) for x in inputs]
        _accumulate(emitter, combine, accumulators, values)
    return _results(emitter, combine, accumulators)


@writes("reduce-window")
def reduce_window(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The same over the elements of a window; positions of padding and dilation are left out.

    Reversed windows have the same elements. XLA: operation_semantics.md#reducewindow.
    """
    combine = combiner(instruction)
    inputs, inits = _halves(instruction)
    window = instruction.attributes.get("window")
    if not isinstance(window, Window):
        raise NotGenerated("attribute window is missing", instruction)
    steps = prod(dim.size for dim in window.dims)
    if steps > _LARGE_WINDOW and steps * prod(array_shape(inputs[0]).dims) > _MOST_STEPS:
        raise NotGenerated("a large window", instruction)
    accumulators = _accumulators(emitter, combine, inits)
    counters = [emitter.name("j") for _ in index]
    sizes = [dim.size for dim in window.dims]
    with emitter.block(" ".join(_loop(c, size) for c, size in zip(counters, sizes))):
        inside, place = [], []
        for part, counter, dim, size in zip(index, counters, window.dims, array_shape(inputs[0]).dims):
            reached = scaled(part, dim.stride) + scaled(variable(counter, dim.size), dim.window_dilation)
            at = shifted(reached, -dim.pad_low)
            inside += within(emitter, at, (size - 1) * dim.base_dilation + 1 if size else 0)
            if dim.base_dilation > 1:
                inside.append(f"{emitter.index(at)} % {dim.base_dilation} == 0")
            place.append(digit(at, dim.base_dilation, None))
        with emitter.block(f"if ({' && '.join(inside) or 'true'})"):
            values = [emitter.value(x, place) for x in inputs]
            _accumulate(emitter, combine, accumulators, values)
    return _results(emitter, combine, accumulators)


@writes("map")
def apply_map(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The computation on the operands' elements."""
    form = combiner(instruction).form
    return emitter.apply(form, [emitter.value(operand, index) for operand in instruction.operands])


def _halves(instruction: Instruction) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """Inputs and initial values."""
    count = len(instruction.operands) // 2
    return instruction.operands[:count], instruction.operands[count:]


def _loop(counter: str, size: int) -> str:
    return f"for (Index {counter} = 0; {counter} < {size}; ++{counter})"


def _accumulators(emitter: Emitter, combine: Combiner, inits: Sequence[Instruction]) -> list[str]:
    starts = [emitter.value(init, ()) for init in inits]
    return [emitter.variable(kind, start) for kind, start in zip(combine.held, starts)]


def _accumulate(emitter: Emitter, combine: Combiner, into: Sequence[str], values: Sequence[str]) -> None:
    combined = combine.combined(emitter, into, values)
    fresh = [emitter.define(computed(kind), text) for kind, text in zip(combine.held, combined)]
    for accumulator, value in zip(into, fresh):
        emitter.add(f"{accumulator} = {value};")


def _results(emitter: Emitter, combine: Combiner, accumulators: Sequence[str]) -> tuple[str, ...]:
    pairs = zip(combine.kinds, combine.results(accumulators))
    return tuple(emitter.define(computed(kind), text) for kind, text in pairs)
