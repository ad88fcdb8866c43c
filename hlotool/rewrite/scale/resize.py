"""Smaller sizes are chosen, elements of each dimension selected, and the module is rewritten to them.

Sizes that were different stay different, in the same order, as far as they become smaller: they get primes,
so that a transposed or a mixed-up dimension is still one. Those that were equal and have nothing to do with
each other get different primes, too. No size becomes 1, and none becomes larger. Where such sizes are too
large something has to give: primes, then the order, then that they are different.

An array that is given in full, a constant or a captured argument, is cut. What is cut away must be the same
elements wherever the array is reshaped, cut in parts or put together: so the elements that stay follow from
how the size is made. Of an atom the first ones stay; of a product those that stay of each factor; of a sum
those that stay of each part.

Rewritten are shapes, attributes, constants, computations and signature.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from hlotool.facts.trip_counts import known_trip_count, trip_count
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.attributes import AttributeValue, BackendConfig, EntryLayout
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, TupleShape
from hlotool.ir.verifier import verify_to_execute
from hlotool.rewrite.scale.classes import Classes
from hlotool.rewrite.scale.sizes import Sizes
from hlotool.rewrite.scale.terms import Dims, Form, Size

#: Sizes up to this stay: heads of a group, experts that are chosen, channels of an image are what they are.
SMALLEST: Final = 8
#: Sizes up to this stay even where a program would not fit otherwise.
_LEAST_OF_ALL: Final = 4
#: Where the primes begin that sizes become, one after the other: the first that fits is taken.
STARTS: Final = (61, 31, 17, 11, 7, 5, 3)
#: No size becomes smaller than this.
FEWEST: Final = 2
#: Of `last_resorts`: the first number, and how many sizes, in order, share each.
_SHARING: Final = (*((STARTS[-1], width) for width in (2, 4, 8, 16)), (FEWEST, 16))
#: What becomes of a loop over a stack: a first, a last and one between, as every iteration is like the
#: others, and many of them only amplify rounding.
ITERATIONS: Final = 3
#: So many primes are shared by sizes that were equal.
_SHARED: Final = 3


def choices(classes: Classes) -> Iterator[Mapping[Size, int]]:
    """New sizes of the atoms that may change, the largest programs first; each satisfies all relations.

    Programs with very many sizes run out of small primes. Theirs become numbers one after the other in the
    end, still in order; and those that stay otherwise become smaller, too.
    """
    for start in STARTS:
        yield from filter(None, [chosen_from(classes, _primes(start), _SHARED, SMALLEST)])
    yield from filter(None, [chosen_from(classes, count(STARTS[-1]), 1, _LEAST_OF_ALL)])


def last_resorts(classes: Classes) -> Iterator[Mapping[Size, int]]:
    """New sizes where the smallest of `choices` are too large, as where one of many is squared and cubed.

    First they are out of order, though still different: what most arrays have becomes smallest.
    Then neighbours in their order share a number, and less and less can be told apart.
    """
    numbers: Iterator[int] = count(STARTS[-1])
    yield from filter(None, [chosen_from(classes, numbers, 1, _LEAST_OF_ALL, is_in_order=False)])
    for least, width in _SHARING:
        numbers = (least + position // width for position in count())
        yield from filter(None, [chosen_from(classes, numbers, 1, _LEAST_OF_ALL)])


def chosen_from(
    classes: Classes, numbers: Iterator[int], shared: int, smallest: int, is_in_order: bool = True
) -> dict[Size, int]:
    """New sizes of atoms.

    Args:
        classes: what may change.
        numbers: that sizes become, in order.
        shared: so many of them are for sizes that are the same number.
        smallest: sizes up to this stay.
        is_in_order: larger sizes stay larger; otherwise those become smallest that arrays have most often.
    """
    groups: dict[int, list[Size]] = {}
    walked = _walked(classes)
    for atom in reversed(classes.free):
        if atom.value > smallest and atom not in walked:
            groups.setdefault(atom.value, []).append(atom)
    chosen = {atom: walked[atom] for atom in classes.free if atom in walked and atom.value > walked[atom]}

    def rank(value: int) -> tuple[int, int]:
        """What gets the first numbers."""
        return 0 if is_in_order else -sum(map(classes.uses.__getitem__, groups[value])), value

    for value, atoms in sorted(groups.items(), key=lambda group: rank(group[0])):
        ours = list(islice(numbers, min(shared, len(atoms))))
        for position, atom in enumerate(sorted(atoms, key=classes.uses.__getitem__, reverse=True)):
            number = ours[min(position, len(ours) - 1)]
            if number < value:
                chosen[atom] = number
    return _in_order(classes, chosen)


def _walked(classes: Classes) -> dict[Size, int]:
    """What becomes of the atoms of sizes that loops walk along: a factor need not be as many as all."""
    found: dict[Size, int] = {}
    for size in map(classes.known.sizes.root, classes.loops):
        for atom in classes.known.sizes.atoms(size):
            factors = size.value // atom.value if size.form is Form.PRODUCT else 1
            found[atom] = max(found.get(atom, 0), FEWEST, -(-ITERATIONS // factors))
    return found


def _in_order(classes: Classes, chosen: dict[Size, int]) -> dict[Size, int]:
    """Without the changes that would make a part larger than its whole."""
    sizes = classes.known.sizes
    orders = {(sizes.root(part), sizes.root(whole)): None for part, whole in sizes.orders}
    while True:
        known: dict[Size, int] = {}
        wrong = [
            (part, whole)
            for part, whole in orders
            if sizes.evaluate(part, chosen, known) > sizes.evaluate(whole, chosen, known)
        ]
        if not wrong:
            return chosen
        for part, whole in wrong:
            for atom in (*sizes.atoms(part), *sizes.atoms(whole)):
                chosen.pop(atom, None)


def _primes(start: int) -> Iterator[int]:
    found: list[int] = []
    number = 2
    while True:
        if all(number % prime for prime in found):
            found.append(number)
            if number >= start:
                yield number
        number += 1


def given(classes: Classes, wanted: Mapping[int, int]) -> tuple[dict[Size, int], Sequence[int]]:
    """Sizes as somebody wants them, by the sizes that they are; and those that nothing free has.

    Of a dimension that is cut at some place the parts become smaller, the largest one first.
    """
    chosen = {atom: wanted[atom.value] for atom in classes.free if atom.value in wanted}
    missing = [value for value in wanted if value not in {atom.value for atom in chosen}]
    for value in list(missing):
        cuts = [_shrunk(classes, whole, wanted[value], chosen) for whole in classes.sums_of(value)]
        if cuts and all(cut is not None for cut in cuts):
            missing.remove(value)
            for cut in cuts:
                chosen |= cut or {}
    return _in_order(classes, chosen), missing


def _shrunk(classes: Classes, whole: Size, wanted: int, chosen: Mapping[Size, int]) -> dict[Size, int] | None:
    """New sizes of the parts of a sum that is to be so many; None where they cannot be so few."""
    sizes = classes.known.sizes
    parts = [part for part in sizes.atoms(whole) if not part.why and part not in chosen]
    made: dict[Size, int] = {}
    for part in sorted(parts, key=lambda part: -part.value):
        rest = sizes.evaluate(whole, {**chosen, **made}) - wanted
        if rest > 0 and part.value > FEWEST:
            made[part] = max(FEWEST, part.value - rest)
    return made if sizes.evaluate(whole, {**chosen, **made}) == wanted else None


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


class _Scaler(Struct, frozen=True):
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
