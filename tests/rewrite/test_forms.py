"""Places that both programs name, in other forms, and whose numbers cannot follow.

Behind the end of a smaller dimension a scatter leaves out what an update moves to where it fits, and a slice
whose place is fixed is somewhere else. So the number must not come to lie there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlotool.backends.base import Executable
from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import Scaled, scaled

ROWS = 4096
_SECOND = "second {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n"


def program(*lines: str, result: str, updates: int = 1) -> str:
    """A program on `x`, and on 22 rows each, of which the last line is the result."""
    parameters = [f"x = f32[{ROWS},300] parameter(0)"]
    parameters += [f"part{n} = f32[22,300] parameter({n + 1})" for n in range(updates)]
    text = "\n  ".join([*parameters, *lines, f"ROOT {result}"])
    return f"HloModule m\n{_SECOND}ENTRY e {{\n  {text}\n}}"


def scattered(index: str, part: str = "part0", into: str = "x", name: str = "r") -> str:
    return f"""{name} = f32[{ROWS},300] scatter({into}, {index}, {part}), update_window_dims={{0,1}},
    inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=second"""


def updated(index: str, part: str = "part0", into: str = "x", name: str = "r") -> str:
    return f"{name} = f32[{ROWS},300] dynamic-update-slice({into}, {part}, {index}, zero)"


ZERO = "zero = s32[] constant(0)"
UPDATE = program("i = s32[] constant(1128)", ZERO, result=updated("i"))


def also_a_value(number: str) -> str:
    """What begins at a place has the number of the place added to it."""
    return f"""value = f32[] convert({number})
  values = f32[22,300] broadcast(value), dimensions={{}}
  sum = f32[22,300] add(part0, values)"""


def at_many(places: int, is_scatter: bool) -> str:
    lines, into = [ZERO], "x"
    for n in range(places):
        place = 1000 + 97 * n
        begin = f"s32[1] constant({{{place}}})" if is_scatter else f"s32[] constant({place})"
        written = (scattered if is_scatter else updated)(f"i{n}", f"part{n}", into, f"r{n}")
        lines += [f"i{n} = {begin}", written]
        into = f"r{n}"
    return program(*lines[:-1], result=lines[-1], updates=places)


def twice(second: str, first: int = 1128) -> str:
    """What is taken at a place, less the same in another form, and the number of the place."""
    return program(
        f"i = s32[] constant({first})",
        ZERO,
        "one = f32[22,300] dynamic-slice(x, i, zero), dynamic_slice_sizes={22,300}",
        f"two = f32[22,300] {second}",
        "rest = f32[22,300] subtract(one, two)",
        also_a_value("i"),
        result="r = f32[22,300] add(rest, sum)",
    )


AGAIN = "dynamic-slice(x, i, zero), dynamic_slice_sizes={22,300}"
PAIRS = {
    "a place": (program("i = s32[1] constant({1128})", result=scattered("i")), UPDATE),
    "a place that is a value, too": (
        program(
            "i = s32[1] constant({1128})",
            "n = s32[] reshape(i)",
            also_a_value("n"),
            result=scattered("i", "sum"),
        ),
        program("i = s32[] constant(1128)", ZERO, also_a_value("i"), result=updated("i", "sum")),
    ),
    "that in one program": (
        program(
            "i = s32[1] constant({1128})",
            "n = s32[] constant(1128)",
            also_a_value("n"),
            result=scattered("i", "sum"),
        ),
        program("i = s32[] constant(1128)", ZERO, also_a_value("i"), result=updated("i", "sum")),
    ),
    "a sum": (
        program(
            "a = s32[1] constant({1100})",
            "b = s32[1] constant({28})",
            "i = s32[1] add(a, b)",
            result=scattered("i"),
        ),
        UPDATE,
    ),
    "an element": (
        program(
            "a = s32[3] constant({5, 1128, 9})", "i = s32[1] slice(a), slice={[1:2]}", result=scattered("i")
        ),
        UPDATE,
    ),
    "nine places": (at_many(9, True), at_many(9, False)),
    "a slice": (twice(AGAIN), twice("slice(x), slice={[1128:1150], [0:300]}")),
}


def plan(*texts: str) -> Scaled:
    found = scaled({str(n): parse_module(text) for n, text in enumerate(texts)}, "auto", Limits(5 << 20, 1e9))
    assert found is not None
    return found


def results(found: Scaled) -> list[Any]:
    rng = np.random.default_rng(0)
    first = next(iter(found.programs.values()))
    arguments = [
        rng.standard_normal(parameter.dims).astype(np.float32) for parameter in first.entry.parameters
    ]
    return [_on_one_device(module).run(arguments) for module in found.programs.values()]


def _on_one_device(module: Module) -> Executable:
    """Every device does the same here."""
    module.attributes = {name: one for name, one in module.attributes.items() if name != "num_partitions"}
    return NumpyBackend().compile(module)


def rows_of(found: Scaled) -> int:
    return found.programs["0"].entry.parameters[0].array_shape.dims[0]


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_other_forms_are_the_same_with_smaller_sizes(before: str, after: str) -> None:
    found = plan(before, after)
    np.testing.assert_array_equal(*results(found))


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_places_that_all_of_several_devices_have(before: str, after: str) -> None:
    """There they follow nothing: it is not known on which of the devices they are."""
    found = plan(*(text.replace("HloModule m", "HloModule m, num_partitions=2") for text in (before, after)))
    np.testing.assert_array_equal(*results(found))


@pytest.mark.parametrize("name", PAIRS)
def test_one_row_too_late_is_seen(name: str) -> None:
    before, after = PAIRS[name]
    moved = after.replace("(1000)", "(1001)").replace("[1128:1150]", "[1129:1151]")
    if moved == after:
        begin, *rest = after.split("constant(1128)", 1)
        moved = "constant(1129)".join([begin, *rest])
    expected, actual = results(plan(before, moved))
    assert not np.array_equal(expected, actual)


def test_what_lies_before_a_place_that_is_a_value_keeps_its_size() -> None:
    found = plan(*PAIRS["a place that is a value, too"])
    assert 1128 + 22 < rows_of(found) < ROWS
    assert any(stay.size == 1128 and "in other forms" in stay.why for stay in found.record.stay)


def test_a_place_that_is_computed_keeps_the_dimension() -> None:
    found = plan(*PAIRS["a sum"])
    assert rows_of(found) == ROWS


@pytest.mark.parametrize("name", ["a place that is a value, too", "a slice"])
def test_a_place_in_the_same_form_may_lie_behind_the_end(name: str) -> None:
    """Both programs do the same there, whatever it is."""
    before, _ = PAIRS[name]
    found = plan(before, before)
    assert rows_of(found) < 1128
    np.testing.assert_array_equal(*results(found))


def test_the_last_window_is_the_last_one_of_any_size() -> None:
    """What would begin behind the end is moved to where the slice up to the end is; a scatter is not."""
    last = ROWS - 22
    found = plan(twice(AGAIN, last), twice(f"slice(x), slice={{[{last}:{ROWS}], [0:300]}}", last))
    assert rows_of(found) < 1128
    np.testing.assert_array_equal(*results(found))
    before, after = (text.replace("1128", str(last)) for text in PAIRS["a place that is a value, too"])
    found = plan(before, after)
    assert rows_of(found) == ROWS
    np.testing.assert_array_equal(*results(found))


def test_rows_that_are_counted_and_those_from_the_end_are_no_places() -> None:
    """`x[arange(64)]` as JAX writes it: a row that would be negative has the number of rows added to it."""
    text = program(
        "i = s32[64] iota(), iota_dimension=0",
        ZERO,
        "zeros = s32[64] broadcast(zero), dimensions={}",
        f"rows = s32[] constant({ROWS})",
        "all = s32[64] broadcast(rows), dimensions={}",
        "p = pred[64] compare(i, zeros), direction=LT",
        "w = s32[64] add(i, all)",
        "s = s32[64] select(p, w, i)",
        result="""g = f32[64,300] gather(x, s), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,300}""",
    )
    found = plan(text, text)
    assert rows_of(found) < ROWS
    np.testing.assert_array_equal(*results(found))
