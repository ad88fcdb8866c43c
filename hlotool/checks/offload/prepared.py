"""A program as XLA's passes for host offloading get it: calls and known branches in their places, equal
expressions once, dead code gone.

Annotations have no side effects there: one that nothing reads is gone, too. What says how values are sharded
hands on what it is given. XLA: convert_memory_placement_to_internal_annotations.cc, call_inliner.cc, and
what runs before host_offload_legalize in compilers for TPUs.
"""

from __future__ import annotations

from hlotool.backends.registry import evaluate_constant
from hlotool.checks.offload.positions import placement
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.ir.edit import editing, with_attributes
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Module
from hlotool.rewrite.passes.algebra.simplify import Simplify
from hlotool.rewrite.passes.base import Context, Pass
from hlotool.rewrite.passes.calls import Inline, SimplifyConditionals
from hlotool.rewrite.passes.cleanup import Cse, Dce, Fold, SimplifyTuples

#: Small constants choose branches, and places of slices.
_FIRST: tuple[Pass, ...] = (
    Inline(), Fold(max_elements=64), Simplify(rules=("movement-of-scalar", "slice-of-update")),
    Fold(max_elements=64), SimplifyConditionals(),
)  # fmt: skip
_THEN: tuple[Pass, ...] = (SimplifyTuples(), Dce(), Cse(), SimplifyTuples(), Dce())


def prepared(module: Module) -> Module:
    """A copy; instructions keep their lines, and their names as far as they stay apart."""
    copy = clone_module(module).module
    for computation in copy.computations:
        _drop_shardings(computation)
    context = Context(evaluate=evaluate_constant)
    _set_side_effects(copy, True)  # what is moved is not known, even where it is a constant
    for change in _FIRST:
        change.run(copy, context)
    _set_side_effects(copy, None)
    for change in _THEN:
        change.run(copy, context)
    return copy


def _set_side_effects(module: Module, has: bool | None) -> None:
    """Of annotations."""
    for computation in module.computations:
        for instruction in computation.instructions:
            if placement(instruction) is not None:
                changed = with_attributes(instruction.attributes, custom_call_has_side_effect=has)
                instruction.attributes = changed


def _drop_shardings(computation: Computation) -> None:
    """Drop what is no operation and says how values are sharded."""
    with editing(computation) as edit:
        for instruction in list(edit):
            is_kept = placement(instruction) is not None or len(instruction.operands) != 1
            if instruction.custom_call_target in ANNOTATIONS and not is_kept:
                edit.replace_uses(instruction, instruction.operands[0])
                if instruction is computation.root:
                    edit.set_root(instruction.operands[0])
                edit.remove(instruction)
