"""Whether two instructions of a program may become one fusion, and why not, in XLA's words."""

from __future__ import annotations

from hlotool.errors import UsageError
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import post_order, users
from hlotool.passes.fusion_legality import (
    LOOP_RULES,
    MULTI_OUTPUT_RULES,
    RULES,
    Part,
    Rule,
    Setting,
    may_fuse,
)


def explain_fusion(module: Module, producer: str, consumer: str) -> dict[str, str]:
    """How the instructions called `producer` and `consumer` may be fused, and why not.

    Returns:
        the reason against each kind of fusion, `producer-consumer` and `multi-output`; empty when they may.

    Raises:
        UsageError: there is no such instruction, or they are in different computations.
    """
    one, computation = _find(module, producer.lstrip("%"))
    other, home = _find(module, consumer.lstrip("%"))
    if computation is not home:
        places = f"{producer} is in {computation.name}, {consumer} in {home.name}"
        raise UsageError(f"{places}: not one computation")
    return {
        "producer-consumer": _producer_consumer(computation, one, other),
        "multi-output": _multi_output(computation, one, other),
    }


def _find(module: Module, name: str) -> tuple[Instruction, Computation]:
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.name == name:
                return instruction, computation
    raise UsageError(f"no instruction is called {name!r}")


def _producer_consumer(computation: Computation, producer: Instruction, consumer: Instruction) -> str:
    if producer not in consumer.operands:
        return f"{consumer.name} does not read {producer.name}"
    between = [o for o in consumer.operands if o is not producer]
    if producer in post_order(between):
        return f"{producer.name} would introduce a cycle when fused"
    return _reason(computation, producer, consumer, (*RULES, *LOOP_RULES))


def _multi_output(computation: Computation, one: Instruction, other: Instruction) -> str:
    if one is other:
        return "they are one instruction"
    operands = [o for o in other.operands if o is not one]
    if one in post_order(operands) or other in post_order(one.operands):
        return "multi-output fusion creates a cycle"
    return _reason(computation, one, other, MULTI_OUTPUT_RULES)


def _reason(computation: Computation, one: Instruction, other: Instruction, rules: tuple[Rule, ...]) -> str:
    readers = users(computation)
    setting = Setting(lambda instruction: readers[instruction], computation.root)
    return may_fuse(Part.of(one), Part.of(other), setting, rules).reason
