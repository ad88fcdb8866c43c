"""Programs in other float types: the same instructions, computed in f64, or with nothing narrower than f32.

A module is copied with every float type replaced by a wider one. Conversions between types that became the
same are identities. What reads or makes bits (`bitcast-convert`, random numbers, transfers to the host) keeps
its declared types, and so do custom calls without a model in the new ones; their operands are converted to
them before and their results back after. A custom call in new types says which it was declared in
(`declared_types`). Comparators that order floats by their bits order those of the new types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field, structs

from hlotool.facts import recognition
from hlotool.facts.float_order import limit_in, order_types
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import FrontendAttributes
from hlotool.ir.edit_programs import Cloner
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import (
    ELEMENT_TYPES,
    ArrayShape,
    BufferShape,
    ElementType,
    Shape,
    TupleShape,
    array_shapes,
)
from hlotool.ir.walk import call_order, reachable

#: The type that takes the place of another one.
TypeMap: TypeAlias = Callable[[ElementType], ElementType]

#: Exponent and mantissa bits of a `reduce-precision`.
Precision: TypeAlias = "tuple[int, int]"

#: Whether a custom call works in any types.
WorksInAnyTypes: TypeAlias = Callable[[Instruction], bool]

#: The frontend attribute of a custom call in new types that names the declared ones: those of the arrays of
#: the operands, then those of the results.
_DECLARED = "hlotool.declared_types"


class Retyped(Struct, frozen=True):
    """A module in other types.

    Attributes:
        module: the copy.
        origins: for each instruction of the copy the one that it stands for; conversions that were put in
            have none.
    """

    module: Module
    origins: Mapping[Instruction, Instruction]


def to_f64(element_type: ElementType) -> ElementType:
    """f64 for every float type, c128 for complex ones."""
    if element_type.is_floating:
        return ElementType.F64
    return ElementType.C128 if element_type.is_complex else element_type


def to_f32_at_least(element_type: ElementType) -> ElementType:
    """f32 for narrower floats."""
    return ElementType.F32 if element_type.is_narrow_float else element_type


def precision_of(instruction: Instruction) -> Precision:
    """The bits that a `reduce-precision` leaves."""
    return instruction.integer("exponent_bits"), instruction.integer("mantissa_bits")


def precisions(module: Module) -> frozenset[Precision]:
    """What the program rounds to on purpose: the bits of each `reduce-precision`."""
    return frozenset(precision_of(i) for i in module.instructions() if i.opcode == "reduce-precision")


def widened(
    module: Module,
    copied: Collection[Instruction] = (),
    computes_wide: WorksInAnyTypes | None = None,
    asked: Collection[Precision] = (),
) -> Retyped:
    """The module computed in f64 throughout.

    A narrow type is what values are kept in, and nothing that an exact program has; `reduce-precision` rounds
    because the program says so. Compilers write one for the other, so that it depends on the reference.

    Args:
        module: what is copied.
        copied: constants that are read through a `copy`, which stands for them in `origins`, so that an
            execution can change their values.
        computes_wide: says which custom calls compute in f64, too, where the copy is executed: those of
            libraries that it has a model of; None: those alone that compute nothing.
        asked: to which bits `reduce-precision` rounds in the copy, too: those that the reference asks for
            (`precisions`). All others stand for a narrow type, and are identities.
    """
    return _Retyping(to_f64, frozenset(asked), copied, computes_wide).module(module)


def declared_types(instruction: Instruction) -> tuple[tuple[ElementType, ...], tuple[ElementType, ...]]:
    """The element types of the arrays of a custom call as its program declares them: operands, results.

    In a copy in other types these are those of the original: they say which range a result saturates to and
    what kind of scales an operand holds.
    """
    noted = instruction.frontend_attribute(_DECLARED)
    if noted is None:
        return _arrays_of(o.shape for o in instruction.operands), _arrays_of([instruction.shape])
    operands, results = noted.split("->")
    return _named(operands), _named(results)


def is_retyped(instruction: Instruction) -> bool:
    """Whether a custom call stands in a copy in other types than its declared ones."""
    return instruction.frontend_attribute(_DECLARED) is not None


def _arrays_of(shapes: Iterable[Shape]) -> tuple[ElementType, ...]:
    return tuple(part.element_type for shape in shapes for part in array_shapes(shape))


def _named(names: str) -> tuple[ElementType, ...]:
    return tuple(ELEMENT_TYPES[name] for name in names.split())


def without_narrow_floats(module: Module, unrounded: Collection[Instruction] = ()) -> Retyped:
    """The module with f32 in place of all narrower floats, as if nothing were rounded on the way.

    Args:
        module: what is copied.
        unrounded: `reduce-precision` among these rounds no more, either.
    """
    return _Retyping(to_f32_at_least, asked=None, unrounded=unrounded).module(module)


def retyped_shape(shape: Shape, types: TypeMap) -> Shape:
    """`shape` with other element types; layouts lose the widths of elements."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(retyped_shape(element, types) for element in shape.elements))
    if isinstance(shape, BufferShape):
        return BufferShape(_retyped_array(shape.array, types))
    return _retyped_array(shape, types) if isinstance(shape, ArrayShape) else shape


def _retyped_array(shape: ArrayShape, types: TypeMap) -> ArrayShape:
    element_type = types(shape.element_type)
    if element_type is shape.element_type:
        return shape
    layout = shape.layout and structs.replace(shape.layout, element_bits=0)
    return structs.replace(shape, element_type=element_type, layout=layout)


def retyped_value(value: Any, shape: Shape) -> Any:
    """A runtime value with its floats converted to the element types of `shape`."""
    if isinstance(shape, TupleShape):
        return tuple(retyped_value(part, element) for part, element in zip(value, shape.elements))
    if not isinstance(shape, ArrayShape):
        return value
    if not shape.element_type.is_inexact:
        return value
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype_of(shape.element_type), copy=False)


class _Retyping(Struct):
    """One copy in the making.

    Attributes:
        types: what becomes of each element type.
        asked: to which bits `reduce-precision` rounds in the copy, too; None: to all.
        unrounded: those that do not all the same.
        copied: constants read through a copy.
        computes_wide: which custom calls with arithmetic work in the new types; None: none does.
        shapes: in the new types, of those that were met.
    """

    types: TypeMap
    asked: frozenset[Precision] | None
    copied: Collection[Instruction] = ()
    computes_wide: WorksInAnyTypes | None = None
    unrounded: Collection[Instruction] = ()
    origins: dict[Instruction, Instruction] = field(default_factory=dict)
    computations: dict[Computation, Computation] = field(default_factory=dict)
    _shapes: dict[int, Shape] = field(default_factory=dict)

    def module(self, module: Module) -> Retyped:
        """The copy of a whole module."""
        for computation in call_order(module):
            self.computations[computation] = _Body(self, computation).copy()
        entry = self.computations[module.entry]
        used = reachable(entry)
        kept = {c.name for c in used if c in self.computations}
        for computation in self.computations.values():
            if computation.name in kept:
                computation.name += ".retyped"
        attributes = {k: v for k, v in module.attributes.items() if k != "entry_computation_layout"}
        copy = replace(module, computations=used, entry=entry, attributes=attributes)
        return Retyped(copy, self.origins)

    def shape(self, shape: Shape) -> Shape:
        """`shape`, which is that of an instruction, with its element types replaced by the new ones."""
        # Instructions often share theirs; by identity, as a shape takes as long to be hashed as to be made.
        if id(shape) not in self._shapes:
            self._shapes[id(shape)] = retyped_shape(shape, self.types)
        return self._shapes[id(shape)]

    def keeps_types(self, instruction: Instruction) -> bool:
        """Whether it works on bits, or is known only in the declared types."""
        match instruction.opcode:
            case "bitcast-convert" | "stochastic-convert":
                return True
            case "bitcast":
                return instruction.array_type is not instruction.operands[0].array_type
            case "custom-call" if instruction.custom_call_target in recognition.TRANSPARENT:
                return False
            case "custom-call":
                return self.computes_wide is None or not self.computes_wide(instruction)
        return instruction.row.opcode_class in (Class.RANDOM, Class.HOST)


class _Body:
    """The copy of one computation; every value exists in the new types, in the declared ones, or in both."""

    def __init__(self, retyping: _Retyping, original: Computation) -> None:
        self._retyping = retyping
        self._original = original
        self._instructions: list[Instruction] = []
        self._new: dict[Instruction, Instruction] = {}
        self._declared: dict[Instruction, Instruction] = {}
        self._names = {i.name for i in original.instructions}
        self._cloner = Cloner(computations=retyping.computations)

    def copy(self) -> Computation:
        """The whole computation, copied in the new types."""
        orders = order_types(self._original, self._retyping.types)
        for instruction in self._original.instructions:
            if orders and instruction.element_type in orders:
                self._order(instruction, orders[instruction.element_type])
            elif self._retyping.keeps_types(instruction):
                self._keep(instruction)
            else:
                self._retype(instruction)
        root = self._in_new_types(self._original.root)
        return replace(self._original, instructions=self._instructions, root=root)

    def _retype(self, old: Instruction) -> None:
        shape = self._retyping.shape(old.shape)
        new = Instruction(
            old.name,
            self._opcode(old),
            shape,
            tuple(map(self._in_new_types, old.operands)),
            self._attributes(old) if old.attributes else {},
            old.metadata,
            None if old.literal is None else _retyped_literal(old.literal, self._retyping.types),
            old.parameter_number,
            old.line,
            self._before(old) if old.control_predecessors else (),
        )
        if old in self._retyping.copied:
            self._add(new)
            new = self._made(new, "copy", shape, (new,))
        self._add(new, old)
        self._new[old] = new

    def _order(self, old: Instruction, kind: ElementType) -> None:
        """Bits of floats that are compared, of the floats in their new types."""
        shape = structs.replace(old.array_shape, element_type=kind)
        literal = old.literal
        if literal is not None:
            value = limit_in(int(literal.array.item()), kind)
            literal = Literal(shape, np.full_like(literal.array, value, dtype=dtype_of(kind)))
        operands = tuple(map(self._in_new_types, old.operands))
        new = replace(
            old, shape=shape, operands=operands, literal=literal, control_predecessors=self._before(old)
        )
        self._add(new, old)
        self._new[old] = new

    def _opcode(self, old: Instruction) -> str:
        asked = self._retyping.asked
        if old.opcode != "reduce-precision":
            return old.opcode
        is_asked = asked is None or precision_of(old) in asked
        return old.opcode if is_asked and old not in self._retyping.unrounded else "copy"

    def _attributes(self, old: Instruction) -> Mapping[str, Any]:
        if self._opcode(old) != old.opcode:
            return {}
        cloner = self._cloner
        attributes = {name: cloner.attribute(value) for name, value in old.attributes.items()}
        if old.opcode == "custom-call" and old.custom_call_target not in recognition.TRANSPARENT:
            attributes["frontend_attributes"] = _with_declared_types(old)
            # They repeat shapes in the declared types.
            attributes.pop("operand_layout_constraints", None)
        return attributes

    def _keep(self, old: Instruction) -> None:
        operands = tuple(map(self._in_declared_types, old.operands))
        new = replace(old, operands=operands, control_predecessors=self._before(old))
        self._add(new, old)
        self._declared[old] = new
        if self._retyping.shape(old.shape) == old.shape:
            self._new[old] = new

    def _before(self, old: Instruction) -> tuple[Instruction, ...]:
        found = (self._new.get(p) or self._declared.get(p) for p in old.control_predecessors)
        return tuple(p for p in found if p is not None)

    def _in_new_types(self, old: Instruction) -> Instruction:
        if old not in self._new:
            self._new[old] = self._converted(self._declared[old], self._retyping.shape(old.shape))
        return self._new[old]

    def _in_declared_types(self, old: Instruction) -> Instruction:
        if old not in self._declared:
            self._declared[old] = self._converted(self._new[old], old.shape)
        return self._declared[old]

    def _converted(self, value: Instruction, shape: Shape) -> Instruction:
        """`value` with its arrays converted to the element types of `shape`."""
        if value.shape == shape:
            return value
        if not isinstance(shape, TupleShape):
            return self._add(self._made(value, "convert", shape, (value,)))
        parts = []
        for number, element in enumerate(shape.elements):
            part = self._made(
                value, "get-tuple-element", value.tuple_shape.elements[number], (value,), index=number
            )
            parts.append(self._converted(self._add(part), element))
        return self._add(self._made(value, "tuple", shape, tuple(parts)))

    def _made(
        self,
        value: Instruction,
        opcode: str,
        shape: Shape,
        operands: tuple[Instruction, ...],
        **attributes: int,
    ) -> Instruction:
        return Instruction(self._name(value), opcode, shape, operands, attributes, line=value.line)

    def _name(self, value: Instruction) -> str:
        number = 0
        while (name := f"{value.name}.converted.{number}") in self._names:
            number += 1
        self._names.add(name)
        return name

    def _add(self, new: Instruction, old: Instruction | None = None) -> Instruction:
        self._instructions.append(new)
        if old is not None:
            self._retyping.origins[new] = old
        return new


def _with_declared_types(old: Instruction) -> FrontendAttributes:
    """The frontend attributes of a custom call, and the types that it is declared in."""
    own = old.attribute("frontend_attributes", FrontendAttributes, FrontendAttributes(()))
    operands, results = (" ".join(map(str, kinds)) for kinds in declared_types(old))
    return FrontendAttributes((*own.entries, (_DECLARED, f'"{operands}->{results}"')))


def _retyped_literal(literal: Literal, types: TypeMap) -> Literal:
    shape = retyped_shape(literal.shape, types)
    if shape == literal.shape or literal.value is None:
        return replace(literal, shape=shape)
    if isinstance(literal.value, tuple):
        return Literal(shape, tuple(_retyped_literal(e, types) for e in literal.value), literal.elided)
    return Literal(shape, retyped_value(literal.value, shape), literal.elided)
