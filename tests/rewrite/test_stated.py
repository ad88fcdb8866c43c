"""Positions that constants state elsewhere than in masks: rows, starts, limits of indices, and doubts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import Scaled, scaled


def program(lines: str, parameters: str = "x = f32[4096,300] parameter(0)") -> str:
    return f"HloModule m\nENTRY e {{\n  {parameters}\n  {lines}\n}}"


def row(number: int) -> str:
    """`x[[number]]` as JAX writes it: a negative index has the number of rows added to it."""
    return program(f"""i = s32[1] constant({{{number}}})
  zero = s32[1] constant({{0}})
  rows = s32[1] constant({{4096}})
  p = pred[1] compare(i, zero), direction=LT
  w = s32[1] add(i, rows)
  s = s32[1] select(p, w, i)
  j = s32[1,1] reshape(s)
  ROOT g = f32[1,300] gather(x, j), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,300}}""")


def cut(first: int, last: int) -> str:
    """`x[first:last]`."""
    return program(f"ROOT s = f32[{last - first},300] slice(x), slice={{[{first}:{last}], [0:300]}}")


def taken(start: int, count: int) -> str:
    """`count` rows from `start` on."""
    return program(f"""i = s32[] constant({start})
  z = s32[] constant(0)
  ROOT d = f32[{count},300] dynamic-slice(x, i, z), dynamic_slice_sizes={{{count},300}}""")


def rows(*numbers: int) -> str:
    """Rows of a table."""
    listed = ", ".join(f"{{{number}}}" for number in numbers)
    return program(f"""i = s32[{len(numbers)},1] constant({{{listed}}})
  ROOT g = f32[{len(numbers)},300] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,300}}""")


def below(condition: str) -> str:
    """Rows for which something is true stay, others become zero."""
    return program(f"""i = s32[4096,300] iota(), iota_dimension=0
  {condition}
  z = f32[] constant(0)
  zs = f32[4096,300] broadcast(z), dimensions={{}}
  ROOT r = f32[4096,300] select(p, x, zs)""")


#: Five is added to each row.
MOVED = "f = s32[] constant(5) fs = s32[4096,300] broadcast(f), dimensions={} m = s32[4096,300] add(i, fs)"
#: And each row taken twice.
DOUBLED = (
    "t = s32[] constant(2) ts = s32[4096,300] broadcast(t), dimensions={} d = s32[4096,300] multiply(i, ts)"
)


def compared(constant: int, before: str = "", counted: str = "i", direction: str = "LT") -> str:
    return below(f"""c = s32[] constant({constant})
  b = s32[4096,300] broadcast(c), dimensions={{}}
  {before}
  p = pred[4096,300] compare({counted}, b), direction={direction}""")


def plan(*texts: str, memory: float = 4 << 20) -> Scaled:
    programs = {str(number): parse_module(text) for number, text in enumerate(texts)}
    found = scaled(programs, "auto", Limits(memory, 1e9))
    assert found is not None
    return found


def size_of(found: Scaled) -> int:
    return found.programs["0"].entry.parameters[0].array_shape.dims[0]


def results(found: Scaled, *more: Any) -> Sequence[Any]:
    shape = found.programs["0"].entry.parameters[0].dims
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return [run(module, x, *more) for module in found.programs.values()]


def run(module: Module, *arguments: Any) -> Any:
    return NumpyBackend().compile(module).run(arguments)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (row(1045), cut(1045, 1046)),
        (row(-51), cut(4045, 4046)),
        (taken(1045, 10), cut(1045, 1055)),
        (taken(4090, 10), cut(4086, 4096)),  # as far as it goes
        (rows(1045), cut(1045, 1046)),
        (compared(45), compared(50, MOVED, "m")),
        (compared(45), compared(-5, MOVED.replace("(5)", "(-50)"), "m")),
        (compared(45), compared(44, direction="LE")),
        (compared(45), compared(45).replace("s32[", "f32[")),
    ],
    ids=["row", "from the end", "slice", "last slice", "table", "moved", "moved back", "inclusive", "float"],
)  # fmt: skip
def test_the_same_in_another_form_is_the_same(one: str, other: str) -> None:
    found = plan(one, other)
    assert size_of(found) < 4096
    np.testing.assert_array_equal(*results(found))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (row(1045), cut(1046, 1047)),
        (row(1045), row(1044)),
        (row(-51), cut(4044, 4045)),
        (taken(1045, 10), cut(1044, 1054)),
        (taken(1045, 10), taken(1046, 10)),
        (rows(3, 45, 99), rows(3, 46, 99)),
        (compared(45), compared(45, direction="LE")),
        (compared(4000), compared(3999)),
    ],
    ids=["row", "rows", "row from the end", "slice", "starts", "table", "direction", "masks"],
)
def test_one_off_is_seen(one: str, other: str) -> None:
    found = plan(one, other)
    assert size_of(found) < 4096
    expected, actual = results(found)
    assert not np.array_equal(expected, actual)


def test_a_table_keeps_its_other_rows() -> None:
    found = plan(rows(3, 45, 99), rows(3, 46, 99))
    expected, actual = results(found)
    assert (expected == actual).all(axis=1).tolist() == [True, False, True]


MERGED = """HloModule m
ENTRY e {
  x = f32[64,64,30] parameter(0)
  f = f32[4096,30] reshape(x)
  ROOT r = f32[4096,30] negate(f)
}"""


@pytest.mark.parametrize("position", [1, 63, 64, 1045, 4095])
def test_a_place_within_a_row_of_what_was_reshaped(position: int) -> None:
    """1045 of 64 * 64 is row 16, column 21; one element goes wrong there, and one does scaled."""
    wrong = MERGED.replace("ROOT r", "n").replace("\n}", f"""
  i = s32[4096,30] iota(), iota_dimension=0
  c = s32[] constant({position})
  b = s32[4096,30] broadcast(c), dimensions={{}}
  p = pred[4096,30] compare(i, b), direction=EQ
  ROOT r = f32[4096,30] select(p, f, n)
}}""")  # fmt: skip
    found = plan(MERGED, wrong, memory=400 << 10)
    shape = found.programs["0"].entry.parameters[0].dims
    assert shape[0] < 64
    assert shape[1] < 64
    expected, actual = results(found)
    assert len(np.flatnonzero((expected != actual).any(axis=1))) == 1


def test_a_mask_in_a_form_that_nobody_understands_keeps_the_dimension() -> None:
    """Twice the row is below 90: that is the row below 45, which is all that the other one says."""
    doubled = compared(90, DOUBLED, "d")
    found = plan(doubled, compared(45), memory=20 << 20)
    assert size_of(found) == 4096
    assert any("a position in it, in one program only" in stay.why for stay in found.record.stay)
    np.testing.assert_array_equal(*results(found))


LOOKUP = """s = s32[7] {index}
  j = s32[7,1] reshape(s)
  ROOT g = f32[7,300] gather(x, j), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,300}}"""
BOTH = "x = f32[4096,300] parameter(0) k = s32[7] parameter(1)"


def clamped(last: int) -> str:
    limits = f"a = s32[] constant(3) b = s32[] constant({last})\n  "
    return program(limits + LOOKUP.format(index="clamp(a, k, b)"), BOTH)


def test_a_limit_of_an_index_follows_in_both() -> None:
    found = plan(clamped(4000), clamped(4000))
    size = size_of(found)
    expected, actual = results(found, np.arange(size - 7, size, dtype=np.int32))
    np.testing.assert_array_equal(expected, actual)
    constants = [i.literal.array.item() for i in found.programs["0"].instructions() if i.literal is not None]
    assert max(constants) < size


def test_a_limit_of_an_index_that_is_one_off_is_seen() -> None:
    found = plan(clamped(4000), clamped(4001))
    size = size_of(found)
    expected, actual = results(found, np.arange(size - 7, size, dtype=np.int32))
    assert not np.array_equal(expected, actual)


@pytest.mark.parametrize(("last", "unseen"), [(4000, []), (4001, ["clamp %s (line 5): 4000 of 4096"])])
def test_a_limit_of_what_is_no_index_as_far_as_is_known_is_reported(last: int, unseen: list[str]) -> None:
    """The one program clamps what it looks up; the other one clamps it, and adds a parameter: nobody sees
    that this is an index, and neither limit follows. It is reported where the other one does not have it."""
    parameters = BOTH + " o = s32[7] parameter(2)"
    one = clamped(4000).replace(BOTH, parameters)
    index = "add(c, o)"
    lines = f"a = s32[] constant(3) b = s32[] constant({last}) c = s32[7] clamp(a, k, b)\n  "
    other = program(lines + LOOKUP.format(index=index), parameters)
    found = plan(one, other)
    size = size_of(found)
    assert size < 4096
    zeros = np.zeros(7, np.int32)
    np.testing.assert_array_equal(*results(found, np.arange(size - 7, size, dtype=np.int32), zeros))
    assert found.record.unseen == unseen


def test_an_index_that_is_computed_twice_is_an_index_in_both() -> None:
    """Compilers compute again what they need elsewhere; the limit is that of the same index."""
    test = """p = pred[7] compare(k, b), direction=LE
  f = f32[7] convert(p)
  fs = f32[7,300] broadcast(f), dimensions={{0}}
  ROOT r = f32[7,300] multiply(g, fs)"""
    limit = "\n  c = s32[] constant(4000)\n  b = s32[7] broadcast(c), dimensions={{}}\n  "
    lookup = LOOKUP.replace("ROOT g", "g") + limit
    once = program(lookup.format(index="copy(k)") + test.format(), BOTH)
    again = test.replace("compare(k", "compare(h").format()
    twice = program("h = s32[7] copy(k)\n  " + lookup.format(index="copy(h)") + again, BOTH)
    found = plan(once, twice)
    size = size_of(found)
    np.testing.assert_array_equal(*results(found, np.arange(size - 7, size, dtype=np.int32)))


def test_rows_of_two_tables() -> None:
    """The same numbers are rows of both: what lies before them is the same in both."""
    parameters = "x = f32[4096,300] parameter(0) y = f32[900,300] parameter(1)"
    gather = """offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,300}"""

    def both(first: int) -> str:
        lines = f"""i = s32[2,1] constant({{{{{first}}}, {{99}}}})
  a = f32[2,300] gather(x, i), {gather}
  b = f32[2,300] gather(y, i), {gather}
  ROOT r = f32[2,300] subtract(a, b)"""
        return program(lines, parameters)

    same, other = plan(both(45), both(45), memory=6 << 20), plan(both(45), both(46), memory=6 << 20)
    for found in (same, other):
        shape = found.programs["0"].entry.parameters[1].dims
        assert shape[0] < 900
        y = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        expected, actual = results(found, y)
        assert (expected == actual).all(axis=1).tolist() == [found is same, True]


UPDATED = "x = f32[4096,300] parameter(0) u = f32[300] parameter(1) k = s32[] parameter(2)"


def test_a_scatter_that_a_compiler_expands_has_its_limits_in_a_table() -> None:
    """XLA's CPU compiler writes an update where an index is inside, which it asks a vector of limits."""
    before = program(
        """i = s32[1] reshape(k)
  ROOT s = f32[4096,300] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=second""",
        UPDATED,
    ).replace(
        "ENTRY",
        "second {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\nENTRY",
    )
    after = program(
        """z = s32[1] constant({0}) zero = s32[] constant(0) i = s32[1] reshape(k)
  v = s32[2] concatenate(i, z), dimensions={0}
  limits = s32[2] constant({4095, 0}) zeros = s32[2] broadcast(zero), dimensions={}
  low = pred[2] compare(zeros, v), direction=LE
  high = pred[2] compare(limits, v), direction=GE
  both = pred[2] and(low, high)
  first = pred[1] slice(both), slice={[0:1]} second = pred[1] slice(both), slice={[1:2]}
  inside = pred[1] and(first, second) p = pred[] reshape(inside)
  ps = pred[1,300] broadcast(p), dimensions={}
  old = f32[1,300] dynamic-slice(x, k, zero), dynamic_slice_sizes={1,300}
  new = f32[1,300] reshape(u)
  row = f32[1,300] select(ps, new, old)
  ROOT d = f32[4096,300] dynamic-update-slice(x, row, k, zero)""",
        UPDATED,
    )
    found = plan(before, after)
    size = size_of(found)
    assert size < 4096
    u = np.ones(300, np.float32)
    width = found.programs["0"].entry.parameters[1].dims[0]
    for place in (0, size - 1, size, -1):
        np.testing.assert_array_equal(*results(found, u[:width], np.int32(place)))
    missing = plan(before, after.replace("{4095, 0}", "{4094, 0}"))
    size = size_of(missing)
    width = missing.programs["0"].entry.parameters[1].dims[0]
    expected, actual = results(missing, u[:width], np.int32(size - 1))
    assert not np.array_equal(expected, actual)


def test_starts_in_a_vector_are_those_of_a_slice() -> None:
    """A scatter of one window at [37, 5] is an update there."""
    parameters = "x = f32[4096,300] parameter(0) u = f32[62,195] parameter(1)"
    second = "second {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\nENTRY"
    scatter = """i = s32[2] constant({37, 5})
  ROOT s = f32[4096,300] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=second"""
    update = (
        "i = s32[] constant(37) j = s32[] constant(5) ROOT d = f32[4096,300] dynamic-update-slice(x, u, i, j)"
    )
    before = program(scatter, parameters).replace("ENTRY", second)
    for start, is_same in ((5, True), (6, False)):
        found = plan(before, program(update.replace("(5)", f"({start})"), parameters))
        assert size_of(found) < 4096
        shape = found.programs["0"].entry.parameters[1].dims
        u = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        expected, actual = results(found, u)
        assert np.array_equal(expected, actual) is is_same


def test_rows_from_both_ends() -> None:
    """Some of the rows count from the end in one program, and from the start in the other."""
    wrapped = row(7).replace("s32[1]", "s32[3]").replace("pred[1]", "pred[3]").replace("s32[1,1]", "s32[3,1]")
    wrapped = wrapped.replace("f32[1,300]", "f32[3,300]").replace("{7}", "{-37, 5, 700}")
    for name, number in (("zero", 0), ("rows", 4096)):
        scalar = f"s{number} = s32[] constant({number}) {name} = s32[3] broadcast(s{number}), dimensions={{}}"
        wrapped = wrapped.replace(f"{name} = s32[3] constant({{{number}}})", scalar)
    for last, is_same in ((700, True), (701, False)):
        found = plan(wrapped, rows(4059, 5, last), memory=6 << 20)
        assert size_of(found) < 4096
        expected, actual = results(found)
        assert (expected == actual).all(axis=1).tolist() == [True, True, is_same]


#: Nothing is masked.
ALL = program("ROOT r = f32[4096,300] copy(x)")
#: Everything is.
NOTHING = program("z = f32[] constant(0) ROOT r = f32[4096,300] broadcast(z), dimensions={}")


@pytest.mark.parametrize(
    ("mask", "other"),
    [
        (compared(4095, direction="LE"), ALL),
        (compared(0, direction="GE"), ALL),
        (compared(-7, direction="NE"), ALL),
        (compared(4095, direction="GT"), NOTHING),
        (compared(0), NOTHING),
    ],
    ids=["le last", "ge 0", "ne -7", "gt last", "lt 0"],
)
def test_a_mask_that_is_the_same_everywhere_is_no_position(mask: str, other: str) -> None:
    found = plan(mask, other)
    assert size_of(found) < 200
    np.testing.assert_array_equal(*results(found))


@pytest.mark.parametrize(
    "mask",
    [
        compared(4094, direction="LE"),
        compared(4095),
        compared(1, direction="GE"),
        compared(4095, direction="NE"),
    ],
    ids=["le last but one", "lt last", "ge 1", "ne last"],
)
def test_a_mask_that_leaves_one_row_out_is_a_fault_with_smaller_sizes_too(mask: str) -> None:
    one, other = results(plan(mask, ALL))
    assert np.count_nonzero((one != other).any(axis=1)) == 1
