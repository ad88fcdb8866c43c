"""Tuples that are made only to be taken apart. XLA: tuple_simplifier.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit import Editor, editing
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import TupleShape
from hlotool.passes.base import Context


@dataclass(frozen=True, slots=True)
class SimplifyTuples:
    """Read elements of tuples where they come from, and pass on tuples that are put together unchanged."""

    name: ClassVar[str] = "simplify-tuples"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for computation in module.computations:
            with editing(computation) as edit:
                for instruction in edit:
                    if instruction.opcode == "get-tuple-element":
                        _read_directly(edit, instruction, context)
                    elif instruction.opcode == "tuple":
                        _pass_on(edit, instruction, context)


def _read_directly(edit: Editor, part: Instruction, context: Context) -> None:
    """get-tuple-element(tuple(…, x, …)) is x."""
    (whole,), index = part.operands, part.integer("index")
    if whole.opcode == "tuple" and whole.operands[index].shape == part.shape and context.spend("element"):
        edit.replace(part, whole.operands[index])


def _pass_on(edit: Editor, made: Instruction, context: Context) -> None:
    """tuple(get-tuple-element(x, 0), …, get-tuple-element(x, n - 1)) is x."""
    sources = {o.operands[0] for o in made.operands if o.opcode == "get-tuple-element"}
    if len(sources) != 1:
        return
    (source,) = sources
    in_order = all(
        o.opcode == "get-tuple-element" and o.integer("index") == n for n, o in enumerate(made.operands)
    )
    whole = isinstance(source.shape, TupleShape) and len(source.shape.elements) == len(made.operands)
    if in_order and whole and source.shape == made.shape and context.spend("tuple"):
        edit.replace(made, source)
