"""Dead code elimination. XLA: hlo_dce.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit import editing, with_attributes
from hlotool.ir.edit_dead import fusions_of, remove_dead_code
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import TupleShape
from hlotool.ir.walk import users
from hlotool.passes.base import Context


@dataclass(frozen=True, slots=True)
class Dce:
    """Remove instructions, computations, parameters and outputs of fusions that nobody needs.

    Attributes:
        fusion_outputs: also remove outputs of fusions that nobody reads.
    """

    name: ClassVar[str] = "dce"
    fusion_outputs: bool = True

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        remove_dead_code(module, context.spend)
        if self.fusion_outputs and _remove_outputs(module, context):
            remove_dead_code(module, context.spend)


def _remove_outputs(module: Module, context: Context) -> bool:
    """Outputs of multi-output fusions that no get-tuple-element reads."""
    own = {c: fusions[0] for c, fusions in fusions_of(module).items() if len(fusions) == 1}
    changed = False
    for computation in list(module.computations):
        readers = users(computation)
        for fusion in computation.instructions:
            if fusion.opcode != "fusion":
                continue
            (body,) = fusion.called
            if own.get(body) is fusion and fusion is not computation.root:
                changed |= _shrink(computation, fusion, body, readers[fusion], context)
    return changed


def _shrink(
    computation: Computation,
    fusion: Instruction,
    body: Computation,
    readers: list[Instruction],
    context: Context,
) -> bool:
    shape = fusion.shape
    splits = all(r.opcode == "get-tuple-element" for r in readers)
    if not (isinstance(shape, TupleShape) and body.root.opcode == "tuple" and splits and readers):
        return False
    if "output_to_operand_aliasing" in fusion.attributes:
        return False
    read = sorted({r.integer("index") for r in readers})
    if len(read) == len(shape.elements) or not context.spend("fusion output"):
        return False
    _return_only(body, read)
    fusion.shape = body.root.shape
    with editing(computation) as edit:
        for reader in readers:
            if len(read) == 1:
                edit.replace(reader, fusion)
            else:
                reader.attributes = with_attributes(
                    reader.attributes, index=read.index(reader.integer("index"))
                )
    return True


def _return_only(body: Computation, positions: list[int]) -> None:
    """Make a fused computation return some of its results, a single one as it is."""
    old = body.root
    kept = [old.operands[p] for p in positions]
    with editing(body) as edit:
        if len(kept) == 1:
            body.root = kept[0]
        else:
            shape = TupleShape(tuple(k.shape for k in kept))
            body.root = edit.add(Instruction(old.name, "tuple", shape, tuple(kept), metadata=old.metadata))
        edit.remove(old)
