"""Programs whose entry takes arrays and returns arrays, as jaxlib wants them.

jaxlib knows no parameters that are tuples, no tuples of one element and no tuples in tuples. It hands over
and takes back every array row-major, and a dynamic one at its bound, without its sizes: these become
parameters and results of their own (s32), one behind the array for each dynamic dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from hlotool.facts.sharding import leaf_shardings
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes

#: Header attributes that speak of parameters by number or of results by index.
_OF_THE_SIGNATURE = (
    "entry_computation_layout",
    "input_output_alias",
    "buffer_donor",
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)

_SIZE = ArrayShape(ElementType.S32, ())


def dynamic_dimensions(shape: ArrayShape) -> list[int]:
    """The dimensions whose size is known at run time only."""
    return [d for d in range(shape.rank) if shape.is_dynamic_dimension(d)]


def flat_signature(module: Module) -> Module:
    """A program that takes and returns the same arrays as `module`, one by one, row-major and static.

    Tokens among the parameters are made inside, those among the results are dropped. Returns `module` itself
    where nothing has to change.

    Raises:
        Unsupported: an optimised program takes or returns arrays whose sizes cannot be had.
    """
    if _is_flat(module):
        return module
    copy = clone_module(module).module
    with editing(copy.entry) as edit:
        _flatten_parameters(edit, copy)
        _flatten_result(edit, copy)
        edit.changed = True
    copy.attributes = {n: v for n, v in copy.attributes.items() if n not in _OF_THE_SIGNATURE}
    return copy


def _is_flat(module: Module) -> bool:
    result = module.entry.root.shape
    parts = result.elements if isinstance(result, TupleShape) else (result,)
    if isinstance(result, TupleShape) and len(parts) < 2:
        return False
    return all(map(_is_plain, [p.shape for p in module.entry.parameters] + list(parts)))


def _is_plain(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape == plain(shape)


def plain(shape: ArrayShape) -> ArrayShape:
    """The shape of the array row-major in device memory, static at the bound of its dimensions."""
    layout = shape.layout
    if layout is not None and not (layout.is_descending and not layout.tiles and not layout.memory_space):
        order = tuple(range(shape.rank - 1, -1, -1))
        layout = replace(layout, minor_to_major=order, tiles=(), memory_space=0)
    return replace(shape, layout=layout, dynamic=())


def _flatten_parameters(edit: Editor, module: Module) -> None:
    numbers = count()
    for parameter in module.entry.parameters:
        if _is_plain(parameter.shape):
            parameter.parameter_number = next(numbers)
        elif module.is_scheduled and any(s.is_dynamic for s in array_shapes(parameter.shape)):
            reason = "the size of a parameter of an optimised program cannot be given"
            raise module.unsupported(parameter, reason)
        else:
            _Arguments(edit, parameter, numbers).take_over()


class _Arguments:
    """Makes the value of an old parameter of new ones."""

    def __init__(self, edit: Editor, old: Instruction, numbers: Iterator[int]) -> None:
        self._edit = edit
        self._old = old
        self._numbers = numbers
        self._shardings = iter(leaf_shardings(old.shape, old.sharding))

    def take_over(self) -> None:
        """Turn the old parameter into what is made of the new ones; its readers stay unchanged."""
        old, made = self._old, self._value(self._old.shape)
        old.opcode, old.parameter_number, old.attributes = made.opcode, None, dict(made.attributes)
        self._edit.set_operands(old, made.operands)
        self._edit.remove(made)

    def _value(self, shape: Shape) -> Instruction:
        if isinstance(shape, TupleShape):
            return self._add("tuple", shape, tuple(map(self._value, shape.elements)))
        sharding = next(self._shardings)
        if not isinstance(shape, ArrayShape):
            return self._add("after-all", shape)
        bound = replace(shape, dynamic=())
        value = self._parameter(plain(shape), {"sharding": sharding} if sharding is not None else {})
        if bound != value.shape:
            value = self._add("copy", bound, (value,))
        for dimension in dynamic_dimensions(shape):
            value = self._resized(value, dimension)
        return value

    def _parameter(self, shape: ArrayShape, attributes: dict[str, AttributeValue]) -> Instruction:
        added = self._add("parameter", shape)
        added.parameter_number, added.attributes = next(self._numbers), attributes
        return added

    def _resized(self, value: Instruction, dimension: int) -> Instruction:
        """`value`, of which one dimension has the size that a new parameter says."""
        shape = value.array_shape
        dynamic = tuple(d == dimension or shape.is_dynamic_dimension(d) for d in range(shape.rank))
        operands = (value, self._parameter(_SIZE, {}))
        resized = self._add("set-dimension-size", replace(shape, dynamic=dynamic), operands)
        resized.attributes = {"dimensions": (dimension,)}
        return resized

    def _add(self, opcode: str, shape: Shape, operands: tuple[Instruction, ...] = ()) -> Instruction:
        added = Instruction(f"{self._old.name}.{opcode}", opcode, shape, operands)
        return self._edit.add(added, before=self._old)


def _flatten_result(edit: Editor, module: Module) -> None:
    arrays: list[Instruction] = []
    for array in list(arrays_of(edit, module.entry.root)):
        arrays += [_row_major(edit, array), *_sizes(edit, module, array)]
    if len(arrays) == 1:
        module.entry.root = arrays[0]
        return
    shape = TupleShape(tuple(array.shape for array in arrays))
    module.entry.root = edit.add(Instruction("result", "tuple", shape, tuple(arrays)))


def arrays_of(edit: Editor, value: Instruction) -> Iterator[Instruction]:
    """Instructions that give the arrays in `value`, added where there are none."""
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
            yield from arrays_of(edit, element)


def _row_major(edit: Editor, array: Instruction) -> Instruction:
    """A static array at its bound where that can be had; jaxlib takes a dynamic one for the same."""
    if _is_slice(array):
        array = array.operands[0]
    shape = array.array_shape
    wanted = replace(plain(shape), dynamic=shape.dynamic)
    return array if wanted == shape else edit.add(Instruction("copy", "copy", wanted, (array,)))


def _is_slice(array: Instruction) -> bool:
    """What XLA makes of a dynamic result: the array at its bound and its sizes go in."""
    return array.custom_call_target == "SliceToDynamic"


def _sizes(edit: Editor, module: Module, array: Instruction) -> Sequence[Instruction]:
    """The size of each dynamic dimension."""
    dimensions = dynamic_dimensions(array.array_shape)
    if _is_slice(array):
        return [array.operands[1 + d] for d in dimensions]
    if dimensions and module.is_scheduled:
        raise module.unsupported(array, "the size of a result of an optimised program cannot be had")
    return [
        edit.add(Instruction("size", "get-dimension-size", _SIZE, (array,), {"dimensions": (d,)}))
        for d in dimensions
    ]
