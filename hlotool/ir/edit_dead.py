"""Removing what nobody needs: instructions, computations, parameters of fusions."""

from __future__ import annotations

from hlotool.ir.edit import Editor, editing
from hlotool.ir.effects import has_side_effect
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import call_sites, reachable


def is_removable(edit: Editor, instruction: Instruction) -> bool:
    """Whether the program does the same without it: it is not read, returned, acting, or a parameter."""
    return (
        not edit.is_read(instruction)
        and instruction.opcode != "parameter"
        and not has_side_effect(instruction)
    )


def remove_dead_instructions(edit: Editor) -> int:
    """Remove all that neither the root nor an acting instruction needs; returns how many.

    What waited for a removed instruction waits for what that one had to wait for.
    """
    removed = 0
    for instruction in reversed(list(edit)):
        if is_removable(edit, instruction):
            edit.remove(instruction)
            removed += 1
    return removed


def remove_dead_computations(module: Module) -> int:
    """Remove the computations that the entry does not reach; returns how many."""
    alive = set(reachable(module.entry))
    before = len(module.computations)
    module.computations = [c for c in module.computations if c in alive]
    return before - len(module.computations)


def remove_dead_code(module: Module) -> int:
    """Remove dead instructions everywhere, dead parameters of fusions, then dead computations.

    Returns:
        how many instructions, parameters and computations are gone.
    """
    removed = remove_dead_computations(module)
    # Callers first: an operand that only a removed call read is dead, too.
    for computation in reversed(list(module.computations)):
        with editing(computation) as edit:
            removed += remove_dead_instructions(edit)
    removed += remove_dead_computations(module)
    return removed + _remove_dead_fusion_parameters(module)


def _remove_dead_fusion_parameters(module: Module) -> int:
    """Parameters that a fused computation does not read; XLA allows none."""
    removed = 0
    for computation, sites in call_sites(module).items():
        fusions = [site.instruction for site in sites if site.instruction.opcode == "fusion"]
        if not fusions or len(fusions) != len(sites) or computation not in module.computations:
            continue
        dead = dead_parameters(computation)
        if dead and not any("output_to_operand_aliasing" in f.attributes for f in fusions):
            drop_parameters(computation, dead)
            for fusion in fusions:
                fusion.operands = without(fusion.operands, dead)
            removed += len(dead)
    if removed:
        removed += remove_dead_code(module)
    return removed


def dead_parameters(computation: Computation) -> set[int]:
    """Numbers of the parameters that are neither read nor returned."""
    read = {operand for i in computation.instructions for operand in i.operands} | {computation.root}
    return {n for n, parameter in enumerate(computation.parameters) if parameter not in read}


def drop_parameters(computation: Computation, numbers: set[int]) -> None:
    """Remove parameters that nobody reads and number the others again; callers must drop the operands."""
    with editing(computation) as edit:
        kept = 0
        for number, parameter in enumerate(computation.parameters):
            if number in numbers:
                edit.discard(parameter)
            else:
                parameter.parameter_number = kept
                kept += 1


def without(operands: tuple[Instruction, ...], numbers: set[int]) -> tuple[Instruction, ...]:
    """The operands but for those at `numbers`."""
    return tuple(o for n, o in enumerate(operands) if n not in numbers)
