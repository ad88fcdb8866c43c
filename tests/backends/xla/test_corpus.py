"""The whole corpus on real XLA as users reach it: what the numpy reference computes, XLA computes too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from differential.test_corpus_on_xla import DEPARTURES, INPUT_RANGES, name_of, short_id

from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported
from hlotool.numerics.compare import compare_values
from hlotool.numerics.dataflow import leaf_facts
from hlotool.numerics.verdict import Verdict
from hlotool.parse.reader import parse_module
from hlotool.values.generate import generate_inputs

pytestmark = pytest.mark.xla

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

HEALTHY = (Verdict.IDENTICAL, Verdict.AGREE, Verdict.NOT_COMPARABLE)

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
    """All modules that can be run on one device; the long run takes all of them, and both stages."""
    files = [*sorted(CORPUS.glob("modules/*.hlo"))]
    for framework in ("jax", "tf"):
        files += sorted(CORPUS.glob(f"{framework}/**/*_optimizations.txt"))
    found = []
    for path in files:
        name = name_of(path).removesuffix(".cpu_after_optimizations.txt")
        marks = [] if name in QUICK else [pytest.mark.slow]
        stage = "after" if "_after_" in path.name else "before"
        found.append(pytest.param(path, name, id=f"{short_id(path)}-{stage}", marks=marks))
    return found


@pytest.mark.parametrize(("path", "name"), programs())
def test_xla_agrees_with_the_reference(path: Path, name: str) -> None:
    pytest.importorskip("jaxlib")
    text = path.read_text()
    if "constant({...})" in text:
        pytest.skip("its constants are elided")
    module = parse_module(text, str(path))
    if module.replica_count * module.num_partitions > 1:
        pytest.skip("it is for several devices")
    arguments = generate_inputs(module, seed=1, value_range=INPUT_RANGES.get(name)).values
    try:
        expected = get_backend("numpy").compile(module).run(arguments)
        actual = get_backend("xla:opt=0").compile(module).run(arguments)
    except Unsupported as error:
        pytest.skip(str(error))
    shape = module.entry.root.shape
    comparison = compare_values(shape, expected, actual, facts=leaf_facts(module))
    if name in DEPARTURES:
        assert comparison.verdict not in HEALTHY
    else:
        assert comparison.verdict in HEALTHY, [(leaf.index, leaf.reason) for leaf in comparison.leaves]
