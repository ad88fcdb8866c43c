"""dot, scaled-dot and convolution: dimensions, types, every window parameter."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from support.differential import Array, check, run, slow

from hlotool.backends.numpy.contraction import multiply_matrices
from hlotool.backends.numpy.kernels import convolution as convolution_module
from hlotool.errors import Unsupported
from hlotool.lab.conformance.generators.cases import random_array


def braces(values: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def dims(sizes: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, sizes)) + "]"


@dataclass(frozen=True)
class Dot:
    """A dot: sizes and dimension attributes."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    contracting: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def result(self) -> tuple[int, ...]:
        used = [{*c, *b} for c, b in zip(self.contracting, self.batch)]
        free = [n for d, n in enumerate(self.lhs) if d not in used[0]]
        free += [n for d, n in enumerate(self.rhs) if d not in used[1]]
        return (*(self.lhs[d] for d in self.batch[0]), *free)

    def text(self, kind: str = "f32", other: str = "", result: str = "", extra: str = "") -> str:
        attributes = [
            f"{side}_{name}_dims={braces(values[index])}"
            for name, values in (("contracting", self.contracting), ("batch", self.batch))
            for index, side in enumerate(("lhs", "rhs"))
        ]
        return f"""HloModule dotting
ENTRY e {{
  x = {kind}{dims(self.lhs)} parameter(0)
  y = {other or kind}{dims(self.rhs)} parameter(1)
  ROOT d = {result or kind}{dims(self.result())} dot(x, y), {", ".join(attributes)}{extra}
}}"""


DOTS = {
    "matrices": Dot((4, 5), (5, 6), ((1,), (0,))),
    "transposed": Dot((5, 4), (6, 5), ((0,), (1,))),
    "vectors": Dot((5,), (5,), ((0,), (0,))),
    "matrix and vector": Dot((4, 5), (5,), ((1,), (0,))),
    "batch": Dot((3, 4, 5), (3, 5, 6), ((2,), (1,)), ((0,), (0,))),
    "batch inside": Dot((4, 3, 5), (5, 6, 3), ((2,), (0,)), ((1,), (2,))),
    "two batches, crossed": Dot((2, 4, 3, 5), (3, 2, 5, 6), ((3,), (2,)), ((0, 2), (1, 0))),
    "two contracted, crossed": Dot((4, 5, 2), (2, 5, 6), ((1, 2), (1, 0))),
    "outer product": Dot((4,), (5,), ((), ())),
    "several free": Dot((2, 5, 3), (4, 5, 2), ((1,), (1,))),
    "nothing to sum": Dot((4, 0), (0, 6), ((1,), (0,))),
    "no rows": Dot((0, 5), (5, 6), ((1,), (0,))),
}


@pytest.mark.xla
@pytest.mark.parametrize("name", DOTS)
@pytest.mark.parametrize("kind", ["f32", *slow("s32")])
def test_dimensions(name: str, kind: str) -> None:
    case = DOTS[name]
    rng = np.random.default_rng(1)
    # Up to ten products of normal numbers; each product and sum rounds.
    check(
        case.text(kind),
        [random_array(rng, kind, case.lhs), random_array(rng, kind, case.rhs)],
        steps=20,
        scale=16,
    )


@pytest.mark.xla
@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("pred", "pred"),
        ("s8", "s8"),
        ("u8", "u8"),
        ("s16", "s16"),
        ("u32", "u32"),
        ("s64", "s64"),
        ("u64", "u64"),
        ("s8", "s32"),
        ("u8", "s32"),
        ("s8", "s64"),
        ("s4", "s32"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("f64", "f64"),
        ("c64", "c64"),
        ("c128", "c128"),
        ("bf16", "f32"),
        ("f16", "f32"),
        ("f8e4m3fn", "f32"),
        ("f8e5m2", "bf16"),
    ],
)
def test_types(kind: str, result: str) -> None:
    case = DOTS["batch inside"]
    rng = np.random.default_rng(2)
    arguments = [random_array(rng, kind, case.lhs), random_array(rng, kind, case.rhs)]
    check(case.text(kind, result=result), arguments, steps=20, scale=16)


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_large_integers_wrap(kind: str) -> None:
    rng = np.random.default_rng(3)
    x, y = random_array(rng, kind, (4, 50)), random_array(rng, kind, (50, 6))
    (result,) = run(Dot((4, 50), (50, 6), ((1,), (0,))).text(kind), [x, y])
    exact = [[sum(int(a) * int(b) for a, b in zip(row, column)) for column in y.T] for row in x]
    expected = np.array([[v & (2**64 - 1) for v in row] for row in exact], np.uint64).astype(x.dtype)
    np.testing.assert_array_equal(result, expected)


def test_narrow_floats_round_once() -> None:
    x = np.full((1, 1000), 1.01, ml_dtypes.bfloat16)
    y = np.ones((1000, 1), ml_dtypes.bfloat16)
    (result,) = run(Dot((1, 1000), (1000, 1), ((1,), (0,))).text("bf16"), [x, y])
    assert result[0, 0] == np.float32(x.astype(np.float32).sum()).astype(ml_dtypes.bfloat16)


@pytest.mark.xla
def test_infinity_times_zero() -> None:
    x = np.array([[np.inf, 1], [np.nan, 0]], np.float32)
    check(Dot((2, 2), (2, 2), ((1,), (0,))).text(), [x, np.array([[0, 1], [1, 1]], np.float32)])


def test_large_products_of_views() -> None:
    """Operands that no BLAS takes as they lie."""
    case = Dot((7, 3, 20), (20, 9, 3), ((2,), (0,)), ((1,), (2,)))
    rng = np.random.default_rng(4)
    x, y = random_array(rng, "f64", case.lhs), random_array(rng, "f64", case.rhs)
    (result,) = run(case.text("f64"), [x, y])
    np.testing.assert_allclose(result, np.einsum("abc,cdb->bad", x, y), rtol=1e-12)


SCALED = """HloModule scaled
ENTRY e {{
  x = {kind}[4,8] parameter(0)
  y = {kind}[8,6] parameter(1)
  s = {scale} parameter(2)
  t = {other} parameter(3)
  ROOT d = f32[4,6] scaled-dot(x, y, s, t), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


def test_scaled_dot() -> None:
    # XLA: hlo_evaluator_typed_visitor.h (HandleScaledDot): element i has scale[i / (size / blocks)].
    rng = np.random.default_rng(5)
    x, y = random_array(rng, "f8e4m3fn", (4, 8)), random_array(rng, "f8e4m3fn", (8, 6))
    s = (2.0 ** rng.integers(-3, 4, (4, 2))).astype(ml_dtypes.float8_e8m0fnu)
    t = (2.0 ** rng.integers(-3, 4, (4, 3))).astype(ml_dtypes.float8_e8m0fnu)
    text = SCALED.format(kind="f8e4m3fn", scale="f8e8m0fnu[4,2]", other="f8e8m0fnu[4,3]")
    (result,) = run(text, [x, y, s, t])
    wide = [a.astype(np.float64) for a in (x, y, s, t)]
    expected = (wide[0] * wide[2].repeat(4, 1)) @ (wide[1] * wide[3].repeat(2, 0).repeat(2, 1))
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_scales_of_rank_0_count_as_1() -> None:
    rng = np.random.default_rng(6)
    x, y = random_array(rng, "bf16", (4, 8)), random_array(rng, "bf16", (8, 6))
    seven = np.array(7, ml_dtypes.bfloat16)
    (result,) = run(SCALED.format(kind="bf16", scale="bf16[]", other="bf16[]"), [x, y, seven, seven])
    np.testing.assert_allclose(result, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-5)


@dataclass(frozen=True)
class Convolution:
    """A convolution: sizes, labels, window and groups."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    labels: str
    window: str
    groups: str = ""

    def text(self, kind: str = "f32", result: str = "") -> str:
        window = f"window={{{self.window}}}, " if self.window else ""
        groups = f", {self.groups}" if self.groups else ""
        return f"""HloModule convolving
ENTRY e {{
  x = {kind}{dims(self.lhs)} parameter(0)
  w = {kind}{dims(self.rhs)} parameter(1)
  ROOT c = {result or kind}{dims(self.result)} convolution(x, w), {window}dim_labels={self.labels}{groups}
}}"""


B01F = "b01f_01io->b01f"
CONVOLUTIONS = {
    "plain": Convolution((2, 7, 8, 3), (3, 2, 3, 4), (2, 5, 7, 4), B01F, "size=3x2"),
    "same": Convolution((2, 7, 8, 3), (3, 3, 3, 4), (2, 7, 8, 4), B01F, "size=3x3 pad=1_1x1_1"),
    "stride": Convolution((2, 7, 8, 3), (3, 2, 3, 4), (2, 3, 3, 4), B01F, "size=3x2 stride=2x3"),
    "uneven padding": Convolution((2, 7, 8, 3), (3, 2, 3, 4), (2, 8, 7, 4), B01F, "size=3x2 pad=1_2x-1_1"),
    "negative padding": Convolution(
        (2, 7, 8, 3), (3, 2, 3, 4), (2, 3, 4, 4), B01F, "size=3x2 pad=-1_-1x-2_-1"
    ),
    "transposed": Convolution(
        (2, 4, 4, 3), (3, 3, 3, 4), (2, 9, 9, 4), B01F, "size=3x3 pad=2_2x1_0 lhs_dilate=2x3"
    ),
    "dilated": Convolution((2, 9, 9, 3), (2, 3, 3, 4), (2, 6, 5, 4), B01F, "size=2x3 rhs_dilate=3x2"),
    "everything": Convolution(
        (2, 5, 6, 3),
        (2, 3, 3, 4),
        (2, 4, 8, 4),
        B01F,
        "size=2x3 stride=3x2 pad=2_1x3_1 lhs_dilate=2x3 rhs_dilate=2x2 rhs_reversal=1x0",
    ),
    "reversed": Convolution((2, 7, 8, 3), (3, 2, 3, 4), (2, 5, 7, 4), B01F, "size=3x2 rhs_reversal=1x1"),
    "feature groups": Convolution(
        (2, 7, 8, 6), (3, 2, 2, 9), (2, 5, 7, 9), B01F, "size=3x2", "feature_group_count=3"
    ),
    "depthwise": Convolution(
        (2, 7, 8, 6), (3, 2, 1, 12), (2, 5, 7, 12), B01F, "size=3x2", "feature_group_count=6"
    ),
    "batch groups": Convolution(
        (6, 7, 8, 4), (3, 2, 4, 9), (2, 5, 7, 9), B01F, "size=3x2", "batch_group_count=3"
    ),
    "other labels": Convolution((3, 7, 2, 8), (4, 3, 3, 2), (7, 2, 5, 4), "f0b1_oi01->1b0f", "size=3x2"),
    "one dimension": Convolution((2, 9, 3), (3, 3, 4), (2, 7, 4), "b0f_0io->b0f", "size=3"),
    "three dimensions": Convolution(
        (2, 4, 5, 6, 2), (2, 3, 2, 2, 3), (2, 3, 3, 5, 3), "b012f_012io->b012f", "size=2x3x2"
    ),
    "no dimensions": Convolution((2, 3), (3, 4), (2, 4), "bf_io->bf", ""),
    "no batch": Convolution((0, 7, 8, 3), (3, 2, 3, 4), (0, 5, 7, 4), B01F, "size=3x2"),
    "all padding": Convolution((1, 2, 2, 1), (1, 1, 1, 1), (1, 6, 6, 1), B01F, "size=1x1 pad=2_2x2_2"),
}


def operands(case: Convolution, kind: str) -> list[Array]:
    rng = np.random.default_rng(7)
    return [random_array(rng, kind, case.lhs), random_array(rng, kind, case.rhs)]


@pytest.mark.xla
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    case = CONVOLUTIONS[name]
    # At most 27 products of normal numbers.
    check(case.text(), operands(case, "f32"), steps=54, scale=16)


@pytest.mark.xla
@pytest.mark.parametrize("name", ["everything", *slow("batch groups", "feature groups")])
@pytest.mark.parametrize("kind", ["s8", "bf16", "c64", *slow("s32", "u8", "s64", "f16", "f64")])
def test_convolution_of_other_types(name: str, kind: str) -> None:
    case = CONVOLUTIONS[name]
    check(case.text(kind), operands(case, kind), steps=54, scale=16)


@pytest.mark.xla
@pytest.mark.parametrize(("kind", "result"), [("s8", "s32"), ("bf16", "f32")])
def test_convolution_to_a_wider_type(kind: str, result: str) -> None:
    case = CONVOLUTIONS["same"]
    check(case.text(kind, result), operands(case, kind), steps=54, scale=16)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CONVOLUTIONS[name]
    (whole,) = run(case.text("s32"), operands(case, "s32"))
    monkeypatch.setattr(convolution_module, "_PATCH_ELEMENTS", 50)
    (parts,) = run(case.text("s32"), operands(case, "s32"))
    np.testing.assert_array_equal(whole, parts)


def test_sparse_operands_are_refused() -> None:
    from support.differential import parse

    from hlotool.backends.numpy import NumpyBackend
    from hlotool.ir.module import Instruction

    module = parse(DOTS["matrices"].text())
    root = module.entry.root
    meta = Instruction("meta", "parameter", root.operands[0].shape, parameter_number=2)
    module.entry.instructions.insert(0, meta)
    root.operands = (*root.operands, meta)
    with pytest.raises(Unsupported, match="sparse"):
        NumpyBackend().compile(module)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("size", [1, 100, 127, 1 << 12, 1 << 16, 1 << 24, 1 << 31, 1 << 40])
@pytest.mark.parametrize("terms", [0, 1, 5, 300, 3000])
def test_integer_products_are_exact_whatever_floats_they_pass_through(
    dtype: str, size: int, terms: int
) -> None:
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -size), min(limits.max, size)
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.integers(low, high, shape, dtype, endpoint=True) for shape in ((2, terms), (terms, 3)))
    lhs[:1], rhs[:, :1] = high, high
    exact = lhs.astype(object) @ rhs.astype(object) if terms else np.zeros((2, 3), object)
    wrapped = [[(int(v) - limits.min) % (1 << limits.bits) + limits.min for v in row] for row in exact]
    product = multiply_matrices(lhs, rhs)
    assert product.dtype == dtype
    assert product.tolist() == wrapped
