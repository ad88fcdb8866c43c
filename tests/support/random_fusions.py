"""Seeded random fusions of all operations that kernels know, and of all element types.

By default results are the same to the bit wherever arithmetic rounds correctly; with functions of other
libraries (exp, complex division, …) they are as far apart as `Value.ulps` of the last value says.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np

from hlotool.facts.float_order import ulp_distance
from hlotool.ir.arrays import DTYPES, Array, integer_limits
from hlotool.ir.types import ELEMENT_TYPES, ElementType
from support.fusion_library import INEXACT_STEPS, LIBRARY_STEPS
from support.fusion_steps import MOVEMENT_STEPS, STEPS
from support.fusion_text import Fusion, Value, ints, shape

__all__ = ["Fusion", "Value", "arguments_of", "ints", "mismatches", "module_of", "random_fusion", "shape"]

#: The more often, the more programs use it.
_WEIGHTED = (
    "f32 f32 f32 bf16 bf16 f16 f64 s32 s32 u32 s64 u64 s8 u8 s16 u16 s4 u4 s2 u2 s1 u1 pred f8e4m3fn f8e5m2 "
    "f8e3m4 f8e4m3fnuz f8e5m2fnuz f8e4m3b11fnuz f8e4m3 f8e8m0fnu f4e2m1fn c64 c128"
)
TYPES = tuple(_WEIGHTED.split())

#: Largest array of a fusion.
_LIMIT = 40_000


def random_fusion(seed: int, functions: bool = False) -> Fusion:
    """A computation of a dozen operations whose last value is the result.

    Args:
        seed: equal ones make equal fusions.
        functions: functions whose results differ between libraries are among the operations.
    """
    rng = random.Random(f"functions {seed}" if functions else seed)
    fusion = Fusion(rng, seed + 1_000_000 * functions)
    dims = tuple(rng.choice([1, 2, 3, 4, 5, 8, 16, 33, 40]) for _ in range(rng.choice([1, 2, 2, 3])))
    fusion.parameter(rng.choice(TYPES), dims)
    for _ in range(rng.randint(3, 12)):
        _step(fusion, functions)
    last = fusion.values[-1]
    if last in fusion.parameters:
        fusion.add(last.kind, last.dims, f"copy({last.name})")
    return fusion


def _step(fusion: Fusion, functions: bool) -> None:
    """One more operation; taken back where its result is too large, or empty."""
    rng = fusion.rng
    lists: tuple[list[Any], ...] = (fusion.lines, fusion.values, fusion.parameters, fusion.helpers)
    before = [len(items) for items in lists]
    x = rng.choice(fusion.values[-3:])
    kinds = [STEPS, STEPS, LIBRARY_STEPS, *([INEXACT_STEPS] * 3 if functions else [])]
    rng.choice(rng.choice(kinds) if x.is_exact else MOVEMENT_STEPS)(fusion, x)
    if not 0 < prod(fusion.values[-1].dims) <= _LIMIT:
        for items, length in zip(lists, before):
            del items[length:]


def module_of(fusions: list[Fusion]) -> str:
    """A program that runs the fusions one after the other and returns all results.

    Some fusions return a second value; these follow behind the results of all.
    """
    texts, entry, results, others = [], [], [], []
    count = 0
    for number, fusion in enumerate(fusions):
        names = []
        for parameter in fusion.parameters:
            entry.append(f"  p{count} = {parameter.shape} parameter({count})")
            names.append(f"p{count}")
            count += 1
        root, second = fusion.values[-1], _second(fusion)
        called = f"fusion({', '.join(names)}), kind=kLoop, calls=fused{fusion.number}"
        lines = list(fusion.lines)
        if second is None:
            entry.append(f"  r{number} = {root.shape} {called}")
        else:
            pair = f"({root.shape}, {second.shape})"
            lines.append(f"pair = {pair} tuple({root.name}, {second.name})")
            entry.append(f"  pair{number} = {pair} {called}")
            for index, value in enumerate((root, second)):
                taken = f"{value.shape} get-tuple-element(pair{number}), index={index}"
                entry.append(f"  {('r', 'second')[index]}{number} = {taken}")
            others.append((f"second{number}", second.shape))
        results.append((f"r{number}", root.shape))
        name = root.name if second is None else "pair"
        body = "\n".join(f"  {'ROOT ' if line.startswith(name + ' =') else ''}{line}" for line in lines)
        texts += [*fusion.helpers, f"fused{fusion.number} {{\n{body}\n}}\n"]
    everything = [*results, *others]
    shapes, names_ = ", ".join(s for _, s in everything), ", ".join(n for n, _ in everything)
    entry.append(f"  ROOT result = ({shapes}) tuple({names_})")
    return "HloModule fusions\n\n" + "".join(texts) + "ENTRY main {\n" + "\n".join(entry) + "\n}\n"


def _second(fusion: Fusion) -> Value | None:
    """Of every fourth fusion another value that is not a parameter, given out, too."""
    found = [v for v in fusion.values[:-1] if v not in fusion.parameters]
    return found[-1] if found and fusion.number % 4 == 0 else None


def results_of(fusions: list[Fusion]) -> list[Value]:
    """What the program of `module_of` returns, in this order."""
    seconds = (_second(fusion) for fusion in fusions)
    return [*(fusion.values[-1] for fusion in fusions), *(value for value in seconds if value is not None)]


def mismatches(fusions: list[Fusion], ours: list[Array], theirs: list[Array]) -> dict[str, int]:
    """Elements farther apart than they may be, by number of the fusion and name of the value."""
    seconds = [fusion for fusion in fusions if _second(fusion) is not None]
    found = {}
    for fusion, value, a, b in zip([*fusions, *seconds], results_of(fusions), ours, theirs, strict=True):
        if count := int((~close(a, b, value)).sum()):
            found[f"{fusion.number} {value.name}"] = count
    return found


@np.errstate(all="ignore")
def close(a: Array, b: Array, value: Value) -> Array:
    """Where two results are as near to each other as they have to be."""
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    a, b = (np.ascontiguousarray(x).reshape(-1) for x in (a, b))
    nan = (a != a) & (b != b)
    raw = [x.view(np.uint8).reshape(x.size, -1) for x in (a, b)]
    same: Array = (raw[0] == raw[1]).all(axis=1) | nan
    kind = ELEMENT_TYPES[value.kind]
    if value.is_exact or not kind.is_inexact:
        return same
    wide = np.complex128 if kind.is_complex else np.float64
    distance, size = np.abs(a.astype(wide) - b.astype(wide)), np.abs(b.astype(wide))
    near = distance <= value.absolute
    if kind.is_complex:
        # The larger part has so many digits, not each of them; parts of infinities may be anything.
        infinite = [np.isinf(x.real) | np.isinf(x.imag) for x in (a, b)]
        near |= distance <= value.ulps * float(np.finfo(a.dtype).eps) * size
        near |= (infinite[0] & infinite[1]) | (np.isnan(a) & np.isnan(b))
    else:
        near |= (ulp_distance(a, b, kind) <= value.ulps) & (a == a) & (b == b)
    result: Array = same | near
    return result


def arguments_of(fusions: list[Fusion], seed: int) -> list[Any]:
    """Values of all parameters: small numbers, among them zeros, NaN and infinities."""
    rng = np.random.default_rng(seed)
    return [_argument(rng, parameter) for fusion in fusions for parameter in fusion.parameters]


def _argument(rng: np.random.Generator, parameter: Value) -> Any:
    kind, dims = ELEMENT_TYPES[parameter.kind], parameter.dims
    if kind.is_inexact:
        return _floats(rng, kind, dims, parameter.domain)
    low, high = integer_limits(kind)
    if rng.random() < 0.6:
        low, high = max(low, -12), min(high, 12)
    dtype = np.uint64 if low >= 0 else np.int64
    return np.asarray(rng.integers(low, high, dims, dtype, endpoint=True)).astype(DTYPES[kind])


def _floats(rng: np.random.Generator, kind: ElementType, dims: tuple[int, ...], domain: str) -> Any:
    is_positive = kind is ElementType.F8E8M0FNU
    if domain == "whole":
        wide = rng.integers(1, 4, dims) * (1 if is_positive else rng.choice([-1, 1], dims))
    else:
        wide = rng.standard_normal(dims) * (1 if domain == "finite" else 3)
    if kind.is_complex:
        wide = wide + 1j * (rng.integers(1, 4, dims) if domain == "whole" else rng.standard_normal(dims))
    wide = np.abs(wide) if is_positive else wide
    if domain == "any":
        special = rng.choice([0.0, -0.0, np.nan, np.inf, 1.0, 0.5], dims)
        wide = np.where(rng.random(dims) < 0.2, special, wide)
    with np.errstate(all="ignore"):
        return np.asarray(wide).astype(DTYPES[kind])
