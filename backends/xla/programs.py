"""Programs as XLA takes them: as a frontend would write them, hosts of others, without unknown fields."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from hlotool.ir.attributes import BackendConfig, Sharding
from hlotool.ir.builder import Builder
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, array_shapes
from hlotool.passes.base import Context
from hlotool.passes.calls import Defuse
from hlotool.passes.despecialize import Deschedule, DropControlDependencies, DropLayouts, Synchronize

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
