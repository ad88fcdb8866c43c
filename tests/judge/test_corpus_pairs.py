"""Real programs before and after optimisation agree on generated inputs; planted faults do not pass.

Both sides run on the numpy reference, so every difference is one that XLA's passes made.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.dataflow import join_leaves, leaf_facts
from hlotool.inputs.captured import load_inputs, load_outputs
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import flatten, unflatten
from hlotool.ir.module import Module
from hlotool.judge.comparison import Comparison, compare_values
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
AGREEING = (Verdict.IDENTICAL, Verdict.AGREE)

#: Directory below the corpus, and the program in it.
TRAINING = (
    "jax/train_mnist_mlp/module_0000.jit_train_mnist_mlp",
    "jax/train_mnist_mlp_adam/module_0000.jit_train_mnist_mlp_adam",
    "jax/train_mnist_cnn/module_0000.jit_train_mnist_cnn",
    "jax/train_transformer/module_0000.jit_train_transformer",
)
PROGRAMS = (
    *TRAINING,
    "jax/batched_indexing/module_0000.jit_batched_indexing",
    "jax/collatz/module_0000.jit_collatz",
    "jax/conv_gradients/module_0000.jit_conv_gradients",
    "jax/conv_windows/module_0000.jit_conv_windows",
    "jax/converts/module_0000.jit_converts",
    "jax/cumulative/module_0000.jit_cumulative",
    "jax/dynamic_rnn_gradient/module_0000.jit_dynamic_rnn_gradient",
    "jax/fourier/module_0000.jit_fourier",
    "jax/int8_dot/module_0000.jit_int8_dot",
    "jax/newton_roots/module_0000.jit_newton_roots",
    "jax/reductions/module_0000.jit_reductions",
    "jax/scatters/module_0000.jit_scatters",
    "jax/special_functions/module_0000.jit_special_functions",
    "jax/transformer/module_0000.jit_transformer",
    "jax/transformer_bf16/module_0000.jit_transformer_bf16",
)


@cache
def _load(program: str, stage: str) -> Module:
    path = CORPUS / f"{program}.{stage}.txt"
    return parse_module(path.read_text(encoding="utf-8"), str(path))


def _run(module: Module, inputs: Any) -> Any:
    return NumpyBackend().compile(module).run(inputs)


def _compare_stages(program: str, seed: int) -> Comparison:
    before, after = _load(program, "before_optimizations"), _load(program, "cpu_after_optimizations")
    inputs = generate_inputs(before, seed).values
    return compare_values(
        before.entry.root.shape,
        _run(before, inputs),
        _run(after, inputs),
        actual_shape=after.entry.root.shape,
        facts=join_leaves(leaf_facts(before), leaf_facts(after)),
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.split(".")[-1])
@pytest.mark.parametrize("seed", [0, 1])
def test_optimised_programs_agree(program: str, seed: int) -> None:
    comparison = _compare_stages(program, seed)
    assert comparison.verdict in AGREEING, comparison.reason


@pytest.mark.parametrize("program", TRAINING, ids=lambda p: p.split(".")[-1])
def test_generated_inputs_keep_training_steps_finite(program: str) -> None:
    before = _load(program, "before_optimizations")
    result = _run(before, generate_inputs(before).values)
    for index, _, value in flatten(before.entry.root.shape, result):
        assert np.isfinite(value).all(), index


@pytest.mark.parametrize("program", TRAINING, ids=lambda p: p.split(".")[-1])
def test_a_fault_of_a_percent_in_one_element_differs(program: str) -> None:
    before = _load(program, "before_optimizations")
    shape = before.entry.root.shape
    result = _run(before, generate_inputs(before).values)
    facts = leaf_facts(before)
    parts = [np.asarray(value) for _, _, value in flatten(shape, result)]
    for number, part in enumerate(parts):
        if part.dtype != np.float32:
            continue
        faulty = part.copy()
        faulty.flat[np.abs(part).argmax()] *= np.float32(1.01)
        actual = unflatten(shape, [*parts[:number], faulty, *parts[number + 1 :]])
        comparison = compare_values(shape, result, actual, facts=facts)
        assert comparison.verdict is Verdict.WRONG, number


@pytest.mark.parametrize(
    "program", ["jax/conv_windows", "jax/dynamic_rnn", "jax/gathers", "jax/train_mnist_mlp"]
)
def test_what_xla_returned_agrees_with_the_reference(program: str) -> None:
    """The captured arguments and results of a run on the CPU."""
    directory = CORPUS / program
    module = _load(f"{program}/module_0000.jit_{directory.name}", "before_optimizations")
    inputs = load_inputs(str(directory / "inputs.npz"), module)
    returned = load_outputs(str(directory / "outputs.npz"), module)
    shape = module.entry.root.shape
    comparison = compare_values(shape, _run(module, inputs), returned, facts=leaf_facts(module))
    assert comparison.verdict in AGREEING, comparison.reason
