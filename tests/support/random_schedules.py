"""Seeded random fusions as kernels have schedules for: long rows, columns, transpositions, long loops.

Elements are small whole numbers, so that sums are exact in whatever order, and results equal to the bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES, TypeClass
from support.random_fusions import Fusion, Value, ints

_TYPES = ["f32", "f32", "f32", "bf16", "f16", "f64", "s32", "u8", "s8", "s64", "f8e5m2"]
_BINARY = ["add", "subtract", "maximum", "minimum"]
_UNARY = ["copy", "abs", "negate"]
_REDUCED = ["add", "add", "maximum", "minimum"]
_LENGTHS = (33, 47, 64, 127, 128, 255, 256, 257, 500, 1000, 1023, 1024, 1025, 2048, 3001, 5000)
_COUNTS = (1, 2, 3, 5, 8, 17, 31, 32, 33, 64, 70)


def random_schedule(seed: int) -> Fusion:
    """A computation whose last value is the result."""
    fusion = Fusion(random.Random(f"schedule {seed}"), 100_000 + seed)
    fusion.rng.choice(_KINDS)(fusion)
    return fusion


def _elementwise(f: Fusion, x: Value, steps: int) -> Value:
    """A few operations of x's shape, on other parameters, rows, columns and scalars."""
    for _ in range(f.rng.randrange(steps + 1)):
        if f.rng.random() < 0.3:
            x = f.add(x.kind, x.dims, f"{_one_of(f, x, _UNARY)}({x.name})")
        else:
            y = f.rng.choice([_other, _spread, _filled])(f, x)
            x = f.add(x.kind, x.dims, f"{f.rng.choice(_BINARY)}({x.name}, {y.name})")
    return x


def _one_of(f: Fusion, x: Value, names: list[str]) -> str:
    is_unsigned = ELEMENT_TYPES[x.kind].family is TypeClass.UNSIGNED
    return "not" if is_unsigned else f.rng.choice(names)


def _other(f: Fusion, x: Value) -> Value:
    return f.parameter(x.kind, x.dims)


def _spread(f: Fusion, x: Value) -> Value:
    """One dimension's worth of elements, repeated along the others."""
    d = f.rng.randrange(len(x.dims))
    line = f.parameter(x.kind, (x.dims[d],))
    return f.add(x.kind, x.dims, f"broadcast({line.name}), dimensions={{{d}}}")


def _filled(f: Fusion, x: Value) -> Value:
    number = f.scalar(x.kind, f.rng.randrange(4))
    return f.add(x.kind, x.dims, f"broadcast({number.name}), dimensions={{}}")


def _reduced(f: Fusion, x: Value, dimensions: list[int], opcodes: Sequence[str] = _REDUCED) -> Value:
    name, a = f"combine{f.number}_{len(f.helpers)}", f"{x.kind}[]"
    f.helpers.append(
        f"{name} {{\n a = {a} parameter(0)\n b = {a} parameter(1)\n"
        f" ROOT r = {a} {f.rng.choice(opcodes)}(a, b)\n}}\n"
    )
    start = f.scalar(x.kind, f.rng.randrange(3))
    dims = tuple(n for d, n in enumerate(x.dims) if d not in dimensions)
    text = f"reduce({x.name}, {start.name}), dimensions={ints(dimensions)}, to_apply={name}"
    return f.add(x.kind, dims, text)


def _finish(f: Fusion, x: Value, r: Value, dimensions: list[int]) -> None:
    """The result itself, something made of it, or every element against its row's or column's result."""
    choice = f.rng.random()
    if choice < 0.4:
        kept = [d for d in range(len(x.dims)) if d not in dimensions]
        back = f.add(x.kind, x.dims, f"broadcast({r.name}), dimensions={ints(kept)}")
        x = f.add(x.kind, x.dims, f"subtract({x.name}, {back.name})")
        if choice < 0.2:
            # Sums of sums may have more digits than f32.
            _reduced(f, x, dimensions, _REDUCED[2:])
    elif choice < 0.7 and r.dims:
        _elementwise(f, r, 2)


def _by(minor: bool) -> Callable[[Fusion], None]:
    def build(f: Fusion) -> None:
        length, count, kind = f.rng.choice(_LENGTHS), f.rng.choice(_COUNTS), f.rng.choice(_TYPES)
        dims: tuple[int, ...] = (count, length) if minor else (length, count)
        at = [int(minor)]
        if f.rng.random() < 0.3:
            dims, at = ((*dims[:1], 2, *dims[1:]), [1, 2] if minor else [0])
        x = _elementwise(f, f.parameter(kind, dims), 3)
        _finish(f, x, _reduced(f, x, at), at)

    return build


def _in_two_passes(f: Fusion) -> None:
    length, count = f.rng.choice([66_000, 131_073]), f.rng.choice([1, 3])
    by_row = f.rng.random() < 0.5
    dims = (count, length) if by_row else (length, count)
    x = _elementwise(f, f.parameter(f.rng.choice(["f32", "s32", "bf16"]), dims), 2)
    _reduced(f, x, f.rng.choice([[0, 1], [int(by_row)]]))


def _transposed(f: Fusion) -> None:
    dims = tuple(f.rng.choice([32, 33, 48, 64, 65, 100]) for _ in range(2))
    if f.rng.random() < 0.4:
        dims = (f.rng.choice([2, 3, 32]), *dims)
    order = list(range(len(dims)))
    while order == sorted(order):
        f.rng.shuffle(order)
    x = _elementwise(f, f.parameter(f.rng.choice(_TYPES), dims), 2)
    x = f.add(x.kind, tuple(dims[d] for d in order), f"transpose({x.name}), dimensions={ints(order)}")
    x = _elementwise(f, x, 2)
    if f.rng.random() < 0.3:
        _reduced(f, x, [f.rng.randrange(len(dims))])


def _long_loop(f: Fusion) -> None:
    sizes = [(1023,), (4097,), (8192,), (77, 130), (64, 258), (40, 12, 34), (5, 1, 1000)]
    x = _elementwise(f, f.parameter(f.rng.choice(_TYPES), f.rng.choice(sizes)), 4)
    if f.rng.random() < 0.5:
        x = f.add(f.rng.choice(["f32", "bf16", "s8", "f64", "pred"]), x.dims, f"convert({x.name})")
    if f.rng.random() < 0.4:
        f.rng.choice([_cut, _padded])(f, x)


def _cut(f: Fusion, x: Value) -> None:
    start = f.rng.randrange(4) if x.dims[-1] > 8 else 0
    parts = [f"[0:{n}]" for n in x.dims[:-1]] + [f"[{start}:{x.dims[-1]}]"]
    f.add(x.kind, (*x.dims[:-1], x.dims[-1] - start), f"slice({x.name}), slice={{{', '.join(parts)}}}")


def _padded(f: Fusion, x: Value) -> None:
    low, filler = f.rng.randrange(1, 5), f.scalar(x.kind, 1)
    text = "x".join(["0_0"] * (len(x.dims) - 1) + [f"{low}_0"])
    f.add(x.kind, (*x.dims[:-1], x.dims[-1] + low), f"pad({x.name}, {filler.name}), padding={text}")


_KINDS: tuple[Callable[[Fusion], None], ...] = (
    _by(minor=True), _by(minor=True), _by(minor=False), _by(minor=False), _transposed, _transposed,
    _long_loop, _in_two_passes,
)  # fmt: skip


def whole_numbers(fusions: list[Fusion], seed: int) -> list[Any]:
    """Values of all parameters: whole numbers from -4 to 4, from 0 for unsigned types."""
    rng = np.random.default_rng(seed)
    return [_argument(rng, parameter) for fusion in fusions for parameter in fusion.parameters]


def _argument(rng: np.random.Generator, parameter: Value) -> Any:
    kind = ELEMENT_TYPES[parameter.kind]
    low = 0 if kind.family in (TypeClass.UNSIGNED, TypeClass.PRED) else -4
    return rng.integers(low, 5, parameter.dims).astype(DTYPES[kind])
