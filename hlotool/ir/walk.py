"""Orders and relations in a program: users, post-order, the call graph, control flow, side effects.

An instruction with a side effect must run although its result is unused. XLA:
HloInstruction::HasSideEffect.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hlotool.ir.attribute_kinds import Kind
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import OPCODES, Trait, attribute_kind, opcodes_with
from hlotool.ir.types import ShapeIndex

_Node = TypeVar("_Node", Instruction, Computation)

Users = dict[Instruction, list[Instruction]]

#: No program nests calls like that, and whatever walks them recursively may count on it.
DEEPEST_CALLS = 100

#: Opcodes that can call computations.
_CALLERS = frozenset(
    name
    for name, row in OPCODES.items()
    if any(attribute_kind(name, key) in (Kind.COMPUTATION, Kind.COMPUTATIONS) for key in row.attributes)
)


def users(computation: Computation) -> Users:
    """Who reads each instruction's result, in order of appearance, each once; no control edges."""
    found: Users = {i: [] for i in computation.instructions}
    for instruction in computation.instructions:
        for operand in dict.fromkeys(instruction.operands):
            found.setdefault(operand, []).append(instruction)
    return found


def branches(conditional: Instruction) -> tuple[Computation, ...]:
    """The branch computations of a `conditional` by index; the true branch of a predicated one is first."""
    if "branch_computations" in conditional.attributes:
        return conditional.listed("branch_computations", Computation)
    named = (conditional.attributes.get(f"{which}_computation") for which in ("true", "false"))
    return tuple(c for c in named if isinstance(c, Computation))


def async_start(instruction: Instruction) -> Instruction:
    """What begins the chain of asynchronous instructions that `instruction` belongs to."""
    while instruction.opcode in ("async-update", "async-done") and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def through_tuple(instruction: Instruction, index: ShapeIndex) -> tuple[Instruction, ShapeIndex] | None:
    """The operand, and the part of it, that a part of a tuple or an element of one is; None of others."""
    if instruction.opcode == "get-tuple-element":
        return instruction.operands[0], (instruction.integer("index"), *index)
    return (instruction.operands[index[0]], index[1:]) if instruction.opcode == "tuple" and index else None


def predecessors(instruction: Instruction) -> Iterator[Instruction]:
    """What must run before: operands, then control predecessors."""
    yield from instruction.operands
    yield from instruction.control_predecessors


def post_order(
    roots: Iterable[Instruction], needs: Callable[[Instruction], Iterable[Instruction]] = predecessors
) -> list[Instruction]:
    """`roots` and everything they need, each after what it `needs`.

    Raises:
        ValueError: there is a cycle; the message names an instruction on it.
    """
    return _post_order(roots, needs, "depends on itself")


def _post_order(roots: Iterable[_Node], needs: Callable[[_Node], Iterable[_Node]], fault: str) -> list[_Node]:
    """Each node after what it needs, of which the last is visited first; `fault` says what is on a cycle."""
    order: list[_Node] = []
    done: dict[_Node, bool] = {}
    for root in roots:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                if not done[node]:
                    done[node] = True
                    order.append(node)
                continue
            done[node] = False
            for needed in needs(node):
                if needed not in done:
                    stack.append(needed)
                elif not done[needed]:
                    raise ValueError(f"{needed.name} {fault}")
    return order


def sort_topologically(computation: Computation) -> None:
    """Reorder the instructions so that each follows what it needs, moving as little as possible.

    Raises:
        ValueError: there is a cycle.
    """
    members = set(computation.instructions)
    computation.instructions = [i for i in post_order(computation.instructions) if i in members]


def reachable(computation: Computation) -> list[Computation]:
    """`computation` and all that it calls, directly or not; callees before callers.

    Raises:
        ValueError: a computation calls itself.
    """
    return _post_order([computation], _callees, "calls itself")


def call_order(module: Module) -> list[Computation]:
    """All computations of the module and what they call, callees before callers.

    Raises:
        ValueError: a computation calls itself.
    """
    return _post_order(module.computations, _callees, "calls itself")


def check_call_depth(computations: Sequence[Computation]) -> None:
    """Refuse programs whose calls nest deeper than anything that walks them can follow.

    Args:
        computations: callees before callers, as texts and protos have them.

    Raises:
        ValueError: there is a chain of more than `DEEPEST_CALLS` calls.
    """
    if len(computations) <= DEEPEST_CALLS:
        return
    depth: dict[Computation, int] = {}
    for computation in computations:
        depth[computation] = 1 + max((depth.get(c, 0) for c in _callees(computation)), default=0)
        if depth[computation] > DEEPEST_CALLS:
            raise ValueError(f"computation {computation.name}: calls nest more than {DEEPEST_CALLS} deep")


def _callees(computation: Computation) -> Iterator[Computation]:
    """What a computation calls, last first."""
    callers = [i for i in computation.instructions if i.opcode in _CALLERS]
    return reversed(dict.fromkeys(callee for caller in callers for callee in caller.called))


class Context(enum.Enum):
    """How a computation runs."""

    #: Its instructions run one by one, like the entry's: call, while, conditional, async.
    CONTROL_FLOW = "control flow"
    #: It describes one kernel: fusion.
    FUSED = "fused"
    #: It is applied to scalars: reduce, map, sort, scatter, collectives.
    EMBEDDED = "embedded"


_CONTROL_FLOW = frozenset(("call", "while", "conditional", "async-start", "async-update", "async-done"))


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a computation is called."""

    caller: Computation
    instruction: Instruction


def context_of_callees(instruction: Instruction) -> Context:
    """How the computations that `instruction` calls run."""
    if instruction.opcode in _CONTROL_FLOW:
        return Context.CONTROL_FLOW
    return Context.FUSED if instruction.opcode == "fusion" else Context.EMBEDDED


def call_sites(module: Module) -> dict[Computation, list[CallSite]]:
    """Every place where each computation is called, in textual order."""
    sites: dict[Computation, list[CallSite]] = {c: [] for c in module.computations}
    for computation in module.computations:
        for instruction in computation.instructions:
            for callee in dict.fromkeys(instruction.called):
                sites.setdefault(callee, []).append(CallSite(computation, instruction))
    return sites


def contexts(module: Module) -> dict[Computation, set[Context]]:
    """How each computation runs: what embedded computations call is embedded, what fusions call is fused.

    The entry runs as control flow; a computation that is never called has no context.
    """
    found: dict[Computation, set[Context]] = {c: set() for c in module.computations}
    found[module.entry] = {Context.CONTROL_FLOW}
    for computation in reversed(reachable(module.entry)):
        for instruction in computation.instructions:
            for callee in instruction.called:
                inherited = found.setdefault(computation, set()) - {Context.CONTROL_FLOW}
                own = context_of_callees(instruction)
                found.setdefault(callee, set()).update(inherited or {own})
                if Context.CONTROL_FLOW in found[computation]:
                    found[callee].add(own)
    return found


#: Opcodes that act on something outside the computation, or draw from a hidden state.
_SIDE_EFFECTS = opcodes_with(Trait.SIDE_EFFECT)


def has_own_side_effect(instruction: Instruction) -> bool:
    """Whether the operation itself has a side effect, whatever the computations it calls do."""
    attributes = instruction.attributes
    return (
        instruction.opcode in _SIDE_EFFECTS
        or attributes.get("custom_call_has_side_effect") is True
        or attributes.get("constrain_layout") is True
        or "channel_id" in attributes
    )


def has_side_effect(instruction: Instruction) -> bool:
    """Whether it or something it calls, directly or not, has a side effect."""
    return has_own_side_effect(instruction) or any(map(_acts, set(instruction.called)))


def _acts(computation: Computation) -> bool:
    return any(map(has_side_effect, computation.instructions))
