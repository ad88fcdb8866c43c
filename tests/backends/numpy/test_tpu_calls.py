"""Custom calls of programs for TPUs; jaxlib's CPU client expands some of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import check, parse, run
from support.xla import oracle

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported
from hlotool.lab.conformance.generators.cases import random_array


def module(result: str, target: str, *operands: str, more: str = "") -> str:
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(operands)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    root = f'  ROOT r = {result} custom-call({names}), custom_call_target="{target}"{more}'
    return "\n".join(["HloModule m", "ENTRY e {", *lines, root, "}"])


@pytest.mark.xla
@pytest.mark.parametrize("lower", ["1", "0"])
def test_eigenvalues(lower: str) -> None:
    a = random_array(np.random.default_rng(2), "f32", (2, 5, 5))
    a = a + a.swapaxes(1, 2)
    text = module(
        "(f32[2,5,5], f32[2,5])", "Eigh", "f32[2,5,5]", more=f', backend_config="{lower},1,100,1e-6"'
    )
    vectors, values = run(text, [a])
    expected = oracle().run(text, [a])
    np.testing.assert_allclose(values, expected[1], atol=1e-5)
    # The sign of a vector is free.
    np.testing.assert_allclose(np.abs(vectors), np.abs(expected[0]), atol=1e-4)


@pytest.mark.xla
def test_qr() -> None:
    a = random_array(np.random.default_rng(2), "f32", (2, 6, 4))
    text = module("(f32[2,6,4], f32[2,4])", "Qr", "f32[2,6,4]")
    packed, factors = check(text, [a], steps=16)
    product = module("f32[2,6,4]", "ProductOfElementaryHouseholderReflectors", "f32[2,6,4]", "f32[2,4]")
    (q,) = check(product, [packed, factors], steps=16)
    np.testing.assert_allclose(q @ np.triu(packed[:, :4]), a, atol=1e-5)


def test_lu() -> None:
    a = random_array(np.random.default_rng(2), "f32", (2, 5, 5))
    text = module("(f32[2,5,5], s32[2,5], s32[2,5])", "LuDecomposition", "f32[2,5,5]")
    factors, pivots, rows = run(text, [a])
    product = (np.tril(factors, -1) + np.eye(5)) @ np.triu(factors)
    np.testing.assert_allclose(product, np.take_along_axis(a, rows[..., None], axis=1), atol=1e-5)
    assert (pivots >= np.arange(5)).all()


PARTIAL_REDUCE = """HloModule m
greater {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}
ENTRY e {
  x = f32[3,64] parameter(0)
  i = s32[3,64] iota(), iota_dimension=1
  lowest = f32[] constant(-inf)
  none = s32[] constant(-1)
  ROOT r = (f32[3,16], s32[3,16]) custom-call(x, i, lowest, none), custom_call_target="PartialReduce",
    called_computations={greater}, backend_config={"log2_reduction": 2, "reduction_dim": 1,
    "to_apply_type": "comparator", "top_k": 4, "recall_target": 0.95}
}"""


def test_approximate_selection_is_exact() -> None:
    x = random_array(np.random.default_rng(2), "f32", (3, 64))
    values, places = run(PARTIAL_REDUCE, [x])
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :16])
    np.testing.assert_array_equal(np.take_along_axis(x, places, axis=1), values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PARTIAL_REDUCE.replace('"comparator"', '"reducer"'), "by a reducer"),
        (module("(f32[5,5], f32[5])", "Eigh", "f32[5,5]"), "Eigh with backend config"),
        (module("(bf16[5,5], bf16[5])", "Qr", "bf16[5,5]"), "routine on bf16"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(text))
