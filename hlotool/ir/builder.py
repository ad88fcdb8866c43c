"""Programs without text, for tests and passes.

>>> from hlotool.ir.builder import Builder, array
>>> b = Builder("main")
>>> x = b.parameter(0, array("f32", 2, 3))
>>> module = b.build_module(b.op("add", x, b.op("transpose", x, shape=array("f32", 2, 3), dimensions=(0, 1))))
>>> print(module.to_text())
HloModule main
<BLANKLINE>
ENTRY %main (parameter: f32[2,3]) -> f32[2,3] {
  %parameter = f32[2,3] parameter(0)
  %transpose = f32[2,3] transpose(%parameter), dimensions={0,1}
  ROOT %add = f32[2,3] add(%parameter, %transpose)
}
<BLANKLINE>
<BLANKLINE>
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Names
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.shape_inference import infer_shape
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, Shape
from hlotool.ir.walk import reachable


def array(element_type: str | ElementType, *dims: int) -> ArrayShape:
    """A static array shape without layout."""
    return ArrayShape(_element_type(element_type), dims)


def _element_type(named: str | ElementType) -> ElementType:
    return named if isinstance(named, ElementType) else ELEMENT_TYPES[named]


class Builder:
    """Adds instructions to one computation, in order.

    Args:
        name: of the computation.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.instructions: list[Instruction] = []
        self._names = Names(())

    def parameter(self, number: int, shape: Shape, name: str = "parameter") -> Instruction:
        """Argument `number`."""
        return self.add(Instruction(name, "parameter", shape, parameter_number=number))

    def constant(
        self, value: npt.ArrayLike, element_type: str | ElementType, name: str = "constant"
    ) -> Instruction:
        """An array of known values."""
        held = np.array(value, dtype=dtype_of(_element_type(element_type)))
        shape = array(element_type, *held.shape)
        return self.add(Instruction(name, "constant", shape, literal=Literal(shape, held)))

    def op(
        self,
        opcode: str,
        *operands: Instruction,
        shape: Shape | None = None,
        name: str | None = None,
        **attributes: AttributeValue,
    ) -> Instruction:
        """Any other operation.

        Args:
            opcode: HLO name.
            operands: in order.
            shape: of the result; inferred when None.
            name: the opcode when None.
            attributes: by HLO name.

        Raises:
            VerificationError: the shape cannot be inferred.
        """
        result = infer_shape(opcode, [o.shape for o in operands], attributes) if shape is None else shape
        return self.add(Instruction(name or opcode, opcode, result, operands, attributes))

    def add(self, instruction: Instruction) -> Instruction:
        """An instruction made elsewhere; renamed when its name is taken."""
        instruction.name = self._names.fresh(instruction.name)
        self.instructions.append(instruction)
        return instruction

    def build(self, root: Instruction | None = None) -> Computation:
        """The computation; its root is the last instruction when None."""
        return Computation(self.name, self.instructions, root or self.instructions[-1])

    def build_module(
        self, root: Instruction | None = None, name: str | None = None, **attributes: AttributeValue
    ) -> Module:
        """A module whose entry is this computation, with all that it calls."""
        entry = self.build(root)
        return Module(name or self.name, reachable(entry), entry, attributes)
