"""What is done to a program before its kernels are written: operations are fused as XLA does for GPUs.

Before that, what stands between operations that belong together is taken away, as XLA does, too: calls, which
JAX writes for every function of its own library, tuples, annotations, and what is computed twice.
"""

from __future__ import annotations

from typing import Final, Literal

from hlotool.analysis.custom_calls import ANNOTATIONS
from hlotool.backends.registry import evaluate_constant
from hlotool.ir.edit import editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Module
from hlotool.ir.partitioning import ENTERS_REGION, LEAVES_REGION
from hlotool.passes.algebra.simplify import Simplify
from hlotool.passes.base import Context
from hlotool.passes.calls import Inline
from hlotool.passes.cleanup import Cse, Dce, Fold, SimplifyTuples
from hlotool.passes.fuse import Fuse

#: Instructions of one fusion. A kernel of many takes no more registers than one of few, since a value is kept
#: no longer than it is needed; random bits alone are 150 instructions each.
LARGEST = 400

#: In this order: what is computed along rows takes loops with it, and what is left of these joins; but where
#: there are fusions already, loops that XLA has left apart stay so.
_KINDS: Final[tuple[Literal["all", "rows", "joint"], ...]] = ("all", "rows", "joint")


def fused(module: Module) -> Module:
    """A copy in which operations are fused, reductions with the rest of their rows.

    No value is computed otherwise, but for the order of sums: that follows from how what is reduced lies in
    memory, and a reduction that takes in a transposition reads what it transposes.
    """
    fused = clone_module(module).module
    was_fused = any(i.opcode == "fusion" for c in fused.computations for i in c.instructions)
    Inline().run(fused, Context("inline"))
    _drop_annotations(fused)
    for tidy in (SimplifyTuples(), Simplify(), Fold(max_elements=1), Cse(), Dce()):
        tidy.run(fused, Context(tidy.name, evaluate=evaluate_constant))
    for kind in _KINDS[:2] if was_fused else _KINDS:
        Fuse(kind=kind, max_instructions=LARGEST).run(fused, Context("fuse"))
    return fused


def _drop_annotations(module: Module) -> None:
    """Custom calls that only say something about their operand go, but where other calls ask for that."""
    everything = [i for computation in module.computations for i in computation.instructions]
    if any(i.attributes.get("custom_call_target") in ENTERS_REGION | LEAVES_REGION for i in everything):
        return
    for computation in module.computations:
        with editing(computation) as edit:
            for instruction in edit:
                is_annotation = instruction.attributes.get("custom_call_target") in ANNOTATIONS
                operand = instruction.operands[0] if is_annotation and instruction.operands else None
                if operand is not None and operand.shape == instruction.shape:
                    edit.replace_uses(instruction, operand)
                    if not edit.successors(instruction):
                        edit.remove(instruction)
