"""Functions of CHLO: beside XLA's own expansions, and beside what they are in mathematics."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from hlotool.backends.numpy import create
from hlotool.errors import HloSyntaxError
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ElementType
from hlotool.ir.verifier import verify
from hlotool.parser.mlir.reader import parse_mlir

OF_TWO = ("next_after", "polygamma", "zeta")
OF_ONE = ("bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma")
CORNERS = (
    0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 7.5, 8, -8, 12, 33.3, -17.25, 171, 65504, 1e30, -1e30, 1e300,
    1e-40, -1e-40, 5e-324, 0.999999, -0.999999, math.inf, -math.inf, math.nan,
)  # fmt: skip


def function(name: str, kind: str, *sizes: str, result: str = "") -> str:
    """A program of one function, whose result has the sizes of its operands where none are given."""
    types = [f"tensor<{size}{kind}>" for size in sizes]
    names = [f"%a{number}" for number in range(len(sizes))]
    arguments = ", ".join(f"{one}: {of}" for one, of in zip(names, types))
    whole = f"tensor<{result or sizes[0]}{kind}>"
    is_broadcast = name.startswith("broadcast_")
    given = f"({', '.join(types)})" if is_broadcast else ", ".join(types)
    return f"""func.func @main({arguments}) -> {whole} {{
  %0 = chlo.{name} {", ".join(names)} : {given} -> {whole}
  return %0 : {whole}
}}
"""


def run(text: str, values: Sequence[Array]) -> Array:
    module = parse_mlir(text)
    assert verify(module) == []
    return np.asarray(create().compile(module).run(values))


def given(kind: str, count: int) -> list[Array]:
    """Corners beside each other, and random numbers of several sizes."""
    draw = np.random.default_rng(count)
    dtype = dtype_of(ElementType(kind))
    random = np.concatenate([draw.normal(size=400), draw.normal(size=400) * 20, draw.uniform(-1, 1, 400)])
    sets = [np.tile(CORNERS, len(CORNERS)), np.repeat(CORNERS, len(CORNERS))][:count]
    with np.errstate(all="ignore"):
        return [np.concatenate([one, draw.permutation(random)]).astype(dtype) for one in sets]


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_the_bits_are_those_of_what_xla_writes(name: str, kind: str) -> None:
    from hlotool.parser.proto.module import parse_module_proto
    from hlotool.sources.mlir import hlo_proto

    values = given(kind, 2 if name in OF_TWO else 1)
    text = function(name, kind, *(f"{len(one)}x" for one in values))
    theirs = parse_module_proto(hlo_proto(text.encode(), name), name)
    expected = np.asarray(create().compile(theirs).run(values))
    assert run(text, values).tobytes() == expected.tobytes()


AT = np.linspace(-4.9, 9, 99)


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("erfc", (AT,), [math.erfc(x) for x in AT]),
        ("erf_inv", ([math.erf(x) for x in AT if abs(x) < 3],), [x for x in AT if abs(x) < 3]),
        ("lgamma", (AT,), [math.lgamma(x) for x in AT]),
        ("digamma", ([1, 0.5, 2],), [-np.euler_gamma, -np.euler_gamma - 2 * math.log(2), 1 - np.euler_gamma]),
        ("zeta", ([2, 4, 2], [1, 1, 2]), [math.pi**2 / 6, math.pi**4 / 90, math.pi**2 / 6 - 1]),
        ("polygamma", ([1, 1, 2], [1, 0.5, 1]), [math.pi**2 / 6, math.pi**2 / 2, -2 * 1.2020569031595942]),
        ("bessel_i1e", ([0, 1, -1, 10],), [0, 0.2079104153497085, -0.2079104153497085, 0.1212626813844555]),
        ("next_after", (AT, [0] * 99), np.nextafter(AT, 0)),
    ],
)  # fmt: skip
def test_values(name: str, at: Sequence[Sequence[float]], expected: Sequence[float]) -> None:
    values = [np.asarray(one, np.float64) for one in at]
    found = run(function(name, "f64", *(f"{len(one)}x" for one in values)), values)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", OF_TWO)
def test_operands_are_broadcast(name: str) -> None:
    row, column = np.array([[2.0, 3, 5]]), np.array([[4.0], [0.25]])
    found = run(function(f"broadcast_{name}", "f64", "1x3x", "2x1x", result="2x3x"), [row, column])
    whole = [np.broadcast_to(one, (2, 3)).copy() for one in (row, column)]
    assert found.tobytes() == run(function(name, "f64", "2x3x", "2x3x"), whole).tobytes()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("lgamma", "i32", "is no function of s32"),
        ("zeta", "f32", "takes 2 operands"),
        ("_asin_acos_kernel", "f32", "is no function of f32"),
    ],
)
def test_what_has_no_function(name: str, kind: str, words: str) -> None:
    with pytest.raises(HloSyntaxError, match=words):
        parse_mlir(function(name, kind, "4x"))


@pytest.mark.parametrize(
    "name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "square"]
)
def test_functions_of_complex_numbers(name: str) -> None:
    """In both directions along cuts, near and far from zero; NumPy has the same principal values."""
    parts = [-3e8, -2, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1, 2, 3e8]
    given = np.array([complex(re, im) for re in parts for im in parts if im or abs(re) < 1], np.complex128)
    if name in ("cosh", "sinh"):
        given = given[np.abs(given) < 10]
    found = run(function(name, "complex<f64>", f"{len(given)}x"), [given])
    with np.errstate(all="ignore"):
        expected = getattr(np, name if name in ("cosh", "sinh", "square") else f"arc{name[1:]}")(given)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-10, atol=1e-16)


RAGGED = """func.func @main(%a: tensor<5x2xf32>, %b: tensor<2x2x3xf32>, %n: tensor<2xi32>)
    -> tensor<5x3xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<
    lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}
    : (tensor<5x2xf32>, tensor<2x2x3xf32>, tensor<2xi32>) -> tensor<5x3xf32>
  return %0 : tensor<5x3xf32>
}
"""


def test_ragged_products_are_those_of_hlo() -> None:
    module = parse_mlir(RAGGED)
    rows, blocks = np.arange(10, dtype=np.float32).reshape(5, 2), np.ones((2, 2, 3), np.float32)
    blocks[1] = 10
    found = create().compile(module).run([rows, blocks, np.array([2, 3], np.int32)])
    sums = rows.sum(1) * [1, 1, 10, 10, 10]
    np.testing.assert_array_equal(np.asarray(found), np.repeat(sums[:, None], 3, axis=1))
