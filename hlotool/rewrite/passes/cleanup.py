"""Dead and repeated instructions, constants, tuples that are taken apart. XLA: hlo_dce.cc, hlo_cse.cc,
constant_folding.cc, tuple_simplifier.cc.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hlotool.errors import HlotoolError, UsageError
from hlotool.facts.expressions import ExpressionKeys, is_interchangeable
from hlotool.ir.arrays import Literal
from hlotool.ir.edit import Editor, editing, with_attributes
from hlotool.ir.edit_calls import cone, extract
from hlotool.ir.edit_programs import remove_dead_code
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.ir.walk import call_order, call_sites, has_side_effect, users
from hlotool.rewrite.passes.base import Context, Evaluator


@dataclass(frozen=True, slots=True)
class Dce:
    """Remove instructions, computations, parameters and outputs of fusions and branches that are not needed.

    Attributes:
        fusion_outputs: also remove unread outputs of fusions and conditionals.
    """

    name: ClassVar[str] = "dce"
    fusion_outputs: bool = True

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        remove_dead_code(module, context.spend)
        if self.fusion_outputs and _remove_outputs(module, context):
            remove_dead_code(module, context.spend)


def _remove_outputs(module: Module, context: Context) -> bool:
    """Outputs of multi-output fusions and of conditionals that no get-tuple-element reads."""
    own = {c: sites[0].instruction for c, sites in call_sites(module).items() if len(sites) == 1}
    changed = False
    for computation in list(module.computations):
        readers = users(computation)
        for caller in computation.instructions:
            if caller.opcode not in ("fusion", "conditional") or caller is computation.root:
                continue
            if all(own.get(body) is caller for body in caller.called):
                changed |= _shrink(computation, caller, readers[caller], context)
    return changed


def _shrink(
    computation: Computation, caller: Instruction, readers: list[Instruction], context: Context
) -> bool:
    shape, bodies = caller.shape, dict.fromkeys(caller.called)
    splits = all(r.opcode == "get-tuple-element" for r in readers)
    are_tuples = all(body.root.opcode == "tuple" for body in bodies)
    if not (isinstance(shape, TupleShape) and are_tuples and splits and readers):
        return False
    if "output_to_operand_aliasing" in caller.attributes:
        return False
    read = sorted({r.integer("index") for r in readers})
    if len(read) == len(shape.elements) or not context.spend(f"{caller.opcode} output"):
        return False
    for body in bodies:
        _return_only(body, read)
        caller.shape = body.root.shape
    with editing(computation) as edit:
        for reader in readers:
            if len(read) == 1:
                edit.replace(reader, caller)
            else:
                reader.attributes = with_attributes(
                    reader.attributes, index=read.index(reader.integer("index"))
                )
    return True


def _return_only(body: Computation, positions: list[int]) -> None:
    """Make a computation return some of its results, a single one as it is."""
    old = body.root
    kept = [old.operands[p] for p in positions]
    with editing(body) as edit:
        if len(kept) == 1:
            body.root = kept[0]
        else:
            shape = TupleShape(tuple(k.shape for k in kept))
            body.root = edit.add(Instruction(old.name, "tuple", shape, tuple(kept), metadata=old.metadata))
        edit.remove(old)


@dataclass(frozen=True, slots=True)
class Cse:
    """Compute equal expressions once: same operation, operands, attributes and layouts."""

    name: ClassVar[str] = "cse"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        keys = ExpressionKeys()
        for computation in call_order(module):
            _merge(computation, keys, context, module.is_scheduled)


def _merge(computation: Computation, keys: ExpressionKeys, context: Context, scheduled: bool) -> None:
    seen: dict[Hashable, Instruction] = {}
    with editing(computation) as edit:
        for instruction in edit:
            if not is_interchangeable(instruction, scheduled):
                continue
            first = seen.setdefault(keys.instruction(instruction, id), instruction)
            if first is not instruction and edit.is_read(instruction) and context.spend(instruction.opcode):
                edit.replace(instruction, first)


#: Not worth a constant: they say the same in less space.
_COMPACT = frozenset({"broadcast", "iota", "constant"})
#: Never folded: their results have no literal, or mean something beyond their value.
_NEVER = opcodes_with(Trait.FORWARDS, Trait.ORDERS, Class.SOURCE) - {"constant", "iota"}
_OPAQUE_CLASSES = frozenset({Class.COLLECTIVE, Class.HOST, Class.RANDOM})


@dataclass(frozen=True, slots=True)
class Fold:
    """Replace what depends on constants alone by its value, as the reference computes it.

    Attributes:
        max_elements: arrays of more elements stay; so does what needs such an array on the way.
        loops: also run loops, calls and fusions.
    """

    name: ClassVar[str] = "fold"
    max_elements: int = 4096
    loops: bool = False

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            UsageError: there is no reference to compute with.
        """
        if context.evaluate is None:
            raise UsageError("pass fold needs an evaluator")
        for computation in module.computations:
            with editing(computation) as edit:
                for instruction in list(self._frontier(edit, computation)):
                    self._fold(module, edit, instruction, context, context.evaluate)

    def _frontier(self, edit: Editor, computation: Computation) -> Iterator[Instruction]:
        """Foldable instructions that something reads which stays as it is."""
        known: set[Instruction] = set()
        for instruction in edit:
            if self._is_foldable(instruction) and known.issuperset(instruction.operands):
                known.add(instruction)
        kept = {i for i in edit if i not in known}
        for instruction in reversed(list(edit)):
            is_read = instruction is computation.root or not kept.isdisjoint(edit.users(instruction))
            if instruction in known and is_read:
                if instruction.opcode in _COMPACT:
                    kept.add(instruction)
                else:
                    yield instruction

    def _is_foldable(self, instruction: Instruction) -> bool:
        shape = instruction.shape
        if instruction.opcode == "constant":
            return instruction.literal is not None and not instruction.literal.has_elided
        return (
            isinstance(shape, ArrayShape)
            and not shape.is_dynamic
            and shape.size <= self.max_elements
            and instruction.opcode not in _NEVER
            and (self.loops or instruction.row.opcode_class is not Class.CONTROL)
            and instruction.row.opcode_class not in _OPAQUE_CLASSES
            and not has_side_effect(instruction)
        )

    def _fold(
        self, module: Module, edit: Editor, instruction: Instruction, context: Context, evaluate: Evaluator
    ) -> None:
        try:
            value = evaluate(extract(module, cone([instruction]), [instruction]).module)
        except HlotoolError:
            # What the reference cannot compute stays as it is.
            return
        if context.spend(instruction.opcode):
            literal = Literal(instruction.shape, np.asarray(value, order="C"))
            folded = Instruction(instruction.name, "constant", instruction.shape, literal=literal)
            edit.replace(instruction, edit.add(folded, before=instruction))


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
