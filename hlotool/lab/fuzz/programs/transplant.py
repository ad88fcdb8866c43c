"""Instructions of another program, carried into a graph: whatever no longer fits is made to fit, or replaced.

What is carried keeps its attributes; its operands are what became of the original ones, or, where these were
left behind, new arrays of their shape. Where an operand has another shape than it had, the result's shape is
inferred anew, or the operand is made into what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from hlotool.errors import VerificationError
from hlotool.ir.arrays import Literal
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit_programs import Cloner
from hlotool.ir.module import Computation, Instruction, computations_in
from hlotool.ir.opcodes import OPCODES, Class, opcodes_with
from hlotool.ir.shape_inference import can_infer, check_shape, infer_shape
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes, strip_layouts
from hlotool.lab.fuzz.programs.draft import Declined, Dims
from hlotool.lab.fuzz.programs.graph import STEPS, Graph, castable
from hlotool.lab.fuzz.programs.limits import objection

#: What speaks of the place where an instruction stood, not of what it computes.
_OF_THE_PLACE = frozenset(
    {"sharding", "frontend_attributes", "backend_config", "origin", "statistics", "channel_id",
     "use_global_device_ids", "operand_precision", "result_accuracy", "algorithm"}
)  # fmt: skip

#: Whose operands have sizes and types that hang together in ways that StableHLO checks and HLO does not.
_WITH_INDICES = opcodes_with(Class.INDEXING)

#: Computations of more instructions are left behind.
_LARGEST_CALLEE = 20

#: What is changed at an instruction after it was carried: it takes the new one and returns what others read.
Change = Callable[[Instruction, Instruction], Instruction]


class Transplant:
    """Carries instructions of one computation into a graph.

    Args:
        graph: that takes them.
        sizes: what becomes of sizes of dimensions; others stay.
        change: applied to the arrays that were carried.
    """

    def __init__(self, graph: Graph, sizes: Mapping[int, int], change: Change | None = None) -> None:
        self.graph = graph
        self._sizes = sizes
        self._change = change
        self._known: dict[Instruction, Instruction] = {}
        self._callees: dict[Computation, Computation] = {}

    def carry_all(self, instructions: Iterable[Instruction]) -> None:
        """Carry what can be carried, operands first; the rest is left behind."""
        for instruction in instructions:
            if self.graph.shared.room < 4:
                return
            carried = self.graph.attempt(lambda i=instruction: self._carry(i))  # type: ignore[misc]
            if carried is not None:
                self._known[instruction] = carried

    def _carry(self, original: Instruction) -> Instruction:
        try:
            carried = self._carried(original)
            if self._change is not None and isinstance(carried.shape, ArrayShape):
                carried = self._change(original, carried)
        except VerificationError as error:
            raise Declined(str(error)) from None
        return carried

    def replace(self, original: Instruction, new: Instruction) -> None:
        """Let what is carried from now on read `new` for `original`."""
        self._known[original] = new

    def became(self, original: Instruction) -> Instruction | None:
        """What an instruction was carried to; None where it was left behind."""
        return self._known.get(original)

    def _carried(self, original: Instruction) -> Instruction:
        if original.opcode == "parameter":
            return self._leaf(original)
        if original.opcode == "constant":
            return self._constant(original)
        if original.opcode not in STEPS or original.control_predecessors:
            raise Declined(f"{original.opcode} stays behind")
        if OPCODES[original.opcode].opcode_class is Class.COLLECTIVE or original.opcode.endswith("-id"):
            raise Declined("it speaks of other devices")
        if any(shape.is_dynamic for shape in array_shapes(original.shape)):
            raise Declined("its size is known at run time only")
        operands = [self._operand(o) for o in original.operands]
        attributes = {
            name: self._attribute(value)
            for name, value in original.attributes.items()
            if name not in _OF_THE_PLACE
        }
        stated = self._shape(original.shape)
        if all(o.shape == self._shape(p.shape) for o, p in zip(operands, original.operands)):
            return self._added(original.opcode, operands, attributes, stated)
        if can_infer(original.opcode) and self._may_differ(original, operands) and self.graph.chance(0.6):
            try:
                shape = infer_shape(original.opcode, [o.shape for o in operands], attributes)
                return self._added(original.opcode, operands, attributes, shape)
            except VerificationError:
                pass  # What it was is restored, and the shape stays.
        operands = [self._restored(o, self._shape(p.shape)) for o, p in zip(operands, original.operands)]
        return self._added(original.opcode, operands, attributes, stated)

    def _may_differ(self, original: Instruction, operands: list[Instruction]) -> bool:
        """Whether operands that had one type still have one, and what is called gets what it takes.

        XLA's HLO mixes widths of floats, StableHLO does not.
        """
        if original.opcode in _WITH_INDICES:
            return False
        became: dict[ElementType, ElementType] = {}
        for old, new in zip(original.operands, operands):
            if not isinstance(old.shape, ArrayShape) or not isinstance(new.shape, ArrayShape):
                return False
            kind = new.shape.element_type
            if became.setdefault(old.shape.element_type, kind) is not kind:
                return False
        return all(old is new for old, new in became.items()) or not any(original.called)

    def _added(
        self,
        opcode: str,
        operands: list[Instruction],
        attributes: Mapping[str, AttributeValue],
        shape: Shape,
    ) -> Instruction:
        if opcode == "reshape" and isinstance(shape, ArrayShape):
            return self.graph.fit(operands[0], shape.dims)
        check_shape(opcode, [o.shape for o in operands], attributes, shape, mixed_precision=False)
        return self.graph.with_attributes(opcode, operands, attributes, shape)

    def _operand(self, original: Instruction) -> Instruction:
        known = self._known.get(original)
        return self._leaf(original) if known is None else known

    def _leaf(self, original: Instruction) -> Instruction:
        """A new array in place of what was left behind."""
        shape = self._shape(original.shape)
        if not isinstance(shape, ArrayShape) or shape.is_dynamic:
            raise Declined("only arrays are made anew")
        made = self.graph.array(shape.element_type, shape.dims)
        self._known[original] = made
        return made

    def _restored(self, x: Instruction, shape: Shape) -> Instruction:
        """`x` of the shape that its reader wants."""
        if x.shape == shape:
            return x
        if not isinstance(shape, ArrayShape) or not isinstance(x.shape, ArrayShape):
            raise Declined("only arrays are made to fit")
        if not castable(x.shape, shape.element_type) or (not x.shape.size and shape.size):
            raise Declined("nothing to make it of")
        return self.graph.fit(self.graph.convert(x, shape.element_type), shape.dims)

    def _constant(self, original: Instruction) -> Instruction:
        shape = self._shape(original.shape)
        literal = original.literal
        if literal is None or not isinstance(shape, ArrayShape) or literal.has_elided:
            raise Declined("its value is not known")
        if shape.size > 256:
            return self._leaf(original)
        value = literal.array
        if shape.dims != value.shape:
            value = np.resize(value, shape.dims)
        return self.graph.constant(value, shape.element_type, shape.dims)

    def _shape(self, shape: Shape) -> Shape:
        """With the new sizes, and without layouts."""
        shape = strip_layouts(shape)
        if isinstance(shape, TupleShape):
            return TupleShape(tuple(self._shape(part) for part in shape.elements))
        if isinstance(shape, ArrayShape):
            return ArrayShape(shape.element_type, self._resized(shape.dims), shape.dynamic)
        return shape

    def _resized(self, dims: Dims) -> Dims:
        return tuple(self._sizes.get(n, n) for n in dims)

    def _attribute(self, value: AttributeValue) -> AttributeValue:
        """With computations of its own, under names of their own."""
        callees = computations_in(value)
        if not callees:
            return value
        copies = tuple(self._callee(c) for c in callees)
        return copies if isinstance(value, tuple) else copies[0]

    def _callee(self, original: Computation) -> Computation:
        known = self._callees.get(original)
        if known is not None:
            return known
        if len(original.instructions) > _LARGEST_CALLEE:
            raise Declined("calls too much")
        shared = self.graph.shared
        if shared.room < len(original.instructions):
            raise Declined("there is no room")
        cloner = Cloner()
        for instruction in original.instructions:
            if instruction.opcode not in (*STEPS, "parameter", "constant"):
                raise Declined(f"calls {instruction.opcode}")
            for callee in instruction.called:
                cloner.computations[callee] = self._callee(callee)
        shared.room -= len(original.instructions)
        shared.callees += 1
        copy = cloner.computation(original)
        copy.name = f"{original.name.split('.')[0]}.{shared.callees}"
        for instruction in copy.instructions:
            self._fit_in(instruction)
        self._callees[original] = copy
        return copy

    def _fit_in(self, instruction: Instruction) -> None:
        """Give an instruction of a callee the new sizes; raises VerificationError where they do not fit."""
        instruction.metadata = None
        instruction.shape = shape = self._shape(instruction.shape)
        kept = {k: v for k, v in instruction.attributes.items() if k not in _OF_THE_PLACE}
        instruction.attributes = kept
        if instruction.opcode == "constant" and isinstance(shape, ArrayShape):
            if instruction.literal is None or instruction.literal.has_elided:
                raise Declined("its value is not known")
            instruction.literal = Literal(shape, np.resize(instruction.literal.array, shape.dims))
        elif instruction.opcode not in ("parameter", "constant"):
            if why := objection(instruction, self.graph.preferences.partitioned, is_called=True):
                raise Declined(why)
            operands = [operand.shape for operand in instruction.operands]
            check_shape(instruction.opcode, operands, kept, shape, mixed_precision=False)
