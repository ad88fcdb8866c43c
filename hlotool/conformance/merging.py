"""Modules made of others: many as one, so that XLA's fixed costs are paid once; arguments as constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.dtypes import Array
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, TupleShape


def merge(modules: Sequence[Module]) -> Module:
    """A module that does what all `modules` do, side by side.

    Its parameters are those of the modules in turn; its result is a flat tuple of all their array leaves,
    tokens left out. Attributes of the module headers are dropped.
    """
    merged = Module("merged", [], Computation("merged", [], Instruction("none", "tuple", TupleShape(()))))
    outputs: list[Instruction] = []
    count = 0
    for number, module in enumerate(modules):
        copier = _Copier(f"m{number}.")
        entry = copier.computation(module.entry)
        for parameter in entry.parameters:
            parameter.parameter_number = (parameter.parameter_number or 0) + count
        count += len(entry.parameters)
        merged.computations += [c for c in copier.copied.values() if c is not entry]
        merged.entry.instructions += entry.instructions
        for leaf in _leaves(entry.root, merged.entry.instructions):
            outputs.append(leaf)
    root = Instruction("merged", "tuple", TupleShape(tuple(o.shape for o in outputs)), tuple(outputs))
    merged.entry.instructions.append(root)
    merged.entry.root = root
    merged.computations.append(merged.entry)
    return merged


def bind(module: Module, arguments: Sequence[Array]) -> Module:
    """`module` with constants in the place of its parameters, all of which are arrays.

    XLA folds what depends on constants alone, by its evaluator.
    """
    entry = _Copier("").computation(module.entry)
    for parameter, argument in zip(entry.parameters, arguments):
        parameter.opcode, parameter.parameter_number = "constant", None
        parameter.literal = Literal(parameter.shape, argument)
    others = [c for c in module.computations if c is not module.entry]
    return Module(module.name, [*others, entry], entry)


def _leaves(value: Instruction, instructions: list[Instruction]) -> Iterator[Instruction]:
    """The array leaves of `value`; what takes tuples apart is appended to `instructions`."""
    if isinstance(value.shape, TupleShape):
        for index, shape in enumerate(value.shape.elements):
            element = Instruction(
                f"{value.name}.e{index}", "get-tuple-element", shape, (value,), {"index": index}
            )
            instructions.append(element)
            yield from _leaves(element, instructions)
    elif isinstance(value.shape, ArrayShape):
        yield value


class _Copier:
    """Copies computations with all that they call, under names with a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.copied: dict[Computation, Computation] = {}

    def computation(self, source: Computation) -> Computation:
        if source not in self.copied:
            known: dict[Instruction, Instruction] = {}
            for instruction in source.instructions:
                known[instruction] = replace(
                    instruction,
                    name=self.prefix + instruction.name,
                    operands=tuple(known[o] for o in instruction.operands),
                    control_predecessors=tuple(known[o] for o in instruction.control_predecessors),
                    attributes={k: self._attribute(v) for k, v in instruction.attributes.items()},
                )
            copy = replace(
                source,
                name=self.prefix + source.name,
                instructions=list(known.values()),
                root=known[source.root],
            )
            self.copied[source] = copy
        return self.copied[source]

    def _attribute(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, Computation):
            return self.computation(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return tuple(self.computation(c) for c in value if isinstance(c, Computation))
        return value
