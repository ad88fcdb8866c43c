"""Inputs on which a faulty program is off by more than rounding: what makes a planted fault count.

The judge is plain execution. The right text and the faulty one run on the same inputs (`hlotool.run`, the
NumPy interpreter), and so does the right text on inputs that are a unit in the last place off. A fault is
real where an element is further off than thirty times all of that, or an integer is another one, or NaN or
infinity is on one side only. Inputs on which the two right texts disagree among themselves are no witness.
"""

from __future__ import annotations

import signal
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import hlotool
from benchmarks.adversary.text import Text

#: A fault is this many times as far off as rounding: what is nearer might have an excuse.
FACTOR = 30.0

#: Seconds for one run: some faulty loops never end.
SECONDS = 3

Arrays = list[Any]


class Late(Exception):
    """A run took too long."""


@contextmanager
def limit(seconds: int = SECONDS) -> Iterator[None]:
    """Raise `Late` after so many seconds."""

    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "pred": np.bool_,
}


def dtype_of(element: str) -> Any:
    """NumPy's dtype of an HLO element type.

    Raises:
        KeyError: the families draw no such type.
    """
    if element[0] in "su" and element[1:].isdigit():
        return np.dtype(f"{'int' if element[0] == 's' else 'uint'}{element[1:]}").type
    return _DTYPES[element]


@dataclass(frozen=True)
class Parameter:
    """An argument as the text declares it, with what the family says of it."""

    kind: str
    dims: tuple[int, ...]
    element: str
    limit: int
    replicated: bool


def parameters_of(text: Text, arguments: list[list[Any]]) -> list[Parameter]:
    """The entry's parameters in their order."""
    places = sorted((p for p in text.of("parameter") if p.entry), key=lambda p: int(p.line.operands[0]))
    return [
        Parameter(kind, p.line.dims, p.line.type, int(limit), "replicated" in p.line.attributes)
        for p, (kind, _, _, limit) in zip(places, arguments, strict=True)
    ]


@dataclass(frozen=True)
class Style:
    """How a set is drawn.

    Attributes:
        name: in words.
        scale: of floats.
        whole: floats are small whole numbers (or halves).
        odd: sprinkled among floats.
        positions: `in`, `beyond`.
        counts: what counters are.
        wide: integers have all their bits.
        spread: floats are of all magnitudes.
    """

    name: str
    scale: float = 1.0
    whole: bool = False
    odd: tuple[float, ...] = ()
    positions: str = "in"
    counts: int = 3
    wide: bool = False
    spread: bool = False


STYLES = (
    Style("plain"),
    Style("plain 2", scale=3.0, counts=7),
    Style("whole numbers", scale=2.0, whole=True, counts=5),
    Style("whole numbers beyond", scale=3.0, whole=True, positions="beyond", counts=-3),
    Style("wide", scale=100.0, wide=True, positions="beyond", counts=40),
    Style("halves", scale=4.0, whole=True, wide=True, counts=1),
    Style("zeros", scale=0.0, counts=0),
    Style("magnitudes", spread=True, wide=True, counts=130),
    Style("large", scale=1e4, counts=300),
    Style("huge", scale=3e33, counts=2),
    Style("small", scale=1e-5),
    Style("tiny", scale=1e-9),
    Style("NaN", odd=(np.nan,), positions="beyond"),
    Style("signed zeros", scale=1.0, whole=True, odd=(-0.0,)),
    Style("infinity", odd=(np.inf, -np.inf)),
    Style("few", scale=1.0, whole=True, counts=16),
    Style("alike", scale=-1.0, whole=True, counts=20),
    Style("wide 2", scale=30.0, wide=True, positions="beyond", counts=33),
    Style("whole numbers 3", scale=1.0, whole=True, wide=True, positions="beyond", counts=21),
)


def draw(parameter: Parameter, style: Style, rng: np.random.Generator) -> Any:
    """An array for a parameter."""
    dims, dtype = parameter.dims, dtype_of(parameter.element)
    if parameter.element == "pred":
        return rng.random(dims) < 0.6
    if parameter.kind == "count":
        count = style.counts
        if parameter.element.startswith("u"):
            count = abs(count)
        return np.asarray(min(count, 250) if parameter.element in ("u8", "s8") else count, dtype)
    if parameter.kind == "index":
        n = parameter.limit
        values = (
            rng.integers(0, n, dims) if style.positions == "in" else rng.integers(-2 * n, 2 * n + 1, dims)
        )
        return np.asarray(np.abs(values) if parameter.element.startswith("u") else values, dtype)
    if parameter.kind == "int":
        info = np.iinfo(dtype)
        if style.wide:
            values = rng.integers(info.min, info.max, dims, dtype=dtype, endpoint=True)
            return np.asarray(np.where(rng.random(dims) < 0.15, info.min, values), dtype)
        return np.asarray(rng.integers(0 if info.min == 0 else -9, 10, dims), dtype)
    if style.whole:
        top = int(abs(style.scale)) or 1
        values = (
            np.full(dims, float(rng.integers(-2, 3)))
            if style.scale < 0
            else rng.integers(-top, top + 1, dims).astype(float)
        )
        values = values / 2 if style.wide else values
    elif style.spread:
        values = rng.normal(size=dims) * 10.0 ** rng.uniform(-6, 5, dims)
    else:
        values = rng.normal(size=dims) * style.scale
    values = np.asarray(values, np.float64)
    if parameter.kind == "positive":
        values = np.abs(values) + (0 if style.scale == 0 else 0.5 if style.whole else 0.01 * abs(style.scale))
    if style.odd:
        values = np.where(rng.random(dims) < 0.2, rng.choice(np.array(style.odd), dims), values)
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype)


def nudged(values: Arrays, rng: np.random.Generator) -> Arrays:
    """Floats a unit in the last place off, at random; nested by device as given."""
    out: Arrays = []
    for value in values:
        if isinstance(value, list):
            out.append(nudged(value, rng))
        elif value.dtype.kind == "f" or value.dtype == ml_dtypes.bfloat16:
            eps = float(ml_dtypes.finfo(value.dtype).eps)
            with np.errstate(all="ignore"):
                out.append(
                    np.asarray(
                        value.astype(np.float64) * (1 + eps * rng.choice([-1.0, 0.0, 1.0], value.shape)),
                        value.dtype,
                    )
                )
        else:
            out.append(value)
    return out


@dataclass
class Run:
    """A right program on one set: its results, and how far rounding takes them (`None`: not usable)."""

    style: Style
    inputs: Arrays
    results: Arrays
    spreads: Arrays = field(default_factory=list)


def execute(module: Any, inputs: Arrays, devices: int) -> Arrays:
    """Results as arrays of f64 or integers, over all devices.

    Raises:
        Late: it took too long.
    """
    with limit(), np.errstate(all="ignore"):
        if devices > 1:
            found = [leaf for each in hlotool.run(module, inputs, partitions=devices) for leaf in each]
        else:
            found = hlotool.run(module, inputs)
    return [_wide(leaf) for leaf in found]


def _wide(leaf: Any) -> Any:
    leaf = np.asarray(leaf)
    if leaf.dtype.kind in "biu":
        return leaf
    return leaf.astype(np.complex128 if leaf.dtype.kind == "c" else np.float64)


def sets_of(text: Text, arguments: list[list[Any]], devices: int, name: str) -> list[tuple[Style, Arrays]]:
    """All sets for a program; for several devices a list of inputs for each."""
    parameters = parameters_of(text, arguments)
    out = []
    for number, style in enumerate(STYLES):
        rng = np.random.default_rng(zlib.crc32(f"{name}:{number}".encode()))
        inputs = [draw(p, style, rng) for p in parameters]
        if devices > 1:
            inputs = [
                [x if p.replicated else draw(p, style, rng) for p, x in zip(parameters, inputs, strict=True)]
                for _ in range(devices)
            ]
        out.append((style, inputs))
    return out


def right_runs(module: Any, sets: list[tuple[Style, Arrays]], devices: int, other: Any) -> list[Run]:
    """Results and spreads of a right program, on the sets on which another right text (or `None`) agrees."""
    out = []
    for style, inputs in sets:
        try:
            results = execute(module, inputs, devices)
            spreads = [_ulp(leaf) for leaf in results]
            if other is not None:
                for k, (leaf, second) in enumerate(zip(results, execute(other, inputs, 1), strict=True)):
                    if _odd_mismatch(leaf, second) or (leaf.dtype.kind in "biu" and (leaf != second).any()):
                        raise Late
                    if leaf.dtype.kind not in "biu":
                        spreads[k] = spreads[k] + _apart(leaf, second)
            rng = np.random.default_rng(7)
            for _ in range(3):
                for k, leaf in enumerate(execute(module, nudged(inputs, rng), devices)):
                    if leaf.dtype.kind in "biu":
                        spreads[k] = np.maximum(spreads[k], (leaf != results[k]).astype(float))
                    else:
                        spreads[k] = np.maximum(spreads[k], _apart(results[k], leaf))
        except (Late, hlotool.errors.HlotoolError, OverflowError):
            continue
        out.append(Run(style, inputs, results, spreads))
    return out


def _ulp(leaf: Any) -> Any:
    """Two units in the last place of f32 of each element, and half a unit of the largest one of all."""
    if leaf.dtype.kind in "biu":
        return np.zeros(leaf.shape)
    size = np.nan_to_num(np.abs(leaf), nan=0.0, posinf=0.0)
    return size * 2.0**-22 + np.max(size, initial=0.0) * 2.0**-24


def _apart(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(np.where(a == b, 0, a - b)), nan=np.inf, posinf=np.inf)


def _odd_mismatch(a: Any, b: Any) -> bool:
    if a.dtype.kind in "biu":
        return False
    with np.errstate(all="ignore"):
        return bool((np.isnan(a) != np.isnan(b)).any() or (np.isinf(a) != np.isinf(b)).any())


def shown(run: Run, faulty: Arrays, *, exact: bool) -> list[int]:
    """Outputs that are off by more than rounding.

    Args:
        run: of the right program.
        faulty: results of the faulty one.
        exact: the fault shows on whole numbers, where a tie that a nudge breaks counts all the same.
    """
    found = []
    for k, (right, wrong, spread) in enumerate(zip(run.results, faulty, run.spreads, strict=True)):
        if right.shape != wrong.shape:
            found.append(k)
            continue
        if exact and run.style.whole:
            spread = _ulp(right)
        if right.dtype.kind in "biu":
            off = (right != wrong) & (spread == 0)
        else:
            # An infinite spread: a nudge makes NaN or infinity come and go there, and nothing counts.
            usable = np.isfinite(spread)
            odd = (np.isnan(right) != np.isnan(wrong)) | (
                (np.isinf(right) != np.isinf(wrong)) & ~np.isnan(right)
            )
            off = usable & (odd | (_apart(right, wrong) > FACTOR * spread))
            off &= ~(np.isnan(right) & np.isnan(wrong))
        if off.any():
            found.append(k)
    return found
