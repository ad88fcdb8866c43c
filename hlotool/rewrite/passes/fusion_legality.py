"""Whether a producer may be fused into a consumer, and why not, in XLA's words.

    decision = may_fuse(Part.of(producer), Part.of(consumer), Setting(edit.users, computation.root))
    if not decision: print(decision.reason)

Each rule is a function of two parts; `RULES` is what makes a fusion legal, `LOOP_RULES` and
`MULTI_OUTPUT_RULES` what the emitters of a kind can do. To add one, write the function and enter it.
XLA: instruction_fusion.cc, gpu_fusible.cc, multi_output_fusion.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hlotool.ir.module import Instruction
from hlotool.rewrite.passes.fusion_facts import (
    in_place_operand,
    is_always_duplicable,
    is_expensive,
    is_fusible,
    is_loop_fusible_as_producer,
    is_reduction,
    loop_shape,
    reuses_operands,
)

#: XLA: MaxOperandsAndOutputsPerFusion, gpu_fusible.h.
MOST_BUFFERS = 96
#: XLA: kMaxUnnestedReductionOutputsPerFusion, gpu_fusible.cc.
MOST_REDUCTIONS = 8


@dataclass(frozen=True, slots=True)
class FusionDecision:
    """Yes, or no with a reason.

    Attributes:
        reason: why not; empty for yes.
    """

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


ALLOW = FusionDecision()


def forbid(reason: str) -> FusionDecision:
    """The decision against a fusion, for `reason`."""
    return FusionDecision(reason)


@dataclass(frozen=True, slots=True)
class Part:
    """One side of a fusion: an instruction, a fusion, or instructions that are to become one.

    Attributes:
        members: what it computes, operands first; of a fusion the instructions of its computation.
        roots: those of the members whose values leave it.
        outer: instructions of the surrounding computation that it stands for.
        arguments: what each parameter of a fusion's computation stands for.
    """

    members: tuple[Instruction, ...]
    roots: tuple[Instruction, ...]
    outer: tuple[Instruction, ...]
    arguments: Mapping[Instruction, Instruction] = field(default_factory=dict)

    @staticmethod
    def of(instruction: Instruction) -> Part:
        """An instruction or a fusion."""
        if instruction.opcode != "fusion":
            return Part((instruction,), (instruction,), (instruction,))
        body = instruction.computation("calls")
        members = tuple(i for i in body.instructions if i.opcode != "parameter" and i is not body.root)
        roots = body.root.operands if body.root.opcode == "tuple" else (body.root,)
        if body.root.opcode != "tuple":
            members += (body.root,)
        arguments = dict(zip(body.parameters, instruction.operands))
        return Part(members, tuple(dict.fromkeys(roots)), (instruction,), arguments)

    @staticmethod
    def planned(members: Sequence[Instruction], roots: Sequence[Instruction]) -> Part:
        """Instructions that are to become a fusion."""
        return Part(tuple(members), tuple(roots), tuple(members))

    @property
    def inputs(self) -> tuple[Instruction, ...]:
        """What it reads of the surrounding computation, each once."""
        inside = set(self.members)
        read = (o for member in self.members for o in member.operands if o not in inside)
        return tuple(dict.fromkeys(self.arguments.get(o, o) for o in read))

    @property
    def is_multi_output(self) -> bool:
        """Whether several values leave it."""
        return len(self.roots) > 1

    @property
    def in_place_inputs(self) -> tuple[Instruction, ...]:
        """Inputs whose buffers a root overwrites."""
        operands = [o for r in self.roots if (o := in_place_operand(r)) is not None]
        return tuple(self.arguments.get(o, o) for o in operands if o not in self.members)

    @property
    def reductions(self) -> tuple[Instruction, ...]:
        """Roots that reduce."""
        return tuple(r for r in self.roots if is_reduction(r))


def _no_successors(_: Instruction) -> Iterable[Instruction]:
    return ()


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds both parts.

    Attributes:
        users: gives those who read an instruction of the computation.
        root: of the computation.
        successors: gives those that a control dependency makes wait for an instruction.
    """

    users: Callable[[Instruction], Iterable[Instruction]]
    root: Instruction
    successors: Callable[[Instruction], Iterable[Instruction]] = _no_successors


Rule: TypeAlias = Callable[[Part, Part, Setting], FusionDecision]


def may_fuse(
    producer: Part, consumer: Part, setting: Setting, rules: Sequence[Rule] | None = None
) -> FusionDecision:
    """Whether all rules allow the fusion; otherwise the first reason against it.

    Args:
        producer: what is to be computed inside the consumer.
        consumer: what reads it.
        setting: the computation they are in.
        rules: to be asked in order; `RULES` and `LOOP_RULES` when None.
    """
    asked = (rule(producer, consumer, setting) for rule in rules or (*RULES, *LOOP_RULES))
    return next((decision for decision in asked if not decision), ALLOW)


# What makes a fusion legal


def both_are_fusible(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """No control flow, no side effects."""
    if not all(map(is_fusible, producer.members)):
        return forbid("the producer is not fusible")
    if not all(map(is_fusible, consumer.members)):
        return forbid("the consumer is not fusible")
    return ALLOW


def producer_is_not_returned(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """What the computation returns must exist outside of fusions."""
    if setting.root in producer.outer:
        return forbid("not fusing into the output of the root instruction")
    return ALLOW


def no_control_dependencies(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """Instructions that wait for others, or others for them, keep their own place."""
    waits = any(i.control_predecessors for part in (producer, consumer) for i in part.outer)
    if waits or any(True for i in producer.outer for _ in setting.successors(i)):
        return forbid("control dependencies would be violated")
    return ALLOW


def in_place_buffers_stay_apart(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """A buffer that the consumer overwrites must not be read by anything else in the fusion."""
    for buffer in consumer.in_place_inputs:
        is_scatter = any(r.opcode == "scatter" for r in consumer.roots)
        if buffer in producer.outer:
            return forbid(
                "do not fuse into the in-place operand of scatter"
                if is_scatter
                else "Non-elementwise ops in consumer lead to inplace conflict after fusion."
            )
        if buffer in producer.inputs:
            return forbid(
                "Producer uses the in-place operand of a scatter"
                if is_scatter
                else "The consumer is an in-place operation that has an additional operand that has the"
                " same value as the in-place buffer"
            )
    return ALLOW


def scatter_ends_a_fusion(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """The result of a scatter is complete only when all updates are done."""
    if any(m.opcode == "scatter" for m in producer.members):
        return forbid("do not fuse into the output of scatter")
    return ALLOW


RULES: tuple[Rule, ...] = (
    both_are_fusible,
    producer_is_not_returned,
    no_control_dependencies,
    in_place_buffers_stay_apart,
    scatter_ends_a_fusion,
)


# What the emitter of a loop can do


def producer_is_loop_fusible(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """Each element of the producer can be computed where it is needed."""
    if producer.is_multi_output:
        return forbid("Producer is a multi-output fusion")
    if not all(map(is_loop_fusible_as_producer, producer.members)):
        return forbid("producer is not loop-fusible")
    return ALLOW


def expensive_work_is_done_once(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """Users outside of the fusion would compute the producer again."""
    others = [
        u for o in producer.outer for u in setting.users(o) if u not in (*consumer.outer, *producer.outer)
    ]
    if not others or all(map(is_always_duplicable, producer.members)):
        return ALLOW
    if any(map(is_expensive, producer.members)):
        return forbid("expensive producer would be duplicated")
    return forbid("fusion pass cannot duplicate")


def expensive_work_is_not_repeated(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """Where the consumer reads elements again and again, they should not be computed each time."""
    if not any(map(is_expensive, producer.members)):
        return ALLOW
    repeated: set[Instruction] = set()
    for member in reversed(consumer.members):
        if member in repeated or reuses_operands(member):
            repeated.update(consumer.arguments.get(o, o) for o in member.operands)
    return forbid("Fusion is not profitable.") if repeated.intersection(producer.outer) else ALLOW


def budget_of_buffers(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """A kernel takes only so many arguments: what it reads from outside, and the consumer's results."""
    return _within_budget(producer, consumer, len(consumer.roots))


def _within_budget(producer: Part, consumer: Part, outputs: int) -> FusionDecision:
    inside = {*producer.outer, *consumer.outer}
    inputs = {i for i in (*producer.inputs, *consumer.inputs) if i not in inside}
    if len(inputs) + outputs > MOST_BUFFERS:
        return forbid("Number of operands and output buffers is larger than allowed budget per fusion")
    return ALLOW


LOOP_RULES: tuple[Rule, ...] = (
    producer_is_loop_fusible,
    expensive_work_is_done_once,
    expensive_work_is_not_repeated,
    budget_of_buffers,
)


# What a kernel with several outputs can do


def no_in_place_outputs(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """One iteration might read what another has overwritten."""
    if producer.in_place_inputs or consumer.in_place_inputs:
        return forbid("In-place operations are present")
    return ALLOW


def loops_have_one_shape(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """All outputs come from iterations over the same elements; reductions also reduce the same dimensions."""
    roots = (*producer.roots, *consumer.roots)
    reductions = [*producer.reductions, *consumer.reductions]
    if len({(loop_shape(r), r.integers("dimensions")) for r in reductions}) > 1:
        return forbid("tiled reductions with different shapes")
    if len({loop_shape(r) for r in roots}) > 1:
        return forbid("different loop shapes")
    return ALLOW


def few_reductions(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """Few reductions in one kernel, for each of them takes registers."""
    if len(producer.reductions) + len(consumer.reductions) > MOST_REDUCTIONS:
        return forbid(f"over {MOST_REDUCTIONS} unnested reductions in fusion")
    return ALLOW


def budget_of_all_buffers(producer: Part, consumer: Part, setting: Setting) -> FusionDecision:
    """Not too many buffers: what either reads from outside, and the outputs of both."""
    return _within_budget(producer, consumer, len(producer.roots) + len(consumer.roots))


MULTI_OUTPUT_RULES: tuple[Rule, ...] = (
    both_are_fusible,
    no_control_dependencies,
    no_in_place_outputs,
    scatter_ends_a_fusion,
    loops_have_one_shape,
    few_reductions,
    budget_of_all_buffers,
)
