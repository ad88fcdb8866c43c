"""Another order of equal elements of an unstable sort accuses nobody; what no order gives is wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.ties import introsort, library_order, reversed_ties, ties_in
from hlotool.ir.arrays import Array
from hlotool.judge.comparison import Comparison
from hlotool.judge.rules import excuses
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

#: Keys k and places i, sorted by the keys; `{tail}` makes the result of the sorted ones, k1 and i1.
PROGRAM = """HloModule m

less {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}}

add {{
  p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] add(p, q)
}}

ENTRY main {{
  k = s32[{size}] parameter(0)
  i = s32[{size}] iota(), iota_dimension=0
  sorted = (s32[{size}], s32[{size}]) sort(k, i), dimensions={{0}}, {stable}to_apply=less
  k1 = s32[{size}] get-tuple-element(sorted), index=0
  i1 = s32[{size}] get-tuple-element(sorted), index=1
  {tail}
}}
"""
BOTH = "ROOT r = (s32[{size}], s32[{size}]) tuple(k1, i1)"
WEIGHTED = (
    "o = s32[{size}] iota(), iota_dimension=0 w = s32[{size}] multiply(i1, o) z = s32[] constant(0) "
    "ROOT r = s32[] reduce(w, z), dimensions={{0}}, to_apply=add"
)
SIZE = 40
KEYS = np.int32([7 * n % 5 for n in range(SIZE)])


def _text(tail: str = BOTH, size: int = SIZE, stable: str = "") -> str:
    return PROGRAM.format(size=size, stable=stable, tail=tail.format(size=size))


def _judged(text: str, keys: Any, actual: Any) -> Comparison:
    return judge(judgement_of(parse_module(text), [keys], actual))


def _in_order(rank: Any, keys: Any = KEYS) -> tuple[Any, Any]:
    """Sorted keys and places: equal keys by `rank`."""
    order = np.lexsort((rank, keys)).astype(np.int32)
    return keys[order], order


RANDOM = np.random.default_rng(0).permutation(SIZE)


@pytest.mark.parametrize("rank", [-np.arange(SIZE), RANDOM], ids=["reversed", "random"])
def test_any_order_of_ties_is_legal(rank: Any) -> None:
    found = _judged(_text(), KEYS, _in_order(rank))
    keys, places = found.leaves
    assert keys.verdict is Verdict.IDENTICAL
    assert places.verdict is Verdict.SEMANTICS
    assert places.evidence is not None
    assert places.evidence.rule == "ties-of-unstable-sort"
    assert "sort %sorted" in places.reason


def test_a_stable_sort_has_one_order() -> None:
    assert _judged(_text(stable="is_stable=true, "), KEYS, _in_order(RANDOM)).verdict is Verdict.WRONG


def test_a_lost_element_is_wrong() -> None:
    keys, places = _in_order(RANDOM)
    places[3] = places[2]
    assert _judged(_text(), KEYS, (keys, places)).verdict is Verdict.WRONG


def test_elements_of_unequal_keys_exchanged_are_wrong() -> None:
    keys, places = _in_order(RANDOM)
    places[[0, -1]] = places[[-1, 0]]
    assert _judged(_text(), KEYS, (keys, places)).verdict is Verdict.WRONG


def test_unsorted_keys_are_wrong() -> None:
    keys, places = _in_order(RANDOM)
    assert _judged(_text(), KEYS, (keys[::-1].copy(), places[::-1].copy())).verdict is Verdict.WRONG


def test_outputs_have_to_come_of_one_order() -> None:
    two = "twice = s32[{size}] add(i1, i1) ROOT r = (s32[{size}], s32[{size}]) tuple(i1, twice)"
    text = _text(two)
    (_, one), (_, other) = _in_order(RANDOM), _in_order(-RANDOM)
    assert _judged(text, KEYS, (one, 2 * one)).verdict is Verdict.SEMANTICS
    assert _judged(text, KEYS, (one, 2 * other)).verdict is Verdict.WRONG


MOVED = {
    "converted": ("ROOT r = s64[{size}] convert(i1)", lambda i: i.astype(np.int64)),
    "first": ("ROOT r = s32[9] slice(i1), slice={{[0:9]}}", lambda i: i[:9]),
    "turned": (
        "t = s32[{size}] reverse(i1), dimensions={{0}} ROOT r = s32[{size},1] reshape(t)",
        lambda i: i[::-1, None],
    ),
    "computed": (
        "c = s32[] constant(3) d = s32[{size}] broadcast(c), dimensions={{}} "
        "ROOT r = s32[{size}] multiply(d, i1)",
        lambda i: 3 * i,
    ),
    "gathered": (
        "ROOT r = s32[{size}] gather(k, i1), offset_dims={{}}, collapsed_slice_dims={{0}}, "
        "start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}",
        lambda i: KEYS[i],
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_is_made_of_the_payload_shows_the_order(name: str) -> None:
    tail, made = MOVED[name]
    _, places = _in_order(RANDOM)
    assert _judged(_text(tail), KEYS, made(places)).verdict in (Verdict.SEMANTICS, Verdict.IDENTICAL)
    broken = np.array(made(places))
    broken.reshape(-1)[0] += 1_000
    assert _judged(_text(tail), KEYS, broken).verdict is Verdict.WRONG


def test_the_order_of_the_library_is_known_where_a_result_does_not_show_it() -> None:
    module = parse_module(_text(WEIGHTED))
    with ties_in(library_order):
        executable = NumpyBackend().compile(module)
    actual: Any = executable.run([KEYS])
    assert actual != NumpyBackend().compile(module).run([KEYS])
    assert judge(judgement_of(module, [KEYS], actual)).verdict is Verdict.SEMANTICS
    assert judge(judgement_of(module, [KEYS], actual + 1)).verdict is Verdict.WRONG


def test_orders_are_permutations_within_ties() -> None:
    module = parse_module(_text())
    for order in (library_order, reversed_ties):
        with ties_in(order):
            executable = NumpyBackend().compile(module)
        keys, places = executable.run([KEYS])  # type: ignore[misc]
        assert keys.tolist() == sorted(KEYS.tolist())
        assert KEYS[places].tolist() == keys.tolist()
        assert sorted(places.tolist()) == list(range(SIZE))


@pytest.mark.xla
@pytest.mark.parametrize("size", [2, 16, 17, 33, 64, 300])
@pytest.mark.parametrize("pattern", ["few", "organ pipe", "killer"])
def test_xla_sorts_as_the_library_does(size: int, pattern: str) -> None:
    from hlotool.backends.xla import create

    half = size // 2
    keys = {
        "few": np.random.default_rng(size).integers(0, max(2, size // 4), size),
        "organ pipe": np.r_[np.arange(half), np.arange(size - half)[::-1]] // 2,
        # D. Musser, "Introspective sorting and selection algorithms" (1997): all medians of three are bad.
        "killer": np.r_[
            [n if n % 2 else half + n - 1 for n in range(1, half + 1)], 2 * np.arange(1, size - half + 1)
        ],
    }[pattern].astype(np.int32)
    if pattern == "killer":
        keys //= 2
    _, places = create().compile(parse_module(_text(size=size))).run([keys])  # type: ignore[misc]
    assert introsort(keys.tolist()) == np.asarray(places).tolist()


@pytest.mark.parametrize(
    ("flips_at", "is_tie"),
    [((1, 2), True), ((1, 20), True), ((1, None), False), ((*range(9), 20), False)],
)
def test_a_tie_that_few_louder_executions_miss(flips_at: tuple[int | None, ...], is_tie: bool) -> None:
    """As of an optimizer of signs; where many elements are out of reach, eight executions have to do."""
    expected = np.ones(100, np.float32)
    actual = expected.copy()
    actual[: len(flips_at)] = -1

    def members(count: int) -> list[list[Array]]:
        found = [expected.copy() for _ in range(count)]
        for place, number in enumerate(flips_at):
            if number is not None and number < count:
                found[number][place] = -1
        return [[each] for each in found]

    leaf: Any = SimpleNamespace(expected=expected, actual=actual, number=0)
    score: Any = SimpleNamespace(beyond=actual < 0, worst_score=1e4)
    louder = SimpleNamespace(members=members)
    executions: Any = SimpleNamespace(louder=louder, rounds_coarser_than_target=False)
    assert excuses.flips_when_louder(leaf, score, executions) is is_tie
