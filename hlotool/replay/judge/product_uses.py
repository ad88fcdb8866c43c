"""Whether a value is read by products alone, so that rounding it is rounding their operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import INLINED
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.walk import users
from hlotool.numerics.contributions import EXACT

#: What chooses or moves numbers: a rounding before it is one behind it. XLA lets a narrow type pass through
#: them (hlo/transforms/bfloat16_propagation.cc, service/float_support.cc).
_MOVING = frozenset({Class.DATA_MOVEMENT, Class.ANNOTATION})
_PASSING = EXACT | {
    *(
        "all-gather",
        "collective-permute",
        "convert",
        "dynamic-slice",
        "dynamic-update-slice",
        "gather",
        "sort",
    )
}
#: Where a value goes from there is not followed; XLA follows it.
_HIDING = opcodes_with(Class.TUPLE, Trait.CONTROL_FLOW) - {"call"} | {"async-start"}


def feeds_products_only(module: Module, value: Instruction, reads: Callable[[Instruction], bool]) -> bool:
    """Whether all that reads a value, with nothing but choices and movement between, are certain products.

    Args:
        module: of the value.
        value: an array.
        reads: whether an instruction is such a product.
    """
    calls = CallGraph(module)
    seen: set[Instruction] = set()
    waiting = [value]
    while waiting:
        instruction = waiting.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        if instruction is module.entry.root:
            return False
        for user in _readers(instruction, calls):
            if reads(user) or user.opcode in _HIDING:
                continue
            is_passing = user.row.opcode_class in _MOVING or user.opcode in _PASSING
            if not (is_passing or user.opcode == "parameter" or user.opcode in INLINED):
                return False
            waiting.append(user)
    return True


def _readers(instruction: Instruction, calls: CallGraph) -> Iterator[Instruction]:
    """Its users; of what enters a fusion the parameter inside, of the root of one the fusion itself."""
    home = calls.home[instruction]
    for user in users(home).get(instruction, ()):
        if user.opcode not in INLINED:
            yield user
            continue
        inside = next(user.called).parameters
        yield from (inside[n] for n, operand in enumerate(user.operands) if operand is instruction)
    if instruction is home.root:
        yield from calls.callers[home]
