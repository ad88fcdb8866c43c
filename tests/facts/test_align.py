"""Renaming and reordering hide nothing; a single edit is found, and nothing else."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget import processor_budget
from support.edits import disguised, edited

from hlotool.facts.alignment.align import Alignment, align
from hlotool.facts.alignment.difference import Status, difference
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

#: Programs with loops, calls, fusions, reductions, sorts; before and after optimisation.
PROGRAMS = (
    "jax/cumulative/module_0000.jit_cumulative.cpu_after_optimizations",
    "jax/dynamic_rnn/module_0000.jit_dynamic_rnn.before_optimizations",
    "jax/dynamic_rnn_gradient/module_0000.jit_dynamic_rnn_gradient.cpu_after_optimizations",
    "jax/lu_qr_solve/module_0000.jit_lu_qr_solve.before_optimizations",
    "jax/nested_calls/module_0000.jit_nested_calls.before_optimizations",
    "jax/reductions/module_0000.jit_reductions.before_optimizations",
    "jax/sorts/module_0000.jit_sorts.cpu_after_optimizations",
    "jax/train_mnist_cnn/module_0000.jit_train_mnist_cnn.cpu_after_optimizations",
    "jax/train_transformer/module_0000.jit_train_transformer.cpu_after_optimizations",
    "jax/transformer_bf16/module_0000.jit_transformer_bf16.before_optimizations",
)


@cache
def load(name: str) -> Module:
    path = CORPUS / f"{name}.txt"
    return parse_module(path.read_text(encoding="utf-8"), str(path))


def unmatched(alignment: Alignment) -> list[str]:
    return [i.name for i in (*alignment.only_left, *alignment.only_right)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_disguised_program_is_the_same(program: str, seed: int) -> None:
    module = load(program)
    alignment = align(module, disguised(module, seed))
    assert unmatched(alignment) == []
    found = difference(alignment)
    assert [line for line in found.lines if line.status is not Status.SAME] == []


@given(program=st.sampled_from(PROGRAMS), seed=st.integers(0, 10**6), disguise=st.booleans())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_single_edit_is_found_exactly(program: str, seed: int, disguise: bool) -> None:
    module = load(program)
    edit = edited(module, seed)
    assert edit is not None
    other = edit.instruction
    changed = edit.module
    if disguise:
        # Marks the edited instruction through the disguise.
        other.line = -1
        changed = disguised(changed, seed)
        other = next(i for i in changed.instructions() if i.line == -1)
    alignment = align(module, changed)
    assert unmatched(alignment) == []
    [line] = [line for line in difference(alignment).lines if line.status is not Status.SAME]
    assert line.status is Status.CHANGED
    assert line.right is other
    what = {change.what for change in line.changes}
    expected = {
        "opcode": {"opcode"},
        "direction": {"direction"},
        "constant": {"value"},
        "slice": {"slice"},
    }
    if edit.kind == "swap":
        assert all(name.startswith("operand ") for name in what)
        assert len(what) == 2
    else:
        assert what == expected[edit.kind]


def test_a_program_before_and_after_fusion_has_nothing_new() -> None:
    before = load("jax/model_fn/module_0000.jit_model_fn.before_optimizations")
    alignment = align(before, load("jax/model_fn/module_0000.jit_model_fn.cpu_after_optimizations"))
    assert alignment.only_left == []
    # The fusion and its parameters are all that the compiler added.
    assert {i.opcode for i in alignment.only_right} == {"fusion", "parameter"}
    names = {one.name: other.name for one, other in alignment.pairs}
    assert names["mul.1"] == "mul.0"
    assert names["reduce_sum.7"] == "reduce_sum.0"


def test_what_is_executed_stays_itself_from_pass_to_pass() -> None:
    """Between two dumps of one compilation, what keeps its name and its opcode is not taken for another."""
    folder = CORPUS / "planted" / "dynamic_rnn_trip_count"
    stages = sorted(folder.glob("*.0*.txt"))
    modules = [parse_module(path.read_text(encoding="utf-8"), str(path)) for path in stages]
    strange = 0
    total = 0
    for left, right in pairwise(modules):
        names = [{(i.opcode, i.name) for i in module.entry.instructions} for module in (left, right)]
        kept = names[0] & names[1]
        for one, other in align(left, right).pairs:
            total += 1
            strange += one.name != other.name and (one.opcode, one.name) in kept
    # Copy insertion puts copies behind copies; which of two keeps the name is anybody's choice.
    assert total > 1000
    assert strange <= 2


def test_the_partitioner_keeps_what_is_local() -> None:
    """One program on global arrays, one for each of two devices: same operations, half the rows."""
    left = parse_module("""HloModule m
ENTRY e {
  x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[4,4] parameter(1), sharding={replicated}
  d = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot"}
  ROOT t = f32[8,4] tanh(d), metadata={op_name="jit(f)/tanh"}
}""")
    right = parse_module("""HloModule m, num_partitions=2
ENTRY e.spmd {
  p0 = f32[4,4] parameter(0), sharding={devices=[2,1]<=[2]}
  p1 = f32[4,4] parameter(1), sharding={replicated}
  d.1 = f32[4,4] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/dot"}
  ROOT t.1 = f32[4,4] tanh(d.1), metadata={op_name="jit(f)/tanh"}
}""")
    names = {other.name: one.name for one, other in align(left, right).pairs}
    assert (names["p1"], names["d.1"], names["t.1"]) == ("w", "d", "t")


def chain(length: int) -> Module:
    """A long program of few opcodes: many instructions look alike."""
    b = Builder("main")
    x = b.parameter(0, array("f32", 8))
    y = b.parameter(1, array("f32", 8))
    for number in range(length):
        x, y = b.op(("add", "multiply", "maximum")[number % 3], x, y, name=f"v{number}"), x
    return b.build_module(x)


def test_twenty_thousand_instructions_take_seconds() -> None:
    module = chain(20_000)
    other = disguised(module, 0)
    with processor_budget(12):
        alignment = align(module, other)
    assert unmatched(alignment) == []
