"""Programs whose entry takes arrays and returns arrays, as jaxlib wants them.

jaxlib knows no parameters that are tuples, no tuples of one element and no tuples in tuples; and it hands
over and takes back every array row-major.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape, leaves
from hlotool.values.sharding import leaf_shardings

#: Header attributes that speak of parameters by number or of results by index.
_OF_THE_SIGNATURE = (
    "entry_computation_layout",
    "input_output_alias",
    "buffer_donor",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)


def array_shapes(shape: Shape) -> list[ArrayShape]:
    """The arrays in a shape, depth first."""
    return [leaf for _, leaf in leaves(shape) if isinstance(leaf, ArrayShape)]


def flat_signature(module: Module) -> Module:
    """A program that takes and returns the same arrays as `module`, one by one and row-major.

    Tokens among the parameters are made inside, those among the results are dropped. Returns `module` itself
    where nothing has to change.
    """
    if _is_flat(module):
        return module
    copy = clone_module(module).module
    with editing(copy.entry) as edit:
        _flatten_parameters(edit, copy.entry.parameters)
        _flatten_result(edit, copy.entry)
        edit.changed = True
    copy.attributes = {n: v for n, v in copy.attributes.items() if n not in _OF_THE_SIGNATURE}
    return copy


def _is_flat(module: Module) -> bool:
    result = module.entry.root.shape
    parts = result.elements if isinstance(result, TupleShape) else (result,)
    if isinstance(result, TupleShape) and len(parts) < 2:
        return False
    return all(map(_is_plain_array, [p.shape for p in module.entry.parameters] + list(parts)))


def _is_plain_array(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape == plain(shape)


def plain(shape: ArrayShape) -> ArrayShape:
    """The same array row-major in device memory."""
    layout = shape.layout
    if layout is None or (layout.is_descending and not layout.tiles and not layout.memory_space):
        return shape
    order = tuple(range(shape.rank - 1, -1, -1))
    return replace(shape, layout=replace(layout, minor_to_major=order, tiles=(), memory_space=0))


def _flatten_parameters(edit: Editor, parameters: Sequence[Instruction]) -> None:
    numbers = count()
    for parameter in parameters:
        if _is_plain_array(parameter.shape):
            parameter.parameter_number = next(numbers)
            continue
        arguments = _Arguments(edit, parameter, numbers)
        if isinstance(parameter.shape, TupleShape):
            _turn_into(edit, parameter, "tuple", tuple(map(arguments.value, parameter.shape.elements)))
        elif isinstance(parameter.shape, ArrayShape):
            _turn_into(edit, parameter, "copy", (arguments.parameter(parameter.shape),))
        else:
            _turn_into(edit, parameter, "after-all", ())


def _turn_into(edit: Editor, parameter: Instruction, opcode: str, operands: tuple[Instruction, ...]) -> None:
    """What reads the old parameter reads what is made of the new ones."""
    parameter.opcode, parameter.parameter_number, parameter.attributes = opcode, None, {}
    edit.set_operands(parameter, operands)


class _Arguments:
    """Makes the value of an old parameter of new ones."""

    def __init__(self, edit: Editor, old: Instruction, numbers: Iterator[int]) -> None:
        self._edit = edit
        self._old = old
        self._numbers = numbers
        self._shardings = iter(leaf_shardings(old.shape, old.sharding))

    def value(self, shape: Shape) -> Instruction:
        """An instruction of this shape."""
        if isinstance(shape, TupleShape):
            return self._add("tuple", shape, tuple(map(self.value, shape.elements)))
        if not isinstance(shape, ArrayShape):
            next(self._shardings)
            return self._add("after-all", shape)
        parameter = self.parameter(shape)
        return parameter if parameter.shape == shape else self._add("copy", shape, (parameter,))

    def parameter(self, shape: ArrayShape) -> Instruction:
        """A new parameter that holds such an array row-major."""
        parameter = self._add("parameter", plain(shape))
        parameter.parameter_number = next(self._numbers)
        sharding = next(self._shardings)
        if sharding is not None:
            parameter.attributes = {"sharding": sharding}
        return parameter

    def _add(self, opcode: str, shape: Shape, operands: tuple[Instruction, ...] = ()) -> Instruction:
        added = Instruction(f"{self._old.name}.{opcode}", opcode, shape, operands)
        return self._edit.add(added, before=self._old)


def _flatten_result(edit: Editor, computation: Computation) -> None:
    old = computation.root
    arrays = [_row_major(edit, part) for part in _elements(edit, old)]
    if len(arrays) == 1:
        computation.root = arrays[0]
        return
    shape = TupleShape(tuple(array.shape for array in arrays))
    computation.root = edit.add(Instruction("result", "tuple", shape, tuple(arrays)))


def _elements(edit: Editor, value: Instruction) -> Iterator[Instruction]:
    """Instructions that give the arrays in `value`."""
    shape = value.shape
    if isinstance(shape, ArrayShape):
        yield value
    elif isinstance(shape, TupleShape):
        for position, part in enumerate(shape.elements):
            if value.opcode == "tuple":
                element = value.operands[position]
            else:
                got = Instruction("element", "get-tuple-element", part, (value,), {"index": position})
                element = edit.add(got)
            yield from _elements(edit, element)


def _row_major(edit: Editor, array: Instruction) -> Instruction:
    assert isinstance(array.shape, ArrayShape)
    if plain(array.shape) == array.shape:
        return array
    return edit.add(Instruction("copy", "copy", plain(array.shape), (array,)))
