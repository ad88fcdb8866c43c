"""Laws of whole programs: text and IR, fusions and calls, loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property.laws import law, run_module, same_bits, seeds

from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import TupleShape
from hlotool.ir.verifier import verify
from hlotool.lab.conformance.generators.cases import Draft, case
from hlotool.lab.conformance.generators.structure import arrays, graph, shape_of
from hlotool.lab.conformance.generators.structure import computation as random_computation
from hlotool.parser.reader import parse_module


@law
@given(st.integers(0, 10_000), seeds)
def test_text_and_program_are_the_same(number: int, seed: int) -> None:
    """Parsing what was printed gives the same text again, and the same results to the bit."""
    made = case(number, seed)
    text = made.module.to_text()
    read = parse_module(text)
    assert read.to_text() == text
    for a, b in zip(run_module(made.module, made.arguments), run_module(read, made.arguments), strict=True):
        assert same_bits(a, b)


@law
@given(st.integers(0, 10_000), seeds)
def test_what_the_builder_makes_is_valid(number: int, seed: int) -> None:
    assert verify(case(number, seed).module) == []


def inlined(draft: Draft, operands: list[Instruction], seed: int, opcode: str) -> tuple[Module, Module]:
    """A random computation called by `opcode`, and the same instructions in the entry itself."""
    shape = shape_of(operands[0])
    called = random_computation(Draft(np.random.default_rng(seed)), "called", shape, len(operands))
    attributes = {"to_apply": called} if opcode == "call" else {"kind": "kLoop", "calls": called}
    draft.op(opcode, *operands, shape=shape, **attributes)
    flat = Builder("flat")
    values = {p: flat.parameter(i, shape, f"p{i}") for i, p in enumerate(called.parameters)}
    for instruction in called.instructions:
        if instruction not in values:
            operands_here = (values[o] for o in instruction.operands)
            values[instruction] = flat.op(instruction.opcode, *operands_here, shape=instruction.shape)
    return draft.builder.build_module(), flat.build_module(values[called.root])


@law
@given(seeds, st.integers(1, 3), st.sampled_from(["call", "fusion"]))
def test_a_fusion_is_its_instructions(seed: int, count: int, opcode: str) -> None:
    draft = Draft(np.random.default_rng(seed))
    called, flat = inlined(draft, arrays(draft, count), seed, opcode)
    (a,), (b,) = (run_module(module, draft.arguments) for module in (called, flat))
    assert same_bits(a, b)


@law
@given(seeds, st.integers(0, 6))
def test_a_loop_is_its_body_repeated(seed: int, count: int) -> None:
    draft = Draft(np.random.default_rng(seed))
    (x,) = arrays(draft, 1)
    state = TupleShape((array("s32"), shape_of(x)))

    def step(b: Builder, value: Instruction) -> Instruction:
        return graph(Draft(np.random.default_rng(seed)), b, [value], 3)

    body = Builder("body")
    carried = body.parameter(0, state)
    left, value = (body.op("get-tuple-element", carried, index=i) for i in range(2))
    body.op("tuple", body.op("subtract", left, body.constant(1, "s32")), step(body, value))
    condition = Builder("condition")
    tested = condition.op("get-tuple-element", condition.parameter(0, state), index=0)
    condition.op("compare", tested, condition.constant(0, "s32"), direction="GT")
    start = draft.op("tuple", draft.builder.constant(count, "s32"), x)
    loop = draft.op("while", start, shape=state, condition=condition.build(), body=body.build())
    draft.op("get-tuple-element", loop, index=1)

    flat = Builder("flat")
    repeated = flat.parameter(0, shape_of(x))
    for _ in range(count):
        repeated = step(flat, repeated)
    (a,) = run_module(draft.builder.build_module(), draft.arguments)
    (b,) = run_module(flat.build_module(repeated), draft.arguments)
    assert same_bits(a, b)
