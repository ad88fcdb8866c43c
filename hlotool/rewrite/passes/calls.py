"""Calls, fusions and branches put in their places, or given computations of their own. XLA: call_inliner.cc,
defuser.cc, flatten_call_graph.cc, conditional_simplifier.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hlotool.facts.recognition import integer_constant
from hlotool.ir.arrays import Literal
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.builder import array
from hlotool.ir.edit import Editor, Names, computation_names, with_attributes
from hlotool.ir.edit_calls import inline, insert_body
from hlotool.ir.edit_programs import clone_computation
from hlotool.ir.module import Computation, Instruction, Module, computations_in
from hlotool.ir.types import ArrayShape, ElementType, TupleShape, leaves
from hlotool.ir.walk import CallSite, branches, call_sites, context_of_callees, has_side_effect, reachable
from hlotool.ir.walk import Context as CallContext
from hlotool.rewrite.passes.algebra.rules import Make
from hlotool.rewrite.passes.base import Context, each_caller


@dataclass(frozen=True, slots=True)
class Inline:
    """Put the body of every `call` in its place.

    Attributes:
        single_use: only computations that are called once.
        composites: also calls that stand for a composite operation.
    """

    name: ClassVar[str] = "inline"
    single_use: bool = False
    composites: bool = True

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        uses = {callee: len(sites) for callee, sites in call_sites(module).items()}
        for edit, call, names in each_caller(module, "call"):
            is_meant = not self.single_use or all(uses[callee] == 1 for callee in call.called)
            if is_meant and self._may(edit.computation, call) and context.spend("call"):
                inline(module, edit, call, names=names)

    def _may(self, computation: Computation, instruction: Instruction) -> bool:
        """Whether a call may go: the author can forbid it, and other threads are other devices."""
        if instruction.frontend_attribute("inlineable") == "false":
            return False
        if instruction.frontend_attribute("_xla_compute_type") is not None:
            return False
        same_thread = all(c.execution_thread == computation.execution_thread for c in instruction.called)
        return same_thread and (self.composites or not instruction.flag("is_composite"))


@dataclass(frozen=True, slots=True)
class Defuse:
    """Replace every fusion by its computation.

    Attributes:
        kind: only fusions of this kind, such as kLoop or kCustom; all when empty.
    """

    name: ClassVar[str] = "defuse"
    kind: str = ""

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for edit, fusion, names in each_caller(module, "fusion"):
            if self.kind in ("", fusion.attributes.get("kind")) and context.spend("fusion"):
                inline(module, edit, fusion, names=names)


@dataclass(frozen=True, slots=True)
class Flatten:
    """Give every call, loop, branch, asynchronous call and fusion computations of its own."""

    name: ClassVar[str] = "flatten"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        claims = _Claims(module, context)
        # Callers first: the copy of a caller brings call sites of its own.
        pending = [module.entry]
        while pending:
            for instruction in pending.pop().instructions:
                if instruction.opcode in ("async-update", "async-done"):
                    _follow_start(instruction)
                elif context_of_callees(instruction) is not CallContext.EMBEDDED:
                    claims.all_of(instruction)
                    pending += dict.fromkeys(instruction.called)


class _Claims:
    """Whose each computation is; what is taken already is copied."""

    def __init__(self, module: Module, context: Context) -> None:
        self._module = module
        self._context = context
        self._names: Names = computation_names(module)
        self._taken = {callee for callee, sites in call_sites(module).items() if any(map(_embeds, sites))}

    def all_of(self, instruction: Instruction) -> None:
        """Claim what the instruction calls."""
        named = instruction.attributes.items()
        changes = {name: self._value(value) for name, value in named if computations_in(value)}
        if changes:
            instruction.attributes = with_attributes(instruction.attributes, **changes)

    def _value(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, Computation):
            return self._claim(value)
        return tuple(map(self._claim, computations_in(value)))

    def _claim(self, computation: Computation) -> Computation:
        if computation not in self._taken:
            self._taken.add(computation)
            return computation
        if not self._context.spend("computation"):
            return computation
        copy = clone_computation(self._module, computation, self._names)
        self._taken.add(copy)
        return copy


def _embeds(site: CallSite) -> bool:
    return context_of_callees(site.instruction) is CallContext.EMBEDDED


def _follow_start(following: Instruction) -> None:
    """Name the computation that the asynchronous call was started with, where it is named again."""
    wrapped = following.operands[0].attributes.get("calls")
    if "calls" in following.attributes and wrapped is not None:
        following.attributes = with_attributes(following.attributes, calls=wrapped)


# XLA: conditional_simplifier.cc, conditional_to_select.cc.


@dataclass(frozen=True, slots=True)
class SimplifyConditionals:
    """Take the branch of a conditional whose predicate is constant; with `select`, compute all branches.

    Attributes:
        select: replace conditionals by the instructions of all branches and selects.
        max_instructions: with `select`, conditionals with larger branches stay.
    """

    name: ClassVar[str] = "simplify-conditionals"
    select: bool = False
    max_instructions: int = 32

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for edit, conditional, names in each_caller(module, "conditional"):
            self._simplify(module, edit, conditional, names, context)

    def _simplify(
        self, module: Module, edit: Editor, conditional: Instruction, names: Names, context: Context
    ) -> None:
        taken = _known_branch(conditional)
        if taken is not None:
            if context.spend("known branch"):
                body, argument = branches(conditional)[taken], conditional.operands[1 + taken]
                result = insert_body(module, edit, body, [argument], conditional, names)
                edit.replace_uses(conditional, result)
                edit.remove(conditional)
        elif self.select and self._is_cheap(conditional) and context.spend("select"):
            _select(module, edit, conditional, names)

    def _is_cheap(self, conditional: Instruction) -> bool:
        """No branch does anything but compute arrays, and not for long."""
        parts = {c for branch in branches(conditional) for c in reachable(branch)}
        instructions = [i for part in parts for i in part.instructions]
        return (
            len(instructions) <= self.max_instructions
            and not any(i.opcode == "while" or has_side_effect(i) for i in instructions)
            and all(isinstance(leaf, ArrayShape) for _, leaf in leaves(conditional.shape))
        )


def _known_branch(conditional: Instruction) -> int | None:
    """The branch that a constant chooses: true is the first, and what is out of range is the last."""
    value = integer_constant(conditional.operands[0])
    if value is None:
        return None
    if _is_predicate(conditional.operands[0]):
        return 0 if value else 1
    count = len(branches(conditional))
    return value if 0 <= value < count else count - 1


def _is_predicate(value: Instruction) -> bool:
    return isinstance(value.shape, ArrayShape) and value.shape.element_type is ElementType.PRED


def _select(module: Module, edit: Editor, conditional: Instruction, names: Names) -> None:
    index, *arguments = conditional.operands
    results = [
        insert_body(module, edit, body, [argument], conditional, names)
        for body, argument in zip(branches(conditional), arguments)
    ]
    make = Make(edit, conditional)
    chosen = results[-1]
    for number in range(len(results) - 2, -1, -1):
        holds = index if _is_predicate(index) else _equals(make, index, number)
        chosen = _choose(make, holds, results[number], chosen)
    edit.replace_uses(conditional, chosen)
    edit.remove(conditional)


def _equals(make: Make, index: Instruction, number: int) -> Instruction:
    """Whether the index is `number`."""
    constant = make.op("constant", shape=array("s32"))
    constant.literal = Literal(constant.shape, np.array(number, np.int32))
    return make.op("compare", index, constant, shape=array("pred"), direction="EQ")


def _choose(make: Make, holds: Instruction, first: Instruction, second: Instruction) -> Instruction:
    """`first` where the predicate holds, else `second`; tuples element by element."""
    if isinstance(first.shape, TupleShape):
        parts = []
        for number, shape in enumerate(first.shape.elements):
            one, other = (
                make.op("get-tuple-element", whole, shape=shape, index=number) for whole in (first, second)
            )
            parts.append(_choose(make, holds, one, other))
        return make.op("tuple", *parts, shape=TupleShape(tuple(part.shape for part in parts)))
    if dims := first.dims:
        holds = make.op("broadcast", holds, shape=array("pred", *dims), dimensions=())
    return make.op("select", holds, first, second, shape=first.shape)
