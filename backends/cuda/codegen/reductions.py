"""Reductions: what combines two values, and the loops over elements inside one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from hlotool.backends.cuda.codegen.indices import Expr, Index, constant, split
from hlotool.backends.cuda.codegen.movement import in_window
from hlotool.backends.numpy.ordering import Monoid, find_monoids
from hlotool.facts.scalar_form import ScalarForm, is_choice, scalar_form
from hlotool.ir.arrays import integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Identity
from hlotool.ir.types import ElementType

#: Elements of windows that a single thread walks, whatever there are of them; cumulative sums of long arrays,
#: whose windows are as long as the array, are left to better algorithms.
_LARGE_WINDOW, _MOST_STEPS = 1024, 1 << 27


@dataclass(frozen=True, slots=True)
class Combiner:
    """The computation of a reduction.

    Attributes:
        form: the computation, from accumulators and elements to accumulators.
        monoids: one for each result, if each is a sum, product, extremum or the like.
        kinds: element types of the results.
        is_choice: each result is always one of two elements, as in an argmax.
    """

    form: ScalarForm
    monoids: tuple[Monoid, ...] | None
    kinds: tuple[ElementType, ...]
    is_choice: bool = False

    @property
    def is_tree(self) -> bool:
        """Whether threads may share the elements among them, in any order."""
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
        return tuple(binary(monoid.opcode, kind, a, b) for monoid, kind, a, b in pairs)

    def identities(self) -> tuple[str, ...]:
        """Neutral elements of the monoids."""
        return tuple(_identity(m, kind) for m, kind in zip(self.monoids or (), self.held))

    def results(self, accumulators: Sequence[str]) -> tuple[str, ...]:
        """Accumulators in their declared types."""
        if self.monoids is None:
            return tuple(accumulators)
        return tuple(finished(a, kind, is_from_kind=True) for a, kind in zip(accumulators, self.kinds))


@dataclass(frozen=True, slots=True)
class Accumulator:
    """What generated code holds of one reduction: a number, or a structure of several.

    Attributes:
        number: of the reduction in its kernel, or a name that nothing else has.
        combine: the computation.
    """

    number: int | str
    combine: Combiner

    @property
    def ctype(self) -> str:
        """Its C++ type."""
        held = self.combine.held
        return computed(held[0]) if len(held) == 1 else f"State{self.number}"

    @property
    def joins(self) -> str:
        """The name of the function that combines two."""
        return f"combine{self.number}"

    def packed(self, values: Sequence[str]) -> str:
        """One made of its parts."""
        return values[0] if len(values) == 1 else f"{self.ctype}{{{', '.join(values)}}}"

    def unpacked(self, accumulator: str) -> list[str]:
        """The parts of one."""
        count = len(self.combine.held)
        return [accumulator] if count == 1 else [f"{accumulator}.v{i}" for i in range(count)]

    def definitions(self) -> Iterator[str]:
        """The type, and the function that combines two."""
        held = self.combine.held
        if len(held) > 1:
            fields = " ".join(f"{computed(kind)} v{i};" for i, kind in enumerate(held))
            yield f"struct {self.ctype} {{ {fields} }};"
        inner = Emitter({})
        joined = self.combine.combined(inner, self.unpacked("a"), self.unpacked("b"))
        head = f"const auto {self.joins} = []({self.ctype} a, {self.ctype} b) INLINE -> {self.ctype} {{"
        yield " ".join([head, *inner.statements, f"return {self.packed(joined)}; }};"])


def combiner(instruction: Instruction) -> Combiner:
    """How a reduction combines values.

    Raises:
        NotGenerated: its computation is not made of elementwise operations on scalars.
    """
    form = scalar_form_of(instruction, "to_apply")
    kinds = tuple(element_type(output) for output in form.outputs)
    monoids = find_monoids(form)
    return Combiner(form, monoids, kinds, monoids is None and is_choice(form))


def scalar_form_of(instruction: Instruction, name: str) -> ScalarForm:
    """The computation that an instruction calls as `name`.

    Raises:
        NotGenerated: it is not made of elementwise operations on scalars.
    """
    form = scalar_form(instruction.computation(name))
    if form is None:
        raise NotGenerated("its computation is not elementwise", instruction)
    return form


def _identity(monoid: Monoid, kind: ElementType) -> str:
    """The neutral element; -0 for sums of floats, since +0 + -0 is not -0."""
    identity = monoid.identity
    if kind is ElementType.PRED:
        return "true" if identity in (Identity.ONE, Identity.HIGHEST, Identity.ALL_BITS) else "false"
    if kind.is_integer:
        low, high = integer_limits(kind)
        numbers = {Identity.ONE: 1, Identity.LOWEST: low, Identity.HIGHEST: high, Identity.ALL_BITS: -1}
        return integer_literal(numbers.get(identity, 0), kind)
    floats = {Identity.ONE: 1.0, Identity.LOWEST: -np.inf, Identity.HIGHEST: np.inf}
    value = floats.get(identity, -0.0)
    wide = complex(value, 0.0 if identity is Identity.ONE else value) if kind.is_complex else value
    return literal(np.asarray(wide, np.complex128 if kind.is_complex else np.float64), kind)


@writes("reduce")
def reduce(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A loop over the reduced dimensions, in row-major order, that starts from the initial values."""
    combine = combiner(instruction)
    inputs, inits = _halves(instruction)
    reduced, kept = sorted(instruction.integers("dimensions")), tuple(index)
    accumulators = _accumulators(emitter, combine, inits)
    dims = array_shape(inputs[0]).dims
    sizes = [dims[d] for d in reduced]
    length = prod(sizes)

    def values(parts: Sequence[Expr]) -> list[str]:
        counted, others = dict(zip(reduced, parts)), iter(kept)
        place = [counted[d] if d in counted else next(others) for d in range(len(dims))]
        return [emitter.value(x, place) for x in inputs]

    if combine.is_choice and length > 0:
        chosen = _chosen(emitter, combine, lambda n: values(split(constant(n), sizes)), 0, length)
        _accumulate(emitter, combine, accumulators, chosen)
    else:
        with emitter.loops(sizes) as counters:
            _accumulate(emitter, combine, accumulators, values(counters))
    return _results(emitter, combine, accumulators)


def _chosen(
    emitter: Emitter, combine: Combiner, values: Callable[[int], list[str]], begin: int, end: int
) -> list[str]:
    """A choice between elements in the order of `choices`: the largest power of two of them first."""
    if end - begin == 1:
        return values(begin)
    middle = begin + (1 << (end - begin - 1).bit_length() - 1)
    halves = [_chosen(emitter, combine, values, *part) for part in ((begin, middle), (middle, end))]
    combined = zip(combine.held, combine.combined(emitter, *halves))
    return [emitter.define(computed(kind), text) for kind, text in combined]


@writes("reduce-window")
def reduce_window(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A loop over the elements of a window; positions of padding and dilation are left out.

    Reversed windows have the same elements. XLA: operation_semantics.md#reducewindow.
    """
    combine = combiner(instruction)
    inputs, inits = _halves(instruction)
    window, dims = instruction.window.dims, array_shape(inputs[0]).dims
    sizes = [dim.size for dim in window]
    if prod(sizes) > _LARGE_WINDOW and prod(sizes) * prod(dims) > _MOST_STEPS:
        raise NotGenerated("a large window", instruction)
    accumulators = _accumulators(emitter, combine, inits)
    with emitter.loops(sizes) as counters:
        tests, place = in_window(
            emitter, instruction.window.dims, index, counters, array_shape(inputs[0]).dims
        )
        with emitter.where(tests):
            _accumulate(emitter, combine, accumulators, [emitter.value(x, place) for x in inputs])
    return _results(emitter, combine, accumulators)


@writes("map")
def apply_map(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The computation on the operands' elements."""
    values = [emitter.value(operand, index) for operand in instruction.operands]
    return emitter.apply(scalar_form_of(instruction, "to_apply"), values)


def _halves(instruction: Instruction) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...]]:
    """Inputs and initial values."""
    count = len(instruction.operands) // 2
    return instruction.operands[:count], instruction.operands[count:]


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
