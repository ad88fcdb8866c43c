"""Dumps of the corpus, before and after optimisation: legal ones, planted faults, a fault of XLA's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import only_read
from hlotool.runs.program import load_program
from hlotool.runs.task import select_stages
from hlotool.sources.directory import open_dump

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

#: Quick dumps: training steps, windows, several devices.
EQUAL = (
    "jax/model_fn",
    "jax/train_mnist_mlp",
    "jax/pooling_gradient",
    "jax/sharded_train_step",
    "jax/collectives",
    "jax/pmap_step",
)

#: Dump → leaves that the planted fault reaches: those that `corpus/MANIFEST.toml` says are wrong.
UNEQUAL = {
    "planted/model_fn_opcode": {()},
    "planted/slices_off_by_one": {(2,)},
    "planted/train_mnist_mlp_constant": {(4,)},
    "planted/dynamic_rnn_trip_count": {(0,), (1,)},
    "planted/cumulative_window": {(2,)},
    "planted/int8_dot_rounding": {()},
    "jax/int4_product": {()},
}


def proved(name: str, **options: int) -> ExactResult:
    """The first module of a dump, before and after optimisation."""
    module = open_dump(str(CORPUS / name)).modules[0]
    stages = select_stages(module)
    assert stages.reference is not None
    reference = load_program(module, stages.reference, only_read())
    tested = load_program(module, stages.tested[-1], only_read(), reference)
    return compare(reference, tested, Options(**options))


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    result = proved(name, seed=11)
    assert (result.refused, result.relation) == ("", Relation.EQUAL)
    assert result.trials >= 2
    assert result.error_probability < 1e-12


@pytest.mark.parametrize("name", UNEQUAL)
def test_a_fault_is_seen_in_the_leaves_that_it_reaches(name: str) -> None:
    result = proved(name, seed=12)
    found = {leaf.index for leaf in result.leaves if leaf.relation is Relation.UNEQUAL}
    assert found == UNEQUAL[name]


def test_a_call_into_python_is_refused() -> None:
    result = proved("jax/host_callback")
    assert result.relation is Relation.REFUSED
    assert "calls the user's Python function" in result.refused
    assert ":37" in result.refused


def test_random_numbers_of_one_side_only_prove_nothing() -> None:
    """XLA expands `rng` into an algorithm: what it draws is another function."""
    result = proved("tf/random_stateful")
    reasons = {leaf.reason for leaf in result.leaves if leaf.relation is Relation.REFUSED}
    assert reasons == {
        "an unknown function of one program only: rng rng_uniform of %RandomUniform.32 (line 29)"
    }
