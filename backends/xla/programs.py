"""Programs as XLA takes them: as a frontend would write them, which way they go, for how many devices."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hlotool.backends.xla.protocol import Route
from hlotool.errors import BackendFailed, Unsupported
from hlotool.facts.sharding import assemble, split
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import BackendConfig, Sharding
from hlotool.ir.builder import Builder
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, array_shapes
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

#: Fields of backend configs that only the compilers of other platforms write.
_FIELDS = {
    "gpu": ('"operation_queue_id"', '"fusion_backend_config"', '"gemm_backend_config"', '"wait_on_operation'),
    "tpu": ('"flag_configs"', '"scoped_memory_configs"', '"window_config"', '"used_scoped_memory_configs"'),
    "cpu": ('"outer_dimension_partitions"', '"onednn_'),
}


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


def compiled_for(module: Module) -> str | None:
    """The platform whose compiler has been over the program; None where nothing tells."""
    for instruction in module.instructions():
        if found := _platform_of(instruction):
            return found
    return None


def _platform_of(instruction: Instruction) -> str | None:
    for platform, fields in _FIELDS.items():
        if any(field in instruction.config_text for field in fields):
            return platform
    if instruction.attributes.get("kind") == "kInput":
        return "gpu"
    layouts = [shape.layout for shape in array_shapes(instruction.shape)]
    return "tpu" if any(layout is not None and layout.tiles for layout in layouts) else None


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
