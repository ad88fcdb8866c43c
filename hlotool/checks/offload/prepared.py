"""A program as XLA's passes for host offloading get it: calls in their places, dead code gone.

Annotations have no side effects there: one that nothing reads is gone, too. What says how values are sharded
hands on what it is given. XLA: convert_memory_placement_to_internal_annotations.cc, call_inliner.cc, and
what runs before host_offload_legalize in compilers for TPUs.
"""

from __future__ import annotations

from hlotool.backends.registry import evaluate_constant
from hlotool.checks.offload.positions import placement
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.ir.edit import editing
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Module
from hlotool.rewrite.passes.algebra.simplify import Simplify
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.calls import Inline, SimplifyConditionals
from hlotool.rewrite.passes.cleanup import Cse, Dce, Fold, SimplifyTuples


#: Those that decide what comes to the host, and what is left of it. Constants of a few elements choose
#: branches and places of slices.
_PASSES = (
    Inline(), SimplifyTuples(), Dce(), Cse(), Simplify(rules=("movement-of-scalar", "slice-of-update")),
    Fold(max_elements=64), SimplifyConditionals(), SimplifyTuples(), Dce(),
)  # fmt: skip


def prepared(module: Module) -> Module:
    """A copy; instructions keep their lines, and their names as far as they stay apart."""
    copy = clone_module(module).module
    for computation in copy.computations:
        _simplify(computation)
    context = Context(evaluate=evaluate_constant)
    for change in _PASSES:
        change.run(copy, context)
    return copy


def _simplify(computation: Computation) -> None:
    """Drop what is no operation, and the side effects that annotations are written with."""
    with editing(computation) as edit:
        for instruction in list(edit):
            if placement(instruction) is not None:
                attributes = dict(instruction.attributes)
                attributes.pop("custom_call_has_side_effect", None)
                instruction.attributes = attributes
            elif instruction.custom_call_target in ANNOTATIONS and len(instruction.operands) == 1:
                edit.replace_uses(instruction, instruction.operands[0])
                if instruction is computation.root:
                    edit.set_root(instruction.operands[0])
                edit.remove(instruction)
