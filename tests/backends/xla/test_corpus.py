"""The whole corpus on real XLA as users reach it: what the numpy reference computes, XLA computes too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from differential.test_corpus_on_xla import DEPARTURES, INPUT_RANGES, name_of, short_id

from hlotool.judge.verdicts import AGREEING, DIFFERING, Verdict
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump

pytestmark = pytest.mark.xla

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

HEALTHY = AGREEING | {Verdict.NOT_COMPARABLE, Verdict.UNSTABLE}

#: XLA dies of them.
CRASHES = {"ragged-all-to-all.one_device": "died of SIGSEGV"}

#: In the default run: one of each kind.
QUICK = {
    "add.f32",
    "cholesky.lower",
    "fft.rfft_2d",
    "fusion.nested",
    "gather.rows",
    "module_0000.jit_cholesky_solve",
    "module_0000.jit_dynamic_rnn",
    "module_0000.jit_fizzbuzz",
    "module_0000.jit_train_mnist_mlp",
    "set-dimension-size.result",
    "sort.stable_pairs",
    "while.counter",
}


def programs() -> list[Any]:
    """All modules for one device; the long run takes all of them, and both stages."""
    files = [*sorted(CORPUS.glob("modules/*.hlo"))]
    for framework in ("jax", "tf"):
        files += sorted(CORPUS.glob(f"{framework}/**/*_optimizations.txt"))
    found = []
    for path in files:
        name = name_of(path).removesuffix(".cpu_after_optimizations.txt")
        marks = [] if name in QUICK else [pytest.mark.slow]
        stage = "after" if "_after_" in path.name else "before"
        found.append(pytest.param(path, name, stage, id=f"{short_id(path)}-{stage}", marks=marks))
    return found


@pytest.mark.parametrize(("path", "name", "stage"), programs())
def test_xla_agrees_with_the_reference(path: Path, name: str, stage: str) -> None:
    options = ReplayOptions(backend="xla:opt=0", seed=1, input_range=INPUT_RANGES.get(name))
    [module] = open_dump(str(path)).modules
    [row] = replay_module(Task(module, options))
    if row.verdict is Verdict.UNSUPPORTED:
        pytest.skip(row.reason)
    if name in CRASHES:
        assert row.verdict is Verdict.CRASHED
        assert CRASHES[name] in row.reason
    elif name in DEPARTURES and stage == "before":
        assert row.verdict in DIFFERING | {Verdict.SEMANTICS}
    else:
        assert row.verdict in HEALTHY, row.reason
