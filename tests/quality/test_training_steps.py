"""Ordinary training steps: nothing is accused, and what a script lacks is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.training_steps.catalogue import SCRIPTS
from benchmarks.training_steps.drawing import Draw, Script
from benchmarks.training_steps.faults import KINDS
from benchmarks.training_steps.measure import Row, measure, missing_packages
from benchmarks.training_steps.table import totals

_SEED = 20261128


def test_scripts_without_their_packages_are_skipped_with_a_reason(tmp_path: Path) -> None:
    script = Script("unheard_of", lambda draw, steps: None, ("no_such_package",), 1)
    assert "no_such_package" in missing_packages(script)
    [row] = measure(script, 0, 1, tmp_path / "dump", ("text",))
    assert (row.verdict, row.outputs) == ("", {})
    assert "not installed" in row.reason
    assert "no_such_package" in row.reason


def test_draws_depend_on_the_seed_and_the_name_only() -> None:
    def numbers(name: str, seed: int) -> list[float]:
        draw = Draw(name, seed)
        return [draw.between(1e-4, 1e-1), draw.choose(1.0, 2.0, 3.0), draw.seed()]

    assert numbers("a", 1) == numbers("a", 1)
    assert numbers("a", 1) != numbers("a", 2)
    assert numbers("a", 1) != numbers("b", 1)


def test_totals_count_steps_and_outputs() -> None:
    rows = [
        Row("a", "text", "rounding", {"identical": 3, "rounding": 1}),
        Row("b", "text", "unstable", {"agree": 3, "unstable": 1}),
    ]
    assert list(totals(rows))[2] == "| text | 2 | 1 (50.0 %) | 1 | 0 | 8 | 7 (87.5 %) | 1 | 0 |"


def test_kinds_of_faults_have_names_of_their_own() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert len(SCRIPTS) >= 40


@pytest.mark.slow
@pytest.mark.xla
def test_nothing_is_accused_of_training_steps(tmp_path: Path) -> None:
    """XLA compiles these scripts rightly: of some of them, drawn by a seed, every output agrees."""
    ready = sorted(name for name, script in SCRIPTS.items() if not missing_packages(script))
    if not ready:
        pytest.skip("neither JAX with optax nor any of the libraries is installed")
    chosen = np.random.default_rng(_SEED).permutation(ready)[:4]
    for name in map(str, chosen):
        rows = list(measure(SCRIPTS[name], _SEED, 3, tmp_path / name, ("captured", "text", "generated")))
        assert rows
        assert {row.verdict for row in rows} <= {"identical", "agree", "rounding"}, rows
