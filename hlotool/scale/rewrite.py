"""A module with other sizes: shapes, attributes, constants, computations and signature."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlotool.analysis.trip_counts import known_trip_count, trip_count
from hlotool.ir.attributes import AttributeValue, BackendConfig, EntryLayout
from hlotool.ir.dtypes import Array
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, TupleShape
from hlotool.ir.verifier import verify_to_execute
from hlotool.scale.classes import Classes
from hlotool.scale.sizes import Sizes
from hlotool.scale.terms import Dims, Form, Size


class Rewrite:
    """A copy of one of the programs of `classes`, whose sizes may be set again and again.

    Attributes:
        module: the copy; as the program is, until sizes are set.
    """

    def __init__(self, program: Module, classes: Classes) -> None:
        """Copy `program`.

        Raises:
            ValueError: a computation calls itself.
        """
        self._program, self._classes = program, classes
        self._clone = clone_module(program)
        self.module = self._clone.module

    def set_sizes(self, chosen: Mapping[Size, int]) -> None:
        """Give atoms the `chosen` sizes, and all others those that they have in the program."""
        scaler = _Scaler(self._classes, chosen)
        for original, copy in self._clone.instructions.items():
            scaler.restate(original, copy)
        if "entry_computation_layout" in self.module.attributes:
            signature = scaler.signature(self._program)
            self.module.attributes = with_attributes(
                self.module.attributes, entry_computation_layout=signature
            )
        for original, copy in self._clone.instructions.items():
            if copy.opcode == "while" and known_trip_count(original) is not None:
                _restate_trips(original, copy)

    def verify(self) -> None:
        """Look whether the copy is HLO.

        Raises:
            VerificationError: it is not, which a rule of this room would be to blame for.
        """
        verify_to_execute(self.module)


@dataclass(frozen=True, slots=True)
class _Scaler:
    """Gives instructions their new sizes."""

    classes: Classes
    chosen: Mapping[Size, int]
    _numbers: dict[Size, int] = field(default_factory=dict)

    def number(self, size: Size) -> int:
        """The new number of a size."""
        found = self._numbers.get(size)
        if found is None:
            found = self.classes.known.sizes.evaluate(size, self.chosen, self._numbers)
            self._numbers[size] = found
        return found

    def restate(self, original: Instruction, copy: Instruction) -> None:
        """Shape, attributes and value of a copy."""
        known = self.classes.known
        copy.shape = self.shape(original.shape, known.dims[original])
        restated = known.restated.get(original)
        if restated is not None:
            copy.attributes = {**copy.attributes, **restated(self.number)}
        if "operand_layout_constraints" in copy.attributes:
            copy.attributes = {**copy.attributes, "operand_layout_constraints": self._constraints(original)}
        if original.literal is not None:
            copy.literal = self.literal(original, original.literal)

    def _constraints(self, original: Instruction) -> AttributeValue:
        shapes = original.listed("operand_layout_constraints", ArrayShape)
        dims = [self.classes.known.dims[operand].get((), ()) for operand in original.operands]
        return tuple(self.shape(shape, {(): sizes}) for shape, sizes in zip(shapes, dims))

    def literal(self, original: Instruction, literal: Literal) -> Literal:
        """The value of a constant: cut to its new shape, or the size that it is."""
        held = self.classes.constants.get(original)
        if held is not None:
            value = held.value(self.number)
            literal = Literal(literal.shape, np.full_like(literal.array, value))
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
        if sizes == shape.dims:
            return shape
        return ArrayShape(shape.element_type, sizes, shape.dynamic, shape.layout)


def _restate_trips(original: Instruction, loop: Instruction) -> None:
    """XLA's note of the number of iterations, as the program now says it; it goes where that is unknown."""
    plain = {name: value for name, value in loop.attributes.items() if name != "backend_config"}
    config = original.attributes["backend_config"]
    assert isinstance(config, BackendConfig)
    loop.attributes = plain
    count = trip_count(loop)
    said = json.loads(config.text)
    said.pop("known_trip_count")
    if count is not None:
        said["known_trip_count"] = {"n": str(count)}
    if said:
        loop.attributes = {**plain, "backend_config": replace(config, text=json.dumps(said))}


# Which elements of a dimension are left when it becomes smaller.
#
# An array that is given in full, a constant or a captured argument, is cut. What is cut away must be the
# same elements wherever the array is reshaped, cut in parts or put together: so the elements that stay
# follow from how the size is made. Of an atom the first ones stay; of a product those that stay of each
# factor; of a sum those that stay of each part.


def kept(sizes: Sizes, size: Size, chosen: Mapping[Size, int]) -> Array:
    """The positions along a dimension that stay, in order: integers, as many as the new size."""
    one = sizes.root(size)
    if one.form is Form.ATOM:
        return np.arange(one.value if one.why else chosen.get(one, one.value))
    if one.form is Form.SUM:
        found, before = [], 0
        for part in one.parts:
            found.append(kept(sizes, part, chosen) + before)
            before += part.value
        return np.concatenate(found)
    positions = np.zeros(1, np.int64)
    for part in one.parts:
        positions = (positions[:, None] * part.value + kept(sizes, part, chosen)[None, :]).reshape(-1)
    return positions


def cut(sizes: Sizes, dims: Sequence[Size], chosen: Mapping[Size, int], array: Array) -> Array:
    """What stays of an array of these sizes: C-contiguous, of the same type."""
    for axis, size in enumerate(dims):
        if sizes.evaluate(size, chosen) != size.value:
            array = np.take(array, kept(sizes, size, chosen), axis=axis)
    return np.ascontiguousarray(array)
