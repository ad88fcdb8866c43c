"""What is known of loops, written into them; loops that end after so many iterations; loops unrolled.

XLA: while_loop_trip_count_annotator.cc, hlo_control_flow_flattening.cc, while_loop_unroller.cc.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from hlotool.facts.trip_counts import static_trip_count
from hlotool.ir.attributes import BackendConfig
from hlotool.ir.builder import Builder, array
from hlotool.ir.edit import Editor, Names, add_computation, editing, with_attributes
from hlotool.ir.edit_calls import insert_body
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import TupleShape
from hlotool.ir.walk import reachable
from hlotool.rewrite.passes.base import Context, each_caller


@dataclass(frozen=True, slots=True)
class AnnotateTripCounts:
    """Write the trip count of a loop, where the program tells it, into its backend_config, as XLA does.

    Attributes:
        max_trips: loops of more iterations are not counted.
    """

    name: ClassVar[str] = "annotate-trip-counts"
    max_trips: int = 100_000

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for instruction in module.instructions():
            trips = static_trip_count(instruction) if instruction.opcode == "while" else None
            if trips is None or trips > self.max_trips:
                continue
            annotated = _with_trip_count(instruction, trips)
            if annotated is not None and context.spend("loop"):
                config = BackendConfig(annotated)
                instruction.attributes = with_attributes(instruction.attributes, backend_config=config)


def _with_trip_count(loop: Instruction, trips: int) -> str | None:
    """The loop's backend_config with its trip count; None where it says so already or is no JSON object."""
    try:
        known = json.loads(loop.config_text) if "backend_config" in loop.attributes else {}
    except ValueError:
        return None
    counted = {"known_trip_count": {"n": str(trips)}}
    if not isinstance(known, dict) or known == {**known, **counted}:
        return None
    return json.dumps({**known, **counted}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LimitLoops:
    """End every loop after so many iterations, whatever its condition says; this may change results.

    Attributes:
        iterations: the most that a loop runs.
    """

    name: ClassVar[str] = "limit-loops"
    iterations: int = 1

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for edit, loop, names in each_caller(module, "while"):
            if context.spend("loop"):
                self._limit(module, edit, loop, names)

    def _limit(self, module: Module, edit: Editor, loop: Instruction, names: Names) -> None:
        """Carry a counter beside the state, and test it beside the condition."""
        condition, body = loop.computation("condition"), loop.computation("body")
        counted = TupleShape((loop.shape, array("s32")))
        zero = edit.add(Builder("zero").constant(0, "s32"), before=loop)
        start = Instruction("tuple", "tuple", counted, (loop.operands[0], zero))
        edit.add(start, before=loop)
        callees = {
            "condition": self._condition(module, condition, counted, names),
            "body": self._body(module, body, counted, names),
        }
        limited = Instruction(
            loop.name, "while", counted, (start,), with_attributes(loop.attributes, sharding=None, **callees)
        )
        edit.add(limited, before=loop)
        result = Instruction("state", "get-tuple-element", loop.shape, (limited,), {"index": 0})
        edit.replace(loop, edit.add(result, before=loop))

    def _condition(
        self, module: Module, condition: Computation, counted: TupleShape, names: Names
    ) -> Computation:
        """The old condition, and fewer iterations than the limit."""
        builder = Builder(condition.name)
        state, counter = _unpacked(builder, counted)
        limit = builder.constant(self.iterations, "s32")
        below = builder.op("compare", counter, limit, direction="LT")
        return _with_old(module, builder, condition, state, below, names, "and")

    def _body(self, module: Module, body: Computation, counted: TupleShape, names: Names) -> Computation:
        """The old body, and the counter one higher."""
        builder = Builder(body.name)
        state, counter = _unpacked(builder, counted)
        following = builder.op("add", counter, builder.constant(1, "s32"))
        return _with_old(module, builder, body, state, following, names, "tuple")


def _unpacked(builder: Builder, counted: TupleShape) -> tuple[Instruction, Instruction]:
    """The old state and the counter of a new state."""
    whole = builder.parameter(0, counted)
    state, counter = (builder.op("get-tuple-element", whole, index=n) for n in (0, 1))
    return state, counter


def _with_old(
    module: Module,
    builder: Builder,
    old: Computation,
    state: Instruction,
    new: Instruction,
    names: Names,
    opcode: str,
) -> Computation:
    """A computation that combines the result of `old` on `state` with `new`."""
    made = builder.build(new)
    made.execution_thread = old.execution_thread
    with editing(made) as edit:
        result = insert_body(module, edit, old, [state], new, names)
        shape = result.shape if opcode == "and" else TupleShape((result.shape, new.shape))
        made.root = edit.add(Instruction("limited", opcode, shape, (result, new)))
    return add_computation(module, made, names)


@dataclass(frozen=True, slots=True)
class Unroll:
    """Replace loops with a known trip count by their iterations.

    Attributes:
        max_trips: loops of more iterations stay.
        max_instructions: loops that would become more instructions stay.
    """

    name: ClassVar[str] = "unroll"
    max_trips: int = 32
    max_instructions: int = 2000

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        # Inner loops first: what they become counts for the outer ones.
        for edit, loop, names in each_caller(module, "while"):
            trips = static_trip_count(loop)
            if trips is not None and self._may(loop, trips) and context.spend("loop"):
                _unroll(module, edit, loop, trips, names)

    def _may(self, loop: Instruction, trips: int) -> bool:
        if trips > self.max_trips:
            return False
        body = loop.computation("body")
        own = all("channel_id" not in i.attributes for c in reachable(body) for i in c.instructions)
        # Two instructions may not use one channel.
        return own and trips * len(body.instructions) <= self.max_instructions


def _unroll(module: Module, edit: Editor, loop: Instruction, trips: int, names: Names) -> None:
    body = loop.computation("body")
    (state,) = loop.operands
    for _ in range(trips):
        state = insert_body(module, edit, body, [state], loop, names)
    edit.replace_uses(loop, state)
    edit.remove(loop)
