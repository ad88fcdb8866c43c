"""Parts of an instruction on several cores: all are done, errors arrive, bits do not depend on the cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.budget import HUNG

from hlotool.backends.numpy import NumpyBackend, contraction, threads
from hlotool.inputs.generate import generate_inputs
from hlotool.parser.reader import parse_module


@pytest.fixture(autouse=True)
def fresh_settings() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    for setting in (threads.thread_count, threads.is_blas_single, threads._pool):
        setting.cache_clear()


@pytest.mark.parametrize(("value", "expected"), [("3", 3), ("1", 1)])
def test_the_environment_says_how_many(value: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, value)
    assert threads.thread_count() == expected


@pytest.mark.parametrize("value", ["", "0", "many"])
def test_otherwise_all_cores(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, value)
    assert threads.thread_count() >= 1


@pytest.mark.parametrize("count", ["1", "2", "5"])
@pytest.mark.parametrize("parts", [0, 1, 100])
def test_every_part_is_done_once(count: str, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, count)
    done: list[int] = []
    threads.each(done.append, list(range(parts)))
    assert sorted(done) == list(range(parts))


def test_parts_run_at_the_same_time_with_the_callers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, "2")
    meeting = threading.Barrier(2, timeout=HUNG)
    seen: list[str] = []

    def part(_: int) -> None:
        meeting.wait()
        seen.append(np.geterr()["divide"])

    with np.errstate(divide="ignore"):
        threads.each(part, [0, 1])
    assert seen == ["ignore", "ignore"]


@pytest.mark.parametrize("caller_fails", [True, False])
def test_an_error_in_any_thread_arrives(caller_fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, "2")
    meeting = threading.Barrier(2, timeout=HUNG)
    caller = threading.current_thread()

    def part(_: int) -> None:
        meeting.wait()
        if (threading.current_thread() is caller) == caller_fails:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.each(part, [0, 1])


def test_parts_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers that ask for help do not wait for each other."""
    monkeypatch.setenv(threads.VARIABLE, "2")
    done: list[int] = []
    threads.each(lambda start: threads.each(done.append, list(range(start, start + 50))), [0, 50, 100])
    assert sorted(done) == list(range(150))


@pytest.mark.parametrize(
    ("size", "count", "lengths"), [(10, 3, [4, 4, 2]), (2, 5, [1, 1]), (0, 4, []), (3, 0, [3])]
)
def test_spans(size: int, count: int, lengths: list[int]) -> None:
    spans = list(threads.spans(size, count))
    assert [span.stop - span.start for span in spans] == lengths
    assert [i for span in spans for i in range(size)[span]] == list(range(size))


_SUM = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
LARGE = {
    "blocks": "ENTRY e { a = f32[1000,1000] parameter(0)\n t = f32[1000,1000] tanh(a)\n"
    " ROOT r = f32[1000,1000] multiply(t, a) }",
    "rows of a product": "ENTRY e { a = f32[512,300] parameter(0)\n b = f32[300,400] parameter(1)\n"
    " ROOT r = f32[512,400] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "columns of a product": "ENTRY e { a = f32[300,100] parameter(0)\n b = f32[900,300] parameter(1)\n"
    " ROOT r = f32[100,900] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={1} }",
    "batch of products": "ENTRY e { a = bf16[2,9,100,100] parameter(0)\n b = bf16[2,9,100,100] parameter(1)\n"
    " ROOT r = bf16[2,9,100,100] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1},"
    " lhs_contracting_dims={3}, rhs_contracting_dims={2} }",
    "sums of rows": _SUM + "ENTRY e { a = f32[3,900,400] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[3,900] reduce(a, z), dimensions={2}, to_apply=s }",
    "sums of columns": _SUM + "ENTRY e { a = f32[900,2,400] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[2,400] reduce(a, z), dimensions={0}, to_apply=s }",
    "convolution": "ENTRY e { a = f32[20,32,32,8] parameter(0)\n k = f32[3,3,8,4] parameter(1)\n"
    " ROOT r = f32[20,32,32,4] convolution(a, k), window={size=3x3 pad=1_1x1_1},"
    " dim_labels=b01f_01io->b01f }",
    "running sums": _SUM + "ENTRY e { a = f32[600,500] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[600,500] reduce-window(a, z), window={size=1x500 pad=0_0x499_0}, to_apply=s }",
}


@pytest.mark.parametrize("name", sorted(LARGE))
def test_the_bits_do_not_depend_on_the_cores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_module(f"HloModule m\n{LARGE[name]}")
    arguments: list[Any] = list(generate_inputs(module, seed=0).values)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    results = []
    for count in ("1", "2", "3"):
        monkeypatch.setenv(threads.VARIABLE, count)
        forget()
        results.append(np.asarray(NumpyBackend().compile(module).run(arguments)).tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", [name for name in sorted(LARGE) if "product" in name])
def test_products_in_parts_are_products(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse_module(f"HloModule m\n{LARGE[name]}")
    arguments: list[Any] = list(generate_inputs(module, seed=0).values)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    whole = np.asarray(NumpyBackend().compile(module).run(arguments)).astype(np.float64)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    forget()
    parts = np.asarray(NumpyBackend().compile(module).run(arguments)).astype(np.float64)
    np.testing.assert_allclose(parts, whole, rtol=1e-2 if "batch" in name else 1e-4, atol=1e-4)


def test_large_reductions_are_those_of_all_elements() -> None:
    x = np.random.default_rng(0).standard_normal((700, 3, 400)).astype(np.float32)
    for dims in ((0,), (1,), (2,), (0, 2), (0, 1), (0, 1, 2)):
        kept = [size for axis, size in enumerate(x.shape) if axis not in dims]
        result = f"f32[{','.join(map(str, kept))}]"
        text = f"""HloModule m
{_SUM}ENTRY e {{ a = f32[700,3,400] parameter(0)
 z = f32[] constant(1)
 ROOT r = {result} reduce(a, z), dimensions={{{",".join(map(str, dims))}}}, to_apply=s }}"""
        summed = np.asarray(NumpyBackend().compile(parse_module(text)).run([x]))
        expected = (1 + x.sum(axis=dims, dtype=np.float64)).astype(np.float32)
        np.testing.assert_allclose(summed, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("large", [3, 1 << 14, 1 << 30])
def test_integer_products_in_tiles_are_exact(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through f32, through f64, and neither."""
    monkeypatch.setattr(contraction, "_TILE", 1)
    generator = np.random.default_rng(0)
    lhs = generator.integers(-large, large, (2, 130, 300)).astype(np.int32)
    rhs = generator.integers(-large, large, (2, 300, 70)).astype(np.int32)
    with np.errstate(over="ignore"):
        expected = np.einsum("bij,bjk->bik", lhs, rhs)
    np.testing.assert_array_equal(contraction.multiply_matrices(lhs, rhs), expected)
