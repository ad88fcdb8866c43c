"""Laws of passes on random programs: nothing changes but the program, wherever the fuel ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from property.laws import law, run_module, same_bits, seeds

from hlotool.backends.registry import evaluate_constant
from hlotool.ir.edit_programs import clone_module
from hlotool.lab.conformance.generators.cases import case
from hlotool.rewrite.passes.base import Context, Fuel
from hlotool.rewrite.passes.manager import PassManager
from hlotool.rewrite.passes.pipeline import parse_pipeline

EXACT = (
    "cse",
    "dce",
    "defuse",
    "drop-layouts",
    "flatten",
    "fold{loops}",
    "fuse",
    "fuse{target=cpu}",
    "inline",
    "simplify{fused}",
    "simplify-conditionals{select}",
    "simplify-tuples",
    "unroll",
    "inline,unroll,defuse,fix(fold,simplify,simplify-tuples,cse,dce),fuse",
)
pipelines = st.sampled_from(EXACT)


@law
@given(st.integers(0, 10_000), seeds, pipelines)
def test_results_stay(number: int, seed: int, pipeline: str) -> None:
    made = case(number, seed)
    rewritten = clone_module(made.module).module
    PassManager(Context(evaluate=evaluate_constant)).run(rewritten, parse_pipeline(pipeline))
    before, after = (run_module(m, made.arguments) for m in (made.module, rewritten))
    assert all(same_bits(a, b) for a, b in zip(before, after, strict=True))


@law
@given(st.integers(0, 10_000), seeds, pipelines, st.integers(0, 12))
def test_every_stop_is_a_valid_program(number: int, seed: int, pipeline: str, amount: int) -> None:
    made = case(number, seed)
    rewritten = clone_module(made.module).module
    manager = PassManager(Context(evaluate=evaluate_constant, fuel=Fuel(amount)))
    manager.run(rewritten, parse_pipeline(pipeline))
    assert sum(sum(run.changes.values()) for run in manager.runs) <= amount
    before, after = (run_module(m, made.arguments) for m in (made.module, rewritten))
    assert all(same_bits(a, b) for a, b in zip(before, after, strict=True))


@law
@given(st.integers(0, 10_000), seeds, st.sampled_from(["cse", "dce", "inline", "defuse", "simplify-tuples"]))
def test_once_is_enough(number: int, seed: int, pipeline: str) -> None:
    rewritten = clone_module(case(number, seed).module).module
    manager = PassManager()
    manager.run(rewritten, parse_pipeline(f"{pipeline},{pipeline}"))
    assert manager.runs[1].changes == {}
