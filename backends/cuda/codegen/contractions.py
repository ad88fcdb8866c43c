"""Sums of products: dot and its kin, and convolution as a matrix of patches times the kernel.

They become what `product_tiles` and the loop of one thread make of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

import numpy as np

from hlotool.backends.cuda.codegen.elements import (
    NotGenerated,
    array_shape,
    computed,
    converted,
    element_type,
    finished,
    literal,
    refuse_structure,
)
from hlotool.backends.cuda.codegen.elementwise import binary
from hlotool.backends.cuda.codegen.emit import Emitter, writes
from hlotool.backends.cuda.codegen.indices import Expr, Index, digit, split
from hlotool.backends.cuda.codegen.movement import in_window
from hlotool.ir.arrays import dtype_of
from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Writes the factor at an index of the result and one of the summed dimensions, in the type of the sum.
Factor = Callable[[Emitter, Index, Sequence[Expr]], str]

#: Writes what must be tested at the same place for there to be a term.
Tests = Callable[[Emitter, Index, Sequence[Expr]], list[str]]


@dataclass(frozen=True, slots=True)
class Contraction:
    """Each element of the result is a sum of products of two factors.

    Attributes:
        instruction: the dot or convolution.
        kind: type in which products and sums are computed.
        terms: sizes of the summed dimensions.
        batch: dimensions of the result that both factors depend on.
        rows: that only the left one depends on.
        columns: that only the right one depends on.
        left: the left factor.
        right: the right factor.
        present: tests whether a term is added; None where all are. The left factor is 0 in the others, so
            that only a sum that is NaN can show that they were added nevertheless.
    """

    instruction: Instruction
    kind: ElementType
    terms: tuple[int, ...]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    left: Factor
    right: Factor
    present: Tests | None = None

    def sizes(self, dimensions: Sequence[int]) -> list[int]:
        """The sizes of some dimensions of the result."""
        dims = array_shape(self.instruction).dims
        return [dims[d] for d in dimensions]

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """The dimensions of the result: batch, rows and columns."""
        return self.batch, self.rows, self.columns

    @property
    def counts(self) -> list[int]:
        """How many elements there are along batch, rows and columns."""
        return [prod(self.sizes(dimensions)) for dimensions in self.parts]

    @property
    def length(self) -> int:
        """Number of terms of a sum."""
        return prod(self.terms)

    def accumulated(self, total: str, left: str, right: str) -> str:
        """The sum after one more term."""
        product = binary("multiply", self.kind, left, right)
        return binary("add", self.kind, total, f"({product})")

    def result(self, total: str) -> str:
        """A sum in the type of the result, rounded once."""
        kind = element_type(self.instruction)
        if kind.is_complex or self.kind.is_complex:
            return converted(total, self.kind, kind)
        return finished(f"({computed(kind)}){total}", kind)


def zero_of(kind: ElementType) -> str:
    """The expression of a zero."""
    return literal(np.zeros((), dtype_of(kind)), kind)


def common_kind(instruction: Instruction) -> ElementType:
    """The type in which products of the operands are computed and summed.

    Integers wrap in the type of the result. Otherwise the widest type takes part, and narrow floats are f32.

    Raises:
        NotGenerated: floats make an integer.
    """
    result = element_type(instruction)
    kinds = [element_type(operand) for operand in instruction.operands]
    if not result.is_inexact:
        if any(kind.is_inexact for kind in kinds):
            raise NotGenerated(f"{result} of {kinds[0]} and {kinds[1]}", instruction)
        return result
    held = [ElementType.F32 if kind.is_narrow_float else kind for kind in (result, *kinds) if kind.is_inexact]
    is_double = any(kind.real_part is ElementType.F64 for kind in held)
    if any(kind.is_complex for kind in held):
        return ElementType.C128 if is_double else ElementType.C64
    return ElementType.F64 if is_double else ElementType.F32


def as_kind(emitter: Emitter, value: str, source: ElementType, kind: ElementType) -> str:
    """A name of `value` in the type of the sum."""
    return value if source is kind else emitter.define(computed(kind), converted(value, source, kind))


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """Roles of the dimensions of one operand.

    Attributes:
        batch: paired with those of the other operand; lead the result.
        contracting: summed over.
        free: the others.
    """

    batch: tuple[int, ...]
    contracting: tuple[int, ...]
    free: tuple[int, ...]


def dot_dimensions(instruction: Instruction, operand: int) -> DotDimensions:
    """The roles of the dimensions of the left operand (0) or of the right one (1)."""
    side = ("lhs", "rhs")[operand]
    batch, summed = (instruction.integers(f"{side}_{role}_dims", ()) for role in ("batch", "contracting"))
    rank = array_shape(instruction.operands[operand]).rank
    return DotDimensions(batch, summed, tuple(d for d in range(rank) if d not in (*batch, *summed)))


def dot_contraction(instruction: Instruction) -> Contraction:
    """A dot, perhaps with scales, as a contraction.

    Raises:
        NotGenerated: its operands are sparse or scaled, or only one of them has batch dimensions.
    """
    refuse_structure(instruction)
    count = 4 if instruction.opcode == "scaled-dot" else 2
    left, right = (dot_dimensions(instruction, n) for n in (0, 1))
    rank = len(left.batch) + len(left.free) + len(right.free)
    if len(instruction.operands) != count or rank != array_shape(instruction).rank:
        raise NotGenerated("unlike batch dimensions, or more operands than two", instruction)
    kind = common_kind(instruction)
    batch = tuple(range(len(left.batch)))
    rows = tuple(len(batch) + i for i in range(len(left.free)))
    columns = tuple(len(batch) + len(rows) + i for i in range(len(right.free)))
    lhs_dims = array_shape(instruction.operands[0]).dims
    terms = tuple(lhs_dims[d] for d in left.contracting)
    factors = (_factor(instruction, 0, left, rows, kind), _factor(instruction, 1, right, columns, kind))
    return Contraction(instruction, kind, terms, batch, rows, columns, *factors)


def _factor(
    instruction: Instruction, number: int, dims: DotDimensions, free: Sequence[int], kind: ElementType
) -> Factor:
    operand = instruction.operands[number]
    scale = instruction.operands[2 + number] if instruction.opcode == "scaled-dot" else None

    def factor(emitter: Emitter, index: Index, term: Sequence[Expr]) -> str:
        places = dict(zip(dims.batch, index)) | dict(zip(dims.contracting, term))
        places |= {d: index[place] for d, place in zip(dims.free, free)}
        place = [places[d] for d in range(len(places))]
        value = as_kind(emitter, emitter.value(operand, place), element_type(operand), kind)
        if scale is None or not array_shape(scale).rank:
            return value
        return _scaled(emitter, value, scale, _block(place, operand, scale), kind)

    return factor


def _block(place: Sequence[Expr], operand: Instruction, scale: Instruction) -> list[Expr]:
    """The index of the scale that covers an element."""
    sizes = zip(array_shape(operand).dims, array_shape(scale).dims)
    steps = [size // blocks if blocks else 1 for size, blocks in sizes]
    return [digit(part, step, None) for part, step in zip(place, steps)]


def _scaled(
    emitter: Emitter, value: str, scale: Instruction, place: Sequence[Expr], kind: ElementType
) -> str:
    factor = as_kind(emitter, emitter.value(scale, place), element_type(scale), kind)
    return emitter.define(computed(kind), binary("multiply", kind, value, factor))


@writes("dot", "scaled-dot")
def dot(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The sum of products over the contracting dimensions."""
    return (summed(emitter, dot_contraction(instruction), index),)


def summed(emitter: Emitter, contraction: Contraction, index: Index) -> str:
    """One element of the result: a loop over the terms, in row-major order."""
    total = sum_of_terms(emitter, contraction, index)
    return emitter.define(computed(element_type(contraction.instruction)), contraction.result(total))


def sum_of_terms(emitter: Emitter, contraction: Contraction, index: Index) -> str:
    """The sum for one element, in the type of the sum, without terms that are not present."""
    kind = contraction.kind
    total = emitter.variable(kind, zero_of(kind))
    with emitter.loops(contraction.terms) as term:
        tests = [] if contraction.present is None else contraction.present(emitter, index, term)
        with emitter.where(tests) if tests else nullcontext():
            left, right = (f(emitter, index, term) for f in (contraction.left, contraction.right))
            emitter.add(f"{total} = {contraction.accumulated(total, left, right)};")
    return total


def index_of(contraction: Contraction, batch: Expr, row: Expr, column: Expr) -> Index:
    """The index of the result at positions in its three parts."""
    index: dict[int, Expr] = {}
    for dimensions, position in zip(contraction.parts, (batch, row, column)):
        index |= dict(zip(dimensions, split(position, contraction.sizes(dimensions))))
    return tuple(index[d] for d in range(len(index)))


@writes("convolution")
def convolution(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A loop over the window and the features of the group."""
    return (summed(emitter, convolution_contraction(instruction), index),)


def convolution_contraction(instruction: Instruction) -> Contraction:
    """A convolution as a contraction: summed are the window's dimensions, then the features.

    Its columns are the features of the result; groups make the left factor depend on them, too, and then
    there are only rows.

    Raises:
        NotGenerated: its operands are sparse or scaled.
    """
    sides = _Sides.of(instruction)
    labels = sides.labels
    kernel = array_shape(instruction.operands[1]).dims
    terms = (*(dim.size for dim in sides.window), kernel[labels.kernel_input_feature])
    places = {labels.output_batch, *labels.output_spatial}
    columns = (labels.output_feature,) if sides.groups == 1 else ()
    rows = tuple(sorted(places)) if columns else tuple(sorted({*places, labels.output_feature}))
    kind = common_kind(instruction)
    # XLA skips the holes of a dilated operand, but multiplies padding where there are none.
    has_holes = kind.is_inexact and any(dim.base_dilation > 1 for dim in sides.window)
    present = sides.present if has_holes else None
    return Contraction(instruction, kind, terms, (), rows, columns, sides.image, sides.weights, present)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two factors.

    Attributes:
        instruction: the convolution.
        labels: roles of the dimensions.
        window: its spatial dimensions.
        feature_groups: parts of the features.
        batch_groups: parts of the batch.
    """

    instruction: Instruction
    labels: ConvolutionDimensions
    window: tuple[WindowDim, ...]
    feature_groups: int
    batch_groups: int

    @classmethod
    def of(cls, instruction: Instruction) -> _Sides:
        """Read off the attributes."""
        refuse_structure(instruction)
        labels = instruction.attribute("dim_labels", ConvolutionDimensions)
        feature, batch = (instruction.integer(f"{name}_group_count", 1) for name in ("feature", "batch"))
        return cls(instruction, labels, instruction.window.dims, feature, batch)

    @property
    def groups(self) -> int:
        """Number of groups of either kind."""
        return max(self.feature_groups, self.batch_groups)

    def image(self, emitter: Emitter, index: Index, term: Sequence[Expr]) -> str:
        """The element of the input under a position of the window; 0 where there is none."""
        operand, labels = self.instruction.operands[0], self.labels
        kind = common_kind(self.instruction)
        tests, place = self._under(emitter, index, term)
        places = {labels.input_batch: index[labels.output_batch], labels.input_feature: term[-1]}
        places |= dict(zip(labels.input_spatial, place))
        self._into_group(places, index)
        result = emitter.variable(kind, zero_of(kind))
        with emitter.where(tests):
            value = emitter.value(operand, [places[d] for d in range(len(places))])
            emitter.add(f"{result} = {as_kind(emitter, value, element_type(operand), kind)};")
        return result

    def present(self, emitter: Emitter, index: Index, term: Sequence[Expr]) -> list[str]:
        """What must be tested for an element of the input to lie under a position of the window."""
        return self._under(emitter, index, term)[0]

    def _under(self, emitter: Emitter, index: Index, term: Sequence[Expr]) -> tuple[list[str], list[Expr]]:
        """These tests, and the place of the element among the spatial dimensions."""
        dims = array_shape(self.instruction.operands[0]).dims
        windows = [index[d] for d in self.labels.output_spatial]
        sizes = [dims[d] for d in self.labels.input_spatial]
        return in_window(emitter, self.window, windows, term[:-1], sizes)

    def _into_group(self, places: dict[int, Expr], index: Index) -> None:
        """Move the place in the input to the group that makes this feature of the result."""
        if self.groups == 1:
            return
        labels, dims = self.labels, array_shape(self.instruction.operands[0]).dims
        features = array_shape(self.instruction).dims[labels.output_feature]
        group = digit(index[labels.output_feature], max(1, features // self.groups), None)
        moved = labels.input_feature if self.feature_groups > 1 else labels.input_batch
        places[moved] = group * (dims[moved] // self.groups) + places[moved]

    def weights(self, emitter: Emitter, index: Index, term: Sequence[Expr]) -> str:
        """The element of the kernel at a position of the window."""
        operand, labels = self.instruction.operands[1], self.labels
        *positions, feature = term
        places = {
            labels.kernel_output_feature: index[labels.output_feature],
            labels.kernel_input_feature: feature,
        }
        for d, position, dim in zip(labels.kernel_spatial, positions, self.window):
            places[d] = position * -1 + (dim.size - 1) if dim.reversal else position
        value = emitter.value(operand, [places[d] for d in range(len(places))])
        return as_kind(emitter, value, element_type(operand), common_kind(self.instruction))
