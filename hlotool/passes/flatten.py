"""One call site for every computation that runs as control flow. XLA: flatten_call_graph.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Names, computation_names, with_attributes
from hlotool.ir.edit_clone import clone_computation
from hlotool.ir.module import Computation, Instruction, Module, computations_in
from hlotool.ir.walk import CallSite, call_sites, context_of_callees
from hlotool.ir.walk import Context as CallContext
from hlotool.passes.base import Context


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
