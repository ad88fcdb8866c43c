"""Changes to one computation: new instructions around a given one, other operands, other attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.edit import Editor, with_attributes
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ArrayShape, ElementType, Layout, Shape


class Edit:
    """One fault in the making.

    New instructions go before the target until `after` is called, then behind it.

    Args:
        editor: of the computation, which is changed.
        target: the instruction that goes wrong.
        rng: source of all choices.
    """

    def __init__(self, editor: Editor, target: Instruction, rng: np.random.Generator) -> None:
        self.computation = editor.computation
        self.rng = rng
        self._editor = editor
        self._target = target
        self._has_layouts = any(_layout(i.shape) is not None for i in self.computation.instructions)
        self._own: list[Instruction] = []
        self._before: Instruction | None = target

    def after(self) -> None:
        """What is made from now on follows the target."""
        following = list(self._editor)
        position = following.index(self._target) + 1
        self._before = following[position] if position < len(following) else None

    def op(
        self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attributes: AttributeValue
    ) -> Instruction:
        """A new instruction; its shape is inferred when None."""
        result = infer_shape(opcode, [o.shape for o in operands], attributes) if shape is None else shape
        return self._insert(
            Instruction("fault", opcode, self._laid_out(result, operands), operands, attributes)
        )

    def constant(self, value: Any, like: ArrayShape) -> Instruction:
        """A scalar constant of the element type of `like`."""
        held = np.full((), value, dtype_of(like.element_type))
        shape = ArrayShape(like.element_type, (), layout=_descending(0) if self._has_layouts else None)
        return self._insert(Instruction("fault", "constant", shape, literal=Literal(shape, held)))

    def filled(self, value: Any, like: ArrayShape) -> Instruction:
        """An array of the shape of `like` that holds `value` everywhere."""
        scalar = self.constant(value, like)
        return self.op("broadcast", scalar, shape=like, dimensions=()) if like.rank else scalar

    def index(self, shape: ArrayShape, dimension: int) -> Instruction:
        """The s32 array of the dimensions of `shape` that holds the index along `dimension`."""
        return self.op("iota", shape=of_type(shape, ElementType.S32), iota_dimension=dimension)

    def where(self, condition: Instruction, chosen: Instruction, otherwise: Instruction) -> Instruction:
        """`select`, with the shape of what is chosen."""
        return self.op("select", condition, chosen, otherwise, shape=chosen.shape)

    def is_at(self, shape: ArrayShape, dimension: int, position: int, direction: str = "EQ") -> Instruction:
        """Whether the index along `dimension` compares with `position`."""
        indices = self.index(shape, dimension)
        limit = self.filled(position, of_type(shape, ElementType.S32))
        return self.op("compare", indices, limit, direction=direction)

    def element(self, shape: ArrayShape) -> Instruction:
        """True at one element of an array of `shape`, drawn at random; the array is no scalar."""
        position = [int(self.rng.integers(size)) for size in shape.dims]
        mask = self.is_at(shape, 0, position[0])
        for dimension in range(1, shape.rank):
            mask = self.op("and", mask, self.is_at(shape, dimension, position[dimension]))
        return mask

    def choose(self, options: Sequence[Any]) -> Any:
        """One of several, at random."""
        return options[int(self.rng.integers(len(options)))]

    def replace(self, new: Instruction) -> None:
        """Let everybody who read the target read `new`, but for what this edit made."""
        self._editor.replace_uses(self._target, new, but=self._own)

    def set_operand(self, number: int, new: Instruction) -> None:
        """Give the target another operand."""
        operands = list(self._target.operands)
        operands[number] = new
        self.set_operands(operands)

    def set_operands(self, operands: Sequence[Instruction]) -> None:
        """Give the target other operands."""
        self._editor.set_operands(self._target, operands)

    def set_root(self, new: Instruction) -> None:
        """Return another instruction."""
        self._editor.set_root(new)

    def set_attributes(self, **attributes: AttributeValue) -> None:
        """Change attributes of the target."""
        self._target.attributes = with_attributes(self._target.attributes, **attributes)

    def _insert(self, instruction: Instruction) -> Instruction:
        self._own.append(instruction)
        return self._editor.add(instruction, self._before)

    def _laid_out(self, shape: Shape, operands: Sequence[Instruction]) -> Shape:
        """With a layout where the module has layouts: the operand's when it has the same dimensions."""
        if not isinstance(shape, ArrayShape) or not self._has_layouts or shape.layout is not None:
            return shape
        for operand in (*operands, self._target):
            if isinstance(operand.shape, ArrayShape) and operand.shape.dims == shape.dims:
                return replace(shape, layout=operand.shape.layout)
        return replace(shape, layout=_descending(shape.rank))


def of_type(shape: ArrayShape, element_type: ElementType) -> ArrayShape:
    """The same dimensions and layout with another element type."""
    return replace(shape, element_type=element_type)


def _descending(rank: int) -> Layout:
    """The row-major layout."""
    return Layout(tuple(range(rank - 1, -1, -1)))


def _layout(shape: Shape) -> Layout | None:
    return shape.layout if isinstance(shape, ArrayShape) else None
