"""Custom calls into LAPACK against jaxlib's, which calls the same library: equal to the bit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from support.differential import Array, check, parse, run, slow

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.custom_calls import CUSTOM_CALLS
from hlotool.errors import Unsupported
from hlotool.lab.conformance.generators.cases import random_array
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules

KINDS = {"s": "f32", "d": "f64", "c": "c64", "z": "c128"}


def column_major(kind: str, sizes: Sequence[int], matrix: bool = True) -> str:
    """An array of matrices as LAPACK wants them, or of vectors."""
    rank = len(sizes)
    order = [rank - 2, rank - 1, *range(rank - 3, -1, -1)] if matrix else list(range(rank - 1, -1, -1))
    return f"{kind}[{','.join(map(str, sizes))}]{{{','.join(map(str, order))}}}"


def call_text(target: str, operands: list[str], results: list[str], config: str) -> str:
    """A module of one custom call; its results are copied out one by one."""
    parameters = "\n  ".join(f"x{i} = {shape} parameter({i})" for i, shape in enumerate(operands))
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"""HloModule lapack
ENTRY e {{
  {parameters}
  ROOT y = {result} custom-call({names}), custom_call_target="{target}",
    operand_layout_constraints={{{", ".join(operands)}}}, api_version=API_VERSION_TYPED_FFI,
    backend_config={{{config}}}
}}"""


def square(kind: str, seed: int = 1) -> Array:
    return random_array(np.random.default_rng(seed), kind, (2, 4, 4))


def definite(kind: str) -> Array:
    m = square(kind)
    return (m @ m.conj().swapaxes(-1, -2) + 4 * np.eye(4)).astype(m.dtype)


def shapes(kind: str, *sizes: tuple[int, ...]) -> list[str]:
    """Shapes of a batch of 2: matrices for pairs of sizes, vectors for single ones."""
    return [column_major(kind, (2, *s), matrix=len(s) == 2) for s in sizes]


INFO = "s32[2]{0}"


def test_every_routine_of_jaxlib_is_there() -> None:
    names = ["potrf", "getrf", "geqrf", "geqp3", "trsm", "gtsv", "gehrd", "gesdd", "gesvd", "geev", "gees"]
    expected = {f"lapack_{letter}{name}_ffi" for name in names for letter in "sdcz"}
    real, hermitian = ("orgqr", "ormqr", "syevd", "sytrd"), ("ungqr", "unmqr", "heevd", "hetrd")
    expected |= {f"lapack_{letter}{name}_ffi" for name in real for letter in "sd"}
    expected |= {f"lapack_{letter}{name}_ffi" for name in hermitian for letter in "cz"}
    assert expected == {target for target in CUSTOM_CALLS if re.match("lapack_.*_ffi$", target)}


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_potrf(letter: str, uplo: str) -> None:
    kind = KINDS[letter]
    text = call_text(
        f"lapack_{letter}potrf_ffi",
        shapes(kind, (4, 4)),
        [*shapes(kind, (4, 4)), INFO],
        f"uplo = {ord(uplo)} : ui8",
    )
    x = definite(kind)
    x[1, 2, 2] = -1
    (_, info) = check(text, [x])
    assert info.tolist() == [0, 3]


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
def test_lu_and_qr(letter: str) -> None:
    kind = KINDS[letter]
    x = random_array(np.random.default_rng(2), kind, (2, 5, 4))
    matrix, pivots = shapes(kind, (5, 4)), shapes("s32", (4,))
    factors = shapes(kind, (4,))
    _, row, _ = check(call_text(f"lapack_{letter}getrf_ffi", matrix, [*matrix, *pivots, INFO], ""), [x])
    assert row.min() >= 1
    qr, tau = check(call_text(f"lapack_{letter}geqrf_ffi", matrix, [*matrix, *factors], ""), [x])
    name = "orgqr" if letter in "sd" else "ungqr"
    check(call_text(f"lapack_{letter}{name}_ffi", [*matrix, *factors], matrix, ""), [qr, tau])
    pivoted = call_text(f"lapack_{letter}geqp3_ffi", [*matrix, *pivots], [*matrix, *pivots, *factors], "")
    check(pivoted, [x, np.zeros((2, 4), np.int32)])
    with pytest.raises(Unsupported, match="columns fixed"):
        NumpyBackend().compile(parse(pivoted)).run([x, np.ones((2, 4), np.int32)])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_ormqr(letter: str, left: bool, transpose: bool) -> None:
    kind = KINDS[letter]
    rng = np.random.default_rng(3)
    c = (4, 3) if left else (3, 4)
    name = "ormqr" if letter in "sd" else "unmqr"
    config = f"left = {left}, transpose = {transpose}".lower()
    text = call_text(f"lapack_{letter}{name}_ffi", shapes(kind, (4, 4), (4,), c), shapes(kind, c), config)
    check(text, [square(kind), random_array(rng, kind, (2, 4)), random_array(rng, kind, (2, *c))])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
@pytest.mark.parametrize(("side", "uplo", "trans", "diag"), ["LLNN", "RUTU", "LUCN", "RLNU"])
def test_trsm(letter: str, side: str, uplo: str, trans: str, diag: str) -> None:
    kind = KINDS[letter]
    b = (4, 3) if side == "L" else (3, 4)
    options = {"diag": diag, "side": side, "trans_x": trans, "uplo": uplo}
    config = ", ".join(f"{name} = {ord(value)} : ui8" for name, value in options.items())
    text = call_text(f"lapack_{letter}trsm_ffi", shapes(kind, (4, 4), b), shapes(kind, b), config)
    check(text, [square(kind), random_array(np.random.default_rng(4), kind, (2, *b))])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
def test_gtsv(letter: str) -> None:
    kind = KINDS[letter]
    operands = shapes(kind, (4,), (4,), (4,), (4, 3))
    text = call_text(f"lapack_{letter}gtsv_ffi", operands, [*operands, INFO], "")
    rng = np.random.default_rng(5)
    lower, upper = (random_array(rng, kind, (2, 4)) for _ in range(2))
    diagonal = random_array(rng, kind, (2, 4)) + np.array(5, lower.dtype)
    b = random_array(rng, kind, (2, 4, 3))
    from support.xla import oracle

    ours, theirs = run(text, [lower, diagonal, upper, b]), oracle().run(text, [lower, diagonal, upper, b])
    for index in (3, 4):  # the others are scratch
        np.testing.assert_array_equal(ours[index], theirs[index])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
def test_reductions_to_simpler_forms(letter: str) -> None:
    kind, real = KINDS[letter], {"s": "f32", "d": "f64", "c": "f32", "z": "f64"}[letter]
    matrix = shapes(kind, (4, 4))
    results = [*matrix, *shapes(kind, (3,)), INFO]
    check(
        call_text(f"lapack_{letter}gehrd_ffi", matrix, results, "high = 4 : i32, low = 1 : i32"),
        [square(kind)],
    )
    name = "sytrd" if letter in "sd" else "hetrd"
    results = [*matrix, *shapes(real, (4,), (3,)), *shapes(kind, (3,)), INFO]
    for uplo in "LU":
        config = f"uplo = {ord(uplo)} : ui8"
        check(call_text(f"lapack_{letter}{name}_ffi", matrix, results, config), [definite(kind)])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
@pytest.mark.parametrize("name", ["gesdd", "gesvd"])
@pytest.mark.parametrize("mode", ["S", "A", "N"])
def test_singular_values(letter: str, name: str, mode: str) -> None:
    from support.xla import oracle

    kind, real = KINDS[letter], {"s": "f32", "d": "f64", "c": "f32", "z": "f64"}[letter]
    left = (5, 4) if mode == "S" else (5, 5)
    results = [*shapes(kind, (5, 4)), *shapes(real, (4,)), *shapes(kind, left, (4, 4)), INFO]
    text = call_text(f"lapack_{letter}{name}_ffi", shapes(kind, (5, 4)), results, f"mode = {ord(mode)} : ui8")
    x = random_array(np.random.default_rng(6), kind, (2, 5, 4))
    ours, theirs = run(text, [x]), oracle().run(text, [x])
    for index in (1, 4) if mode == "N" else (1, 2, 3, 4):  # the others are scratch
        np.testing.assert_array_equal(ours[index], theirs[index])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_hermitian_eigenvalues(letter: str, uplo: str) -> None:
    kind, real = KINDS[letter], {"s": "f32", "d": "f64", "c": "f32", "z": "f64"}[letter]
    name = "syevd" if letter in "sd" else "heevd"
    results = [*shapes(kind, (4, 4)), *shapes(real, (4,)), INFO]
    config = f"mode = {ord('V')} : ui8, uplo = {ord(uplo)} : ui8"
    check(call_text(f"lapack_{letter}{name}_ffi", shapes(kind, (4, 4)), results, config), [square(kind)])


@pytest.mark.xla
@pytest.mark.parametrize("letter", ["s", "c", *slow("d", "z")])
def test_eigenvalues_and_schur_form(letter: str) -> None:
    kind, wide = KINDS[letter], {"s": "c64", "d": "c128", "c": "c64", "z": "c128"}[letter]
    parts = 2 if letter in "sd" else 1
    matrix, values = shapes(kind, (4, 4)), shapes(kind, (4,)) * parts
    config = f"compute_left = {ord('V')} : ui8, compute_right = {ord('V')} : ui8"
    text = call_text(f"lapack_{letter}geev_ffi", matrix, [*values, *shapes(wide, (4, 4)) * 2, INFO], config)
    found = check(text, [square(kind)])
    if letter in "sd":
        assert found[1].any(), "the example needs a conjugate pair"
    config = f"mode = {ord('V')} : ui8, sort = {ord('N')} : ui8"
    text = call_text(f"lapack_{letter}gees_ffi", matrix, [*matrix * 2, *values, INFO, INFO], config)
    check(text, [square(kind)])


def test_empty_batches_and_matrices() -> None:
    text = call_text(
        "lapack_sgetrf_ffi", ["f32[0,4,4]{1,2,0}"], ["f32[0,4,4]{1,2,0}", "s32[0,4]{1,0}", "s32[0]{0}"], ""
    )
    lu, pivots, info = run(text, [np.zeros((0, 4, 4), np.float32)])
    assert (lu.shape, pivots.shape, info.shape) == ((0, 4, 4), (0, 4), (0,))
    text = call_text("lapack_spotrf_ffi", ["f32[0,0]{0,1}"], ["f32[0,0]{0,1}", "s32[]"], "uplo = 76 : ui8")
    assert run(text, [np.zeros((0, 0), np.float32)])[1] == 0


def test_pivots_to_permutation() -> None:
    text = """HloModule permutation
ENTRY e {
  p = s32[2,4] parameter(0)
  ROOT y = s32[2,5] custom-call(p), custom_call_target="cu_lu_pivots_to_permutation"
}"""
    pivots = np.array([[4, 1, 3, 3], [0, 4, 2, 3]], np.int32)
    (result,) = run(text, [pivots])
    for row, swaps in zip(result, pivots):
        expected = list(range(5))
        for first, second in enumerate(swaps):
            expected[first], expected[second] = expected[second], expected[first]
        assert row.tolist() == expected


@pytest.mark.parametrize("direction", ["GT", "LT"])
def test_topk_custom_call(direction: str) -> None:
    text = f"""HloModule top
order {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction={direction}, type=TOTALORDER
}}
ENTRY e {{
  x = f32[2,6] parameter(0)
  ROOT y = (f32[2,3], s32[2,3]) custom-call(x), custom_call_target="TopK", called_computations={{order}}
}}"""
    x = np.array([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]], np.float32)
    values, indices = run(text, [x])
    expected = [[5, 4, 2], [5, 1, 2]] if direction == "GT" else [[1, 3, 0], [0, 3, 2]]
    assert indices.tolist() == expected
    np.testing.assert_array_equal(values, np.take_along_axis(x, np.array(expected), 1))


def test_trsm_with_a_factor_as_jaxlib_0_4_38_calls_it() -> None:
    """One factor for the whole batch. Today's library refuses the third operand: the truth goes without."""
    config = "diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8"
    operands = shapes("f32", (4, 4), (4, 3))
    a, b = square("f32"), random_array(np.random.default_rng(4), "f32", (2, 4, 3))
    plain = run(call_text("lapack_strsm_ffi", operands, operands[1:], config), [a, 2 * b])
    text = call_text("lapack_strsm_ffi", [*operands, "f32[]"], operands[1:], config)
    np.testing.assert_array_equal(run(text, [a, b, np.float32(2)]), plain)
    twice = "two = f32[] constant(2)\n  c = f32[] multiply(x2, two)\n  ROOT y"
    doubled = text.replace("ROOT y", twice).replace("(x0, x1, x2)", "(x0, x1, c)")
    assert compare_modules(parse(text), parse(text)).relation is Relation.EQUAL
    assert compare_modules(parse(text), parse(doubled)).relation is Relation.UNEQUAL
