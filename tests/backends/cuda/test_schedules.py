"""Every schedule gives what one thread for each element gives, at the borders of tiles, teams and chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
import pytest
from support.differential import leaves
from support.kernels import differing, emulator, needs_compiler

from hlotool.backends.cuda.codegen import partition, product_tiles, schedules
from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

_BORDERS = (1, 31, 32, 33, 255, 256, 257, 1023, 1025)


def _some(quick: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The others take a long compilation."""
    return [*quick, *(pytest.param(other, marks=pytest.mark.slow) for other in others)]


@contextmanager
def _by_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing but one thread for each element."""
    with monkeypatch.context() as patch:
        patch.setattr(partition, "is_long", lambda reduction: False)
        patch.setattr(partition, "transposition", lambda outputs, inputs: None)
        yield


def _module(fusions: Sequence[tuple[str, str, str]], helpers: str = "") -> str:
    """Each fusion is its argument's shape, its result's shape, and its body, which reads x."""
    texts, entry, results = [], [], []
    for number, (given, result, body) in enumerate(fusions):
        texts.append(f"body{number} {{\n  x = {given} parameter(0)\n{body}\n}}\n")
        entry.append(f"  p{number} = {given} parameter({number})")
        entry.append(f"  r{number} = {result} fusion(p{number}), kind=kInput, calls=body{number}")
        results.append(result)
    names = ", ".join(f"r{n}" for n in range(len(fusions)))
    entry.append(f"  ROOT all = ({', '.join(results)}) tuple({names})")
    return f"HloModule schedules\n{helpers}" + "".join(texts) + "ENTRY main {\n" + "\n".join(entry) + "\n}\n"


def _combiner(name: str, kind: str, opcode: str) -> str:
    return (
        f"{name} {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n"
        f"  ROOT r = {kind}[] {opcode}(a, b)\n}}\n"
    )


def _argument(kind: str, dims: tuple[int, ...], seed: int) -> Any:
    """Small whole numbers: their sums are exact in every order."""
    element = ELEMENT_TYPES[kind]
    rng = np.random.default_rng(seed)
    low, high = (0, 2) if kind == "pred" else (0 if not element.is_signed and element.is_integer else -3, 4)
    return rng.integers(low, high, prod(dims)).reshape(dims).astype(DTYPES[element])


def _check(text: str, arguments: Sequence[Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compare with loops, in both orders of threads; returns the schedules that were used."""
    module = parse_module(text)
    with _by_loops(monkeypatch):
        expected = leaves(emulator().compile(module).run(arguments))
    for backward in (False, True):
        executable = emulator(backward).compile(module)
        assert executable.notes == ()
        found = leaves(executable.run(arguments))
        assert [a.shape for a in found] == [b.shape for b in expected]
        wrong = [n for n, (a, b) in enumerate(zip(found, expected)) if a.size and differing(a, b)]
        assert wrong == []
    return [kernel.schedule for kernel in executable.kernels]


def _reduction(kind: str, dims: tuple[int, ...], reduced: Sequence[int]) -> tuple[str, str, str]:
    kept = ",".join(str(size) for d, size in enumerate(dims) if d not in reduced)
    result, start = f"{kind}[{kept}]", {"pred": "false", "c64": "(1, 0)"}.get(kind, "1")
    body = (
        f"  one = {kind}[] constant({start})\n"
        f"  ROOT r = {result} reduce(x, one), dimensions={{{','.join(map(str, reduced))}}}, to_apply=join"
    )
    return f"{kind}[{','.join(map(str, dims))}]", result, body


@pytest.mark.parametrize(
    "kind", _some(["pred", "f32", "bf16"], ["s8", "u16", "s32", "s64", "f64", "c64", "f8e5m2"])
)
def test_reductions_at_the_borders(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [((rows, size), (1,)) for rows, size in zip((1, 7, 8, 9, 3, 2, 5, 1, 4), _BORDERS)]
    shapes += [
        ((size, columns), (0,)) for columns, size in zip((1, 31, 33, 127, 128, 4, 129, 32, 5), _BORDERS)
    ]
    shapes += [((3, 40, 5), (0, 2)), ((40, 3, 50), (0, 2)), ((2, 300, 16), (1,)), ((4, 3, 70), (1, 2))]
    shapes += [((0, 40), (1,)), ((40, 0), (0,))]
    opcode = "or" if kind == "pred" else "maximum" if kind == "f8e5m2" else "add"
    text = _module([_reduction(kind, *shape) for shape in shapes], _combiner("join", kind, opcode))
    arguments = [_argument(kind, dims, seed) for seed, (dims, _) in enumerate(shapes)]
    used = _check(text, arguments, monkeypatch)
    assert {"row reduction", "column reduction"} <= set(used)


def test_two_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [
        ((3, 70001), (1,)),
        ((140000,), (0,)),
        ((5000, 6), (0,)),
        ((3000, 130), (0,)),
        ((2, 3000, 40), (1,)),
    ]
    text = _module([_reduction("s32", *shape) for shape in shapes], _combiner("join", "s32", "add"))
    arguments = [_argument("s32", dims, seed) for seed, (dims, _) in enumerate(shapes)]
    used = _check(text, arguments, monkeypatch)
    assert sum("first pass" in schedule for schedule in used) == len(shapes)


_ROWS = """  zero = f32[] constant(0)
  s = f32[{rows}] reduce(x, zero), dimensions={{1}}, to_apply=join
  ss = f32[{rows},{size}] broadcast(s), dimensions={{0}}
  d = f32[{rows},{size}] subtract(x, ss)
  t = f32[{rows}] reduce(d, zero), dimensions={{1}}, to_apply=join
  n = f32[{rows}] negate(t)
  tt = f32[{rows},{size}] broadcast(t), dimensions={{0}}
  e = f32[{rows},{size}] add(d, tt)
  ROOT r = (f32[{rows},{size}], f32[{rows}], f32[{rows}]) tuple(e, n, s)"""


@pytest.mark.parametrize("size", _some([32, 33, 1025], [255, 256, 257, 1023]))
def test_whole_rows_are_one_kernel(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 9
    shape, column = f"f32[{rows},{size}]", f"f32[{rows}]"
    text = (
        "HloModule rows\n" + _combiner("join", "f32", "add") + f"f {{\n  x = {shape} parameter(0)\n"
        f"{_ROWS.format(rows=rows, size=size)}\n}}\nENTRY main {{\n  x = {shape} parameter(0)\n"
        f"  ROOT r = ({shape}, {column}, {column}) fusion(x), kind=kInput, calls=f\n}}\n"
    )
    used = _check(text, [_argument("f32", (rows, size), 0)], monkeypatch)
    assert used == (["loop"] if size <= 32 else ["row reduction, then its rows"])


@pytest.mark.parametrize("kind", _some(["bf16", "f32"], ["pred", "f64", "c128"]))
def test_transpositions_at_the_borders(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(16, 16), (31, 33), (32, 257), (17, 100), (1, 40), (40, 15)]
    fusions = [
        (
            f"{kind}[{a},{b}]",
            f"{kind}[{b},{a}]",
            f"  ROOT r = {kind}[{b},{a}] transpose(x), dimensions={{1,0}}",
        )
        for a, b in shapes
    ]
    for order in ((2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)):
        dims = (18, 20, 33)
        result = f"{kind}[{','.join(str(dims[d]) for d in order)}]"
        body = f"  ROOT r = {result} transpose(x), dimensions={{{','.join(map(str, order))}}}"
        fusions.append((f"{kind}[18,20,33]", result, body))
    arguments = [_argument(kind, dims, seed) for seed, dims in enumerate([*shapes, *[(18, 20, 33)] * 4])]
    used = _check(_module(fusions), arguments, monkeypatch)
    assert used.count("tiles of a transposition") == 8


@pytest.mark.parametrize(("kind", "unit"), [("bf16", 2), ("s8", 4), ("f32", 2), ("f64", 1)])
def test_transpositions_of_neighbours(kind: str, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads read and write several elements at once where rows and columns are multiples of so many."""
    monkeypatch.setattr(product_tiles, "_ENOUGH_TILES", 0)
    units = {
        (64, 64): unit,
        (132, 36): unit,
        (20, 260): unit,
        (66, 34): min(unit, 2),
        (65, 36): 1,
        (36, 35): 1,
    }
    fusions = []
    for a, b in units:
        body = (
            f"  t = {kind}[{b},{a}] transpose(x), dimensions={{1,0}}\n"
            f"  s = {kind}[{a},{b}] negate(x)\n  u = {kind}[{b},{a}] reshape(s)\n"
            f"  ROOT r = {kind}[{b},{a}] add(t, u)"
        )
        fusions.append((f"{kind}[{a},{b}]", f"{kind}[{b},{a}]", body))
    fusions.append(
        (
            f"{kind}[4,36,68]",
            f"{kind}[4,68,36]",
            f"  ROOT r = {kind}[4,68,36] transpose(x), dimensions={{0,2,1}}",
        )
    )
    arguments = [_argument(kind, dims, seed) for seed, dims in enumerate([*units, (4, 36, 68)])]
    text = _module(fusions)
    assert _check(text, arguments, monkeypatch) == ["tiles of a transposition"] * len(fusions)
    found = [
        int(n)
        for k in emulator().compile(parse_module(text)).kernels
        for n in re.findall(r"turn_tile<\w+, (\d)>", k.source)
    ]
    assert found == [*units.values(), unit]


@pytest.mark.parametrize(("unit", "size"), [(1, 4), (1, 8), (2, 2), (2, 4), (4, 1)])
def test_tiles_meet_all_banks(unit: int, size: int) -> None:
    """Threads of a warp that access shared memory together, 128 bytes at a time, meet no bank twice."""

    def turned(row: int, column: int) -> int:  # as in prelude/tiles.h
        return (row % unit * 32 + row // unit) * 33 * unit + column

    def conflicts(places: Sequence[int]) -> int:
        at_once = 128 // (unit * size)
        parts = [places[n : n + at_once] for n in range(0, 32, at_once)]
        banks = [[(p * size + b) // 4 % 32 for p in part for b in range(0, unit * size, 4)] for part in parts]
        return sum(len(part) - len(set(part)) for part in banks)

    assert conflicts([turned(unit * lane, 0) for lane in range(32)]) == 0
    assert conflicts([turned(unit * lane + unit - 1, 5 * unit) for lane in range(32)]) == 0
    assert conflicts([turned(3, unit * lane) for lane in range(32)]) == 0


def test_a_transposition_inside_of_a_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    body = """  t = f32[50,40] transpose(x), dimensions={1,0}
  two = f32[] constant(2)
  twos = f32[50,40] broadcast(two), dimensions={}
  m = f32[50,40] multiply(t, twos)
  s = f32[40,50] slice(x), slice={[0:40], [0:50]}
  u = f32[50,40] reshape(s)
  ROOT r = f32[50,40] add(m, u)"""
    used = _check(_module([("f32[40,50]", "f32[50,40]", body)]), [_argument("f32", (40, 50), 0)], monkeypatch)
    assert used == ["tiles of a transposition"]


@pytest.mark.parametrize(("kind", "has_tiles"), [("f64", True), ("c128", False)])
def test_tiles_fit_into_shared_memory(kind: str, has_tiles: bool) -> None:
    """Four of c128 would take more than the 48 KB that a block has."""
    shape, turned = f"{kind}[64,48]", f"{kind}[48,64]"
    lines = [
        f"  p{n} = {shape} parameter({n})\n  t{n} = {turned} transpose(p{n}), dimensions={{1,0}}"
        for n in range(4)
    ]
    lines += [f"  a = {turned} add(t0, t1)", f"  b = {turned} add(t2, t3)", f"  ROOT r = {turned} add(a, b)"]
    module = parse_module("HloModule m\nENTRY main {\n" + "\n".join(lines) + "\n}\n")
    [kernel] = partition.of_fusion(module.entry).kernels
    assert (kernel.schedule == "tiles of a transposition") == has_tiles


def test_indices_of_64_bits_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [((9, 300), (1,)), ((3000, 130), (0,)), ((2, 70000), (1,)), ((20, 33), (0,))]
    text = _module([_reduction("s32", *shape) for shape in shapes], _combiner("join", "s32", "add"))
    arguments = [_argument("s32", dims, seed) for seed, (dims, _) in enumerate(shapes)]
    module = parse_module(text)
    narrow = emulator().compile(module)
    monkeypatch.setattr(schedules, "LARGEST_INT", 0)
    wide = emulator().compile(module)
    assert all("typedef int Index;" in kernel.source for kernel in narrow.kernels)
    assert all("typedef i64 Index;" in kernel.source for kernel in wide.kernels)
    for a, b in zip(leaves(narrow.run(arguments)), leaves(wide.run(arguments)), strict=True):
        assert differing(a, b) == 0
