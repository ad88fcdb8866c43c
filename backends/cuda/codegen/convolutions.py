"""Convolution as sums of products: implicitly a matrix of patches times the kernel.

XLA: operation_semantics.md#convwithgeneralpadding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlotool.backends.cuda.codegen.contractions import (
    Contraction,
    as_kind,
    common_kind,
    summed,
    zero_of,
)
from hlotool.backends.cuda.codegen.elements import array_shape, element_type, refuse_structure
from hlotool.backends.cuda.codegen.emit import Emitter, writes
from hlotool.backends.cuda.codegen.indices import Expr, Index, digit
from hlotool.backends.cuda.codegen.movement import in_window
from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
from hlotool.ir.module import Instruction


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
