"""A module with other sizes: shapes, attributes, constants, computations and signature."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hlotool.analysis.trip_counts import known_trip_count, trip_count
from hlotool.ir.attributes import AttributeValue, BackendConfig, EntryLayout
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, TupleShape
from hlotool.ir.verifier import verify_to_execute
from hlotool.scale.classes import Classes
from hlotool.scale.positions import cut
from hlotool.scale.sizes import Dims, Size


def rewritten(module: Module, classes: Classes, chosen: Mapping[Size, int]) -> Module:
    """A copy of one of the programs of `classes` in which atoms have the `chosen` sizes.

    Raises:
        VerificationError: the result is not HLO, which a rule of this room would be to blame for.
        ValueError: a computation calls itself.
    """
    clone = clone_module(module)
    scaler = _Scaler(classes, chosen)
    for original, copy in clone.instructions.items():
        scaler.restate(original, copy)
    made = clone.module
    if "entry_computation_layout" in made.attributes:
        made.attributes = with_attributes(made.attributes, entry_computation_layout=scaler.signature(module))
    for original, copy in clone.instructions.items():
        if copy.opcode == "while" and known_trip_count(original) is not None:
            _restate_trips(copy)
    verify_to_execute(made)
    return made


@dataclass(frozen=True, slots=True)
class _Scaler:
    """Gives instructions their new sizes."""

    classes: Classes
    chosen: Mapping[Size, int]

    def number(self, size: Size) -> int:
        """The new number of a size."""
        return self.classes.known.sizes.evaluate(size, self.chosen)

    def restate(self, original: Instruction, copy: Instruction) -> None:
        """Shape, attributes and value of a copy."""
        known = self.classes.known
        copy.shape = self.shape(copy.shape, known.dims[original])
        restated = known.restated.get(original)
        if restated is not None:
            copy.attributes = {**copy.attributes, **restated(self.number)}
        if "operand_layout_constraints" in copy.attributes:
            copy.attributes = {**copy.attributes, "operand_layout_constraints": self._constraints(original)}
        if copy.literal is not None:
            copy.literal = self.literal(original, copy.literal)

    def _constraints(self, original: Instruction) -> AttributeValue:
        shapes = original.listed("operand_layout_constraints", ArrayShape)
        dims = [self.classes.known.dims[operand].get((), ()) for operand in original.operands]
        return tuple(self.shape(shape, {(): sizes}) for shape, sizes in zip(shapes, dims))

    def literal(self, original: Instruction, literal: Literal) -> Literal:
        """The value of a constant: cut to its new shape, or the size that it is."""
        held = self.classes.constants.get(original)
        if held is not None:
            value = held.value(self.number)
            array = np.full_like(literal.array, value)
            return Literal(literal.shape, array)
        return self._cut(literal, self.classes.known.dims[original], ())

    def _cut(self, literal: Literal, dims: Mapping[ShapeIndex, Dims], index: ShapeIndex) -> Literal:
        if isinstance(literal.shape, TupleShape):
            parts = tuple(self._cut(part, dims, (*index, n)) for n, part in enumerate(literal.elements))
            return Literal(TupleShape(tuple(part.shape for part in parts)), parts)
        sizes = dims.get(index, ())
        if all(self.number(size) == size.value for size in sizes) or literal.value is None:
            shape = self.shape(literal.shape, {(): sizes})
            return literal if shape == literal.shape else Literal(shape, None, literal.elided)
        array = cut(self.classes.known.sizes, sizes, self.chosen, literal.array)
        return Literal(self.shape(literal.shape, {(): sizes}), array)

    def signature(self, module: Module) -> EntryLayout:
        """What the header says the entry takes and returns."""
        stated, dims = module.entry_layout, self.classes.known.dims
        parameters = zip(stated.parameters, module.entry.parameters)
        return EntryLayout(
            tuple(self.shape(shape, dims[parameter]) for shape, parameter in parameters),
            self.shape(stated.result, dims[module.entry.root]),
        )

    def shape(self, shape: Shape, dims: Mapping[ShapeIndex, Dims], index: ShapeIndex = ()) -> Shape:
        """A shape with the new sizes of its arrays."""
        if isinstance(shape, TupleShape):
            parts = (self.shape(part, dims, (*index, n)) for n, part in enumerate(shape.elements))
            return TupleShape(tuple(parts))
        if not isinstance(shape, ArrayShape):
            return shape
        sizes = tuple(map(self.number, dims[index]))
        return shape if sizes == shape.dims else replace(shape, dims=sizes)


def _restate_trips(loop: Instruction) -> None:
    """XLA's note of the number of iterations, as the program now says it; it goes where that is unknown."""
    plain = {name: value for name, value in loop.attributes.items() if name != "backend_config"}
    config = loop.attributes["backend_config"]
    assert isinstance(config, BackendConfig)
    loop.attributes = plain
    count = trip_count(loop)
    said = json.loads(config.text)
    said.pop("known_trip_count")
    if count is not None:
        said["known_trip_count"] = {"n": str(count)}
    if said:
        loop.attributes = {**plain, "backend_config": replace(config, text=json.dumps(said))}
