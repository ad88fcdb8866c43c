"""Indices of 64 bits where 32 are too few, and the same results by either."""

from __future__ import annotations

import numpy as np
import pytest
from support.gpu_kernels import kernels_of
from support.kernel_fuzz import KINDS, fuzz_program
from support.kernels import differing, needs_compiler, on_kernels

from hlotool.backends.cuda.codegen import schedules
from hlotool.parser.reader import parse_module

_PROGRAM = """HloModule large
add {{
  a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT r = s8[] add(a, b)
}}
ENTRY main {{
  x = s8[{rows},{columns}] parameter(0)
  zero = s8[] constant(0)
  ROOT r = {result}
}}
"""
_RESULTS = {
    "loop": "s8[{rows},{columns}] negate(x)",
    "rows": "s8[{rows}] reduce(x, zero), dimensions={{1}}, to_apply=add",
    "columns": "s8[{columns}] reduce(x, zero), dimensions={{0}}, to_apply=add",
    "all": "s8[] reduce(x, zero), dimensions={{0,1}}, to_apply=add",
    "transposition": "s8[{columns},{rows}] transpose(x), dimensions={{1,0}}",
}


def _index_types(result: str, rows: int, columns: int) -> set[str]:
    """The types of the indices in the kernels that read the large array."""
    sizes = {"rows": rows, "columns": columns}
    module = parse_module(_PROGRAM.format(result=_RESULTS[result].format(**sizes), **sizes))
    first = kernels_of(module)[0]
    return {name for name in ("int", "i64") if f"typedef {name} Index;" in first.source}


@needs_compiler
@pytest.mark.parametrize("result", _RESULTS)
def test_indices_have_64_bits_where_they_must(result: str) -> None:
    assert _index_types(result, 40, 1000) == {"int"}
    assert _index_types(result, 1 << 10, 1 << 21) == {"i64"}
    # 32 bits hold every position, but not the step that ends a loop.
    assert _index_types(result, 3, 715_827_882) == {"i64"}


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "count"), [(0, 4), *(pytest.param(n, 12, marks=pytest.mark.slow) for n in range(4, 240, 12))]
)
def test_results_do_not_depend_on_the_index(
    first: int, count: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, arguments = fuzz_program(kind, first, count)
    narrow = on_kernels(module, arguments)
    monkeypatch.setattr(schedules, "LARGEST_INT", 0)
    wide = on_kernels(module, arguments)
    assert [differing(a, b) for a, b in zip(narrow, wide)] == [0] * len(narrow)


@needs_compiler
@pytest.mark.slow
def test_positions_beyond_32_bits() -> None:
    size = (1 << 31) + 77
    entry = f"x = s8[{size}] parameter(0)\n  ROOT r = s8[{size}] negate(x)"
    module = parse_module(f"HloModule beyond\nENTRY main {{\n  {entry}\n}}\n")
    x = np.zeros(size, np.int8)
    x[[0, 1 << 30, (1 << 31) - 1, 1 << 31, size - 1]] = [1, 2, 3, 4, 5]
    (result,) = on_kernels(module, [x])
    places = np.flatnonzero(result)
    np.testing.assert_array_equal(places, np.flatnonzero(x))
    np.testing.assert_array_equal(result[places], [-1, -2, -3, -4, -5])
