"""Promises of a compiled program that its values break: what XLA may state, and what it may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlotool.checks.catalogue import all_rules
from hlotool.checks.programs import findings_of
from hlotool.judge.rules.freedoms import ON_GPU, ON_TPU
from hlotool.parser.reader import parse_module
from hlotool.runs.promises import broken_promises, weaker_promises

SCATTER = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[5] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4] parameter(2)
  ROOT s = f32[5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}"""
UNIQUE = SCATTER.replace("to_apply", "unique_indices=true, to_apply")
SORTED = SCATTER.replace("to_apply", "indices_are_sorted=true, to_apply")


def scatter_inputs(*indices: int) -> list[Any]:
    return [np.zeros(5, np.float32), np.array(indices, np.int32)[:, None], np.ones(4, np.float32)]


SORT = """HloModule m
less { a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  k = s32[4] parameter(0)
  v = f32[4] parameter(1)
  ROOT s = (s32[4], f32[4]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
}"""
UNSTABLE = SORT.replace(" is_stable=true,", "")

LOOP = """HloModule m
body { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1 o = s32[] constant(1) j = s32[] add(i, o)
  ROOT r = (s32[], s32[]) tuple(j, n) }
condition { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1 ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { n = s32[] BOUND z = s32[] constant(0) t = (s32[], s32[]) tuple(z, n)
  ROOT w = (s32[], s32[]) while(t), condition=condition, body=body }"""
STATIC, DYNAMIC = (LOOP.replace("BOUND", bound) for bound in ("constant(5)", "parameter(0)"))


def stating(text: str, count: int) -> str:
    return text.replace(
        "body=body }", f'body=body, backend_config={{"known_trip_count":{{"n":"{count}"}}}} }}'
    )


def broken(before: str, after: str, arguments: list[Any] | None) -> list[str]:
    return broken_promises(parse_module(before), parse_module(after), arguments)


@pytest.mark.parametrize(
    ("before", "after", "arguments", "said"),
    [
        (SCATTER, UNIQUE, scatter_inputs(3, 1, 2, 3), "unique_indices, and [3] occurs twice"),
        (SCATTER, SORTED, scatter_inputs(0, 2, 1, 3), "indices_are_sorted, and [1] comes after [2]"),
        (SORT, UNSTABLE, [np.int32([1, 2, 1, 3]), np.float32([1, 2, 3, 4])], "two neighbours of equal keys"),
        (DYNAMIC, stating(DYNAMIC, 4), [np.int32(5)], "ran 5 times and states known_trip_count 4"),
        (STATIC, stating(STATIC, 4), None, "runs 5 times and states known_trip_count 4"),
    ],
)
def test_a_promise_that_is_broken(before: str, after: str, arguments: list[Any] | None, said: str) -> None:
    [line] = broken(before, after, arguments)
    assert said in line


@pytest.mark.parametrize(
    ("before", "after", "arguments"),
    [
        pytest.param(SCATTER, UNIQUE, scatter_inputs(3, 1, 2, 0), id="kept"),
        pytest.param(SCATTER, UNIQUE, scatter_inputs(7, 1, 2, 7), id="what is out of bounds is not applied"),
        pytest.param(SCATTER, SORTED, scatter_inputs(0, 1, 1, 3), id="equal ones are in order"),
        pytest.param(UNIQUE, UNIQUE, scatter_inputs(3, 1, 2, 3), id="the author's own promise"),
        pytest.param(SORT, UNSTABLE, [np.int32([1, 2, 4, 3]), np.float32([1, 2, 3, 4])], id="no ties"),
        pytest.param(SORT, UNSTABLE, [np.int32([1, 2, 1, 3]), np.float32([1, 2, 1, 4])], id="ties alike"),
        pytest.param(UNSTABLE, UNSTABLE, [np.int32([1] * 4), np.float32([1, 2, 3, 4])], id="never stable"),
        pytest.param(DYNAMIC, stating(DYNAMIC, 5), [np.int32(5)], id="the right count"),
        pytest.param(STATIC, stating(STATIC, 5), [], id="the right count, as the program tells"),
    ],
)
def test_a_promise_that_is_kept(before: str, after: str, arguments: list[Any]) -> None:
    assert broken(before, after, arguments) == []


def test_a_stable_sort_that_becomes_one_with_positions_is_no_weaker() -> None:
    """XLA: stable_sort_expander.cc."""
    expanded = """HloModule m
less { a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  i = s32[] parameter(4) j = s32[] parameter(5) l = pred[] compare(a, b), direction=LT
  q = pred[] compare(a, b), direction=EQ k = pred[] compare(i, j), direction=LT
  ROOT r = pred[] select(q, k, l) }
ENTRY e { k = s32[4] parameter(0) v = f32[4] parameter(1) n = s32[4] iota(), iota_dimension=0
  s = (s32[4], f32[4], s32[4]) sort(k, v, n), dimensions={0}, to_apply=less
  a = s32[4] get-tuple-element(s), index=0 b = f32[4] get-tuple-element(s), index=1
  ROOT t = (s32[4], f32[4]) tuple(a, b) }"""
    before, after = parse_module(SORT), parse_module(expanded)
    assert weaker_promises(before, after) == []
    assert broken_promises(before, after, [np.int32([1] * 4), np.float32([1, 2, 3, 4])]) == []
    [line] = weaker_promises(before, parse_module(UNSTABLE))
    assert line == "sort %s need no longer be stable: a backend may leave equal keys in any order"


DOT = """HloModule m
ENTRY e { x = f32[4,4] parameter(0)
  ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}PRECISION,
    metadata={op_name="jit(f)/dot_general" source_file="f.py" source_line=3} }"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            ", operand_precision={highest,highest}",
            "",
            "no longer asks for operand_precision={highest,highest}",
        ),
        (", algorithm=dot_f32_f32_f32", "", "no longer asks for algorithm=dot_f32_f32_f32"),
        ("", ", algorithm=dot_bf16_bf16_f32", "says algorithm=dot_bf16_bf16_f32"),
        (", algorithm=dot_tf32_tf32_f32", ", algorithm=dot_bf16_bf16_f32", "it is to round more than it may"),
    ],
)
def test_a_product_that_is_to_be_less_exact(before: str, after: str, said: str) -> None:
    one, other = (DOT.replace("PRECISION", precision) for precision in (before, after))
    [line] = broken(one, other, None)
    assert said in line


@pytest.mark.parametrize(
    ("before", "after", "unit"),
    [
        (", operand_precision={highest,highest}", ", operand_precision={highest,highest}", 0.0),
        ("", ", operand_precision={highest,highest}", 0.0),
        (", algorithm=dot_bf16_bf16_f32", ", algorithm=dot_tf32_tf32_f32", 0.0),
        ("", ", algorithm=dot_f32_f32_f32", 0.0),
        pytest.param("", ", algorithm=dot_bf16_bf16_f32", ON_TPU.unit, id="as a TPU multiplies anyway"),
        pytest.param("", ", algorithm=dot_tf32_tf32_f32", ON_GPU.unit, id="as a GPU may multiply anyway"),
    ],
)
def test_a_product_that_is_as_exact_as_it_must_be(before: str, after: str, unit: float) -> None:
    one, other = (parse_module(DOT.replace("PRECISION", precision)) for precision in (before, after))
    assert broken_promises(one, other, None, unit) == []


IN_PLACE = """HloModule m, is_scheduled=true
f { p = f32[5] parameter(0) u = f32[1] parameter(1) i = s32[] parameter(2)
  ROOT d = f32[5] dynamic-update-slice(p, u, i) }
ENTRY e { x = f32[5] parameter(0) u = f32[1] parameter(1) i = s32[] parameter(2)
  c = f32[5] COPY(x)
  ROOT r = f32[5] fusion(c, u, i), kind=kLoop, calls=f }"""


def test_a_fusion_that_overwrites_an_argument() -> None:
    before = IN_PLACE.replace("COPY", "copy")
    [line] = broken(before, IN_PLACE.replace("COPY", "bitcast"), None)
    assert line == "fusion %r overwrites %x, an argument that is not donated: a copy is missing"
    assert broken(before, before, None) == []


def test_check_knows_what_needs_no_run() -> None:
    rule = all_rules()["false-trip-count"]
    [finding] = findings_of(parse_module(stating(STATIC, 4)), [rule])
    assert finding.message == "known_trip_count is 4, and the loop runs 5 times"
    assert list(findings_of(parse_module(stating(STATIC, 5)), [rule])) == []
