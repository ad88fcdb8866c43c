"""Programs as XLA takes them: as a frontend would write them, with arrays in and out, for how many
devices.

jaxlib knows no parameters that are tuples, no tuples of one element and no tuples in tuples. It hands over
and takes back every array row-major, and a dynamic one at its bound, without its sizes: these become
parameters and results of their own (s32), one behind the array for each dynamic dimension.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from hlotool.backends.xla.protocol import Route
from hlotool.errors import BackendFailed, Unsupported
from hlotool.facts.platforms import compiled_for
from hlotool.facts.sharding import assemble, leaf_shardings, split
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import AttributeValue, BackendConfig, Sharding
from hlotool.ir.builder import Builder
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes
from hlotool.parser.proto.schema import message_class
from hlotool.parser.proto.submessages import read_sharding
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.calls import Defuse
from hlotool.rewrite.passes.despecialize import (
    Deschedule,
    DropControlDependencies,
    DropLayouts,
    Synchronize,
)

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


_PASSES = (Deschedule(), DropControlDependencies(), Synchronize(), Defuse(), DropLayouts())


def logical_module(module: Module) -> Module:
    """A program that computes the same, written as a frontend would: no fusions, no layouts, no schedule.

    The values stay the same; what XLA makes of the program need not.

    Raises:
        Unsupported: it holds something that has no such form, such as a bitcast that reads padding.
    """
    copy = clone_module(module).module
    for step in _PASSES:
        step.run(copy, Context(step.name))
    for instruction in copy.instructions():
        if instruction.opcode != "custom-call" and "backend_config" in instruction.attributes:
            instruction.attributes = with_attributes(instruction.attributes, backend_config=None)
    return copy


def host_module(module: Module) -> Module:
    """The trivial program that an optimised one takes the place of.

    It takes what `module` takes and returns arrays of ones of the shapes of its result.

    Args:
        module: with a flat signature.
    """
    b = Builder("main")
    for number, parameter in enumerate(module.entry.parameters):
        b.parameter(number, parameter.shape)
    # One is a value that every element type has; f8e8m0fnu has no zero.
    results = [_ones(b, shape) for shape in array_shapes(module.entry.root.shape)]
    root = results[0] if len(results) == 1 else b.op("tuple", *results)
    return b.build_module(root)


def _ones(b: Builder, shape: ArrayShape) -> Instruction:
    one = b.constant(1, shape.element_type)
    return b.op("broadcast", one, shape=shape.without_layout(), dimensions=()) if shape.rank else one


#: A field of a backend config that this XLA does not know makes it refuse the whole program.
_UNKNOWN = re.compile(r"no such field: '(\w+)'")


def unknown_field(message: str) -> str | None:
    """The field that XLA's message complains about."""
    found = _UNKNOWN.search(message)
    return found[1] if found else None


def without_field(module: Module, name: str) -> Module:
    """A copy in which no backend config has a field called `name`."""
    copy = clone_module(module).module
    for instruction in copy.instructions():
        config = instruction.attribute("backend_config", BackendConfig, None)
        if config is not None and f'"{name}"' in config.text:
            bare = replace(config, text=json.dumps(_without(json.loads(config.text), name)))
            instruction.attributes = with_attributes(instruction.attributes, backend_config=bare)
    return copy


def _without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(part, name) for key, part in value.items() if key != name}
    return [_without(part, name) for part in value] if isinstance(value, list) else value


def in_shardy_alone(module: Module) -> Module:
    """A program that states its shardings to Shardy, without those that its root also states to GSPMD.

    XLA writes both into its dumps. Reading one again it takes a result that states none to Shardy for a
    program of GSPMD, gives up Shardy, and then dies of the annotations that are for Shardy alone. (XLA:
    shardy/utils.cc, hasGspmdAttrsOrOps; pjrt/mlir_to_hlo.cc.) Such a result that is replicated is so without
    saying it, for XLA chooses no shardings of results unless it is allowed to; others keep the program.
    """
    root = module.entry.root
    stated = root.attribute("sharding", Sharding, None)
    if module.frontend_attribute("xla.sdy.meshes") is None or stated is None or root.opcode != "tuple":
        return module
    others = [
        sharding
        for operand, sharding in zip(root.operands, stated.elements)
        if operand.custom_call_target != "xla.sdy.FuncResultSharding"
    ]
    if len(stated.elements) != len(root.operands) or any(other.kind != "replicated" for other in others):
        return module
    copy = clone_module(module).module
    copy.entry.root.attributes = with_attributes(root.attributes, sharding=None)
    return copy


#: What XLA's passes make, and StableHLO has no word for. Layouts prove nothing: frontends write them, too.
_MADE_BY_PASSES = opcodes_with(Trait.LATE)


def route_for(module: Module, platform: str, lets_in: bool) -> Route:
    """The way that suits `module`: what it holds decides, not the name of its stage.

    Args:
        module: of any stage.
        platform: that it is to run on.
        lets_in: jaxlib takes programs in the middle of the compiler.
    """
    if module.is_scheduled and lets_in and compiled_for(module) in (None, platform):
        return Route.POST_SCHEDULER
    return Route.MLIR


def is_optimised(module: Module) -> bool:
    """Whether it holds what StableHLO cannot say."""
    return module.is_scheduled or any(i.opcode in _MADE_BY_PASSES for i in module.instructions())


# Programs that talk to the host: on their own they crash XLA or wait for ever.

_EXCHANGE = frozenset({"infeed", "outfeed"})


def refuse_the_outside(module: Module) -> None:
    """Raises Unsupported, naming the first instruction that needs somebody outside of the program."""
    for instruction in module.instructions():
        if reason := _reason(instruction):
            raise module.unsupported(instruction, reason)


def _reason(instruction: Instruction) -> str:
    target = instruction.custom_call_target
    if "callback" in target:
        return f"calls back into the Python process that made it: {target!r}"
    if instruction.opcode in _EXCHANGE or instruction.flag("is_host_transfer"):
        return "exchanges data with the host, which takes no part in a replay"
    return ""


MANUAL = Sharding("manual")


def manual_module(module: Module) -> Module:
    """A copy that the partitioner leaves alone: each device runs it on its own arguments."""
    copy = clone_module(module).module
    for instruction in copy.entry.instructions:
        instruction.attributes = {**instruction.attributes, "sharding": MANUAL}
    return copy


def parse_sharding(content: bytes) -> Sharding:
    """The sharding in a serialized OpSharding."""
    message = message_class("OpSharding")()
    message.ParseFromString(content)
    return read_sharding(message)


def spread(arrays: Sequence[Array], shardings: Sequence[Sharding], count: int) -> list[list[Array]]:
    """What each of `count` devices gets of the global `arrays`.

    Raises:
        Unsupported: an array cannot be spread so.
    """
    try:
        columns = [split(array, sharding, count) for array, sharding in zip(arrays, shardings)]
    except ValueError as error:
        raise Unsupported(
            f"an argument cannot be spread over the devices as XLA wants it: {error}"
        ) from error
    return [[column[device] for column in columns] for device in range(count)]


def gather(
    rows: Sequence[Sequence[Array]], shapes: Sequence[ArrayShape], shardings: Sequence[Sharding]
) -> list[Array]:
    """The global arrays of which the devices hold the parts.

    Raises:
        BackendFailed: copies that devices hold of one array differ.
        Unsupported: the parts make no global array.
    """
    arrays: list[Array] = []
    for number, (column, shape, sharding) in enumerate(zip(zip(*rows), shapes, shardings)):
        try:
            array, disagreement = assemble(column, shape.dims, sharding)
        except ValueError as error:
            raise Unsupported(f"result {number} is no part of a global array: {error}") from error
        if disagreement is not None:
            raise BackendFailed("xla", f"result {number}: {disagreement}")
        arrays.append(array)
    return arrays
