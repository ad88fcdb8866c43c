"""Bits read as other types, and numbers rounded to fewer bits, of all types, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.differential import leaves
from support.kernels import differing, emulator, needs_compiler, on_numpy
from support.random_fusions import shape

from hlotool.ir.arrays import DTYPES, integer_limits
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

_QUICK = ("u4", "s8", "bf16", "f32", "c64")
_TYPES = tuple(name for name in ELEMENT_TYPES if name != "pred")


def _any_bits(name: str, count: int) -> Any:
    kind, rng = ELEMENT_TYPES[name], np.random.default_rng(0)
    if kind.value_bits >= 8:
        return rng.integers(0, 256, count * kind.bits // 8, np.uint8).view(DTYPES[kind])
    if not kind.is_integer:
        return rng.integers(0, 1 << kind.value_bits, count, np.uint8).view(DTYPES[kind])
    low, high = integer_limits(kind)
    return rng.integers(low, high, count, np.int8, endpoint=True).astype(DTYPES[kind])


def _check(types: tuple[str, ...], count: int, operations: list[tuple[str, str]]) -> None:
    """Instructions on parameters that are called as their types, against the reference."""
    lines = [f"p_{name} = {name}[{count}] parameter({n})" for n, name in enumerate(types)]
    lines += [f"v{n} = {result} {text}" for n, (result, text) in enumerate(operations)]
    shapes = ", ".join(result for result, _ in operations)
    names = ", ".join(f"v{n}" for n in range(len(operations)))
    body = "\n".join([*lines, f"ROOT r = ({shapes}) tuple({names})"])
    module = parse_module(f"HloModule bits\nENTRY main {{\n{body}\n}}\n")
    arguments = [_any_bits(name, count) for name in types]
    executable = emulator().compile(module)
    assert executable.notes == ()
    results = zip(operations, leaves(executable.run(arguments)), on_numpy(module, arguments))
    assert {operation: n for operation, a, b in results if (n := differing(np.asarray(a), b))} == {}


@pytest.mark.parametrize("types", [_QUICK, pytest.param(_TYPES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_bitcast_convert(types: tuple[str, ...]) -> None:
    count, operations = 256, []
    for source in types:
        for target in types:
            old, new = ELEMENT_TYPES[source].bits, ELEMENT_TYPES[target].bits
            operand = f"p_{source}"
            if old < new:
                split = shape(source, (count * old // new, new // old))
                operations.append((split, f"reshape({operand})"))
                operand = f"v{len(operations) - 1}"
            dims = (count, old // new) if old > new else (count * old // new,)
            operations.append((shape(target, dims), f"bitcast-convert({operand})"))
    _check(types, count, operations)


@pytest.mark.parametrize("types", [_QUICK, pytest.param(_TYPES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_reduce_precision(types: tuple[str, ...]) -> None:
    floats = tuple(name for name in types if ELEMENT_TYPES[name].is_floating)
    formats = [(5, 10), (8, 7), (4, 3), (5, 2), (2, 1), (8, 1), (11, 52), (3, 5), (6, 20)]
    operations = [
        (f"{name}[2048]", f"reduce-precision(p_{name}), exponent_bits={e}, mantissa_bits={m}")
        for name in floats
        for e, m in formats
    ]
    _check(floats, 2048, operations)
