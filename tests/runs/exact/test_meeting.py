"""Ties, what lies between constants, NaN tests, saturation: never plainly `equal` where they differ."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from support.programs import write_module

from hlotool.backends.field.constants import Constants
from hlotool.backends.field.meeting import meeting_numbers, with_meeting_floats
from hlotool.backends.field.trial import Trial
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import ProveTask, compare_modules, prove
from hlotool.sources.directory import open_dump

TEXT = """HloModule m
{computations}
ENTRY e {{
  x = f32[{n}] parameter(0)
  g = f32[{n}] parameter(1)
  o = f32[] constant(0)
  z = f32[{n}] broadcast(o), dimensions={{}}
  u = f32[] constant(1)
  v = f32[{n}] broadcast(u), dimensions={{}}
  {body}
}}"""


def proved(left: str, right: str, n: int = 4, computations: str = "", seed: int = 0) -> ExactResult:
    sides = (
        parse_module(TEXT.format(n=n, computations=computations, body=b.replace("N", str(n))))
        for b in (left, right)
    )
    return compare_modules(*sides, seed=seed)


def chosen(direction: str, of: str = "x", bound: str = "z") -> str:
    return (
        f"p = pred[N] compare({of}, {bound}), direction={direction}\n  w = f32[N] select(p, g, v)\n"
        "  ROOT r = f32[N] add(w, x)"
    )


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("bound", ["z", "v", "g"])
def test_strict_comparisons_differ_from_others(n: int, bound: str) -> None:
    strict, other = chosen("GT", bound=bound), chosen("GE", bound=bound)
    assert proved(strict, other, n).relation is Relation.UNEQUAL
    assert proved(other, strict, n).relation is Relation.UNEQUAL
    assert proved(strict, strict, n).relation is Relation.EQUAL


@pytest.mark.parametrize("seed", range(3))
def test_thresholds_next_to_each_other(seed: int) -> None:
    draw = random.Random(seed)
    c = float(draw.randint(2, 5000))
    one, other = (
        f"c = f32[] constant({number:.9g})\n  k = f32[N] broadcast(c), dimensions={{}}\n  "
        + chosen("GT", bound="k")
        for number in (c, draw.choice([c + 1, c * 1.001, c * (1 + 2.0**-21)]))
    )
    n = draw.choice([1, 3, 8])
    assert proved(one, other, n, seed=seed).relation is Relation.UNEQUAL
    assert proved(one, one, n, seed=seed).relation is Relation.EQUAL


def test_a_tie_that_nothing_reaches_is_named() -> None:
    """No argument is known whose sine is 3/10."""
    body = "c = f32[] constant(0.3)\n  k = f32[N] broadcast(c), dimensions={}\n  s = f32[N] sine(x)\n  "
    one, other = (body + chosen(d, of="s", bound="k") for d in ("GT", "GE"))
    assert compare_with_sets(one, other) == ("equal where", "of equal numbers")


def compare_with_sets(left: str, right: str, n: int = 4, computations: str = "") -> tuple[str, str]:
    """What `prove` says of two files, and the first side that nothing was compared on."""
    texts = [TEXT.format(n=n, computations=computations, body=b.replace("N", str(n))) for b in (left, right)]
    return of_texts(*texts)


def of_texts(left: str, right: str) -> tuple[str, str]:
    folder = Path.cwd() / "dump"
    folder.mkdir(exist_ok=True)
    write_module(folder, 0, left, right)
    [module] = open_dump(folder).modules
    assert module.pair is not None
    record = prove(ProveTask("m", (module, module), *module.pair, trials=2, seed=0, time_limit=60.0))
    never = [side.never[0] for side in (*record.left_one_sided, *record.right_one_sided)]
    return record.relation, (never or [""])[0]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("ROOT r = f32[N] round-nearest-even(x)", "ROOT r = f32[N] round-nearest-afz(x)"),
        (
            "i = s8[N] convert(x)\n  ROOT r = f32[N] convert(i)",
            "i = s32[N] convert(x)\n  j = s8[N] convert(i)\n  ROOT r = f32[N] convert(j)",
        ),
        ("ROOT r = f32[N] sign(x)", chosen("GE").replace("select(p, g, v)", "select(p, v, v)")),
    ],
)
def test_what_is_made_of_halves_and_large_numbers(left: str, right: str) -> None:
    assert proved(left, right).relation is Relation.UNEQUAL
    assert proved(left, left).relation is Relation.EQUAL


@pytest.mark.parametrize("test", ["f = pred[N] is-finite(x)", "f = pred[N] compare(x, x), direction=EQ"])
def test_a_guard_for_nan_is_named_where_one_program_has_it_alone(test: str) -> None:
    guarded = f"{test}\n  ROOT r = f32[N] select(f, x, z)"
    relation, never = compare_with_sets(guarded, "ROOT r = f32[N] copy(x)")
    assert relation == "equal where"
    assert never in ("false", "of NaN")
    assert compare_with_sets(guarded, guarded)[0] == "equal"


#: The place of the largest: `LT` takes the first of equal ones, `GT` the last.
CHOOSE = """choose {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GT
  q = pred[] compare(a, b), direction=EQ
  r = pred[] compare(i, j), direction={}
  s = pred[] and(q, r)
  t = pred[] or(p, s)
  c = f32[] select(p, a, b)
  k = s32[] select(t, i, j)
  ROOT o = (f32[], s32[]) tuple(c, k)
}}"""
ARGMAX = """HloModule m
{}
ENTRY e {{
  x = f32[7] parameter(0)
  i = s32[7] iota(), iota_dimension=0
  l = f32[] constant(-inf)
  n = s32[] constant(0)
  t = (f32[], s32[]) reduce(x, i, l, n), dimensions={{0}}, to_apply=choose
  ROOT r = s32[] get-tuple-element(t), index=1
}}"""


def test_which_of_equal_numbers_is_the_largest() -> None:
    first, last = (parse_module(ARGMAX.format(CHOOSE.format(d))) for d in ("LT", "GT"))
    assert compare_modules(first, last).relation is Relation.UNEQUAL
    assert compare_modules(first, first).relation is Relation.EQUAL


#: Places in the order of `x`; `{less}` is the comparator, which may look at them, too.
SORT = """HloModule m
before {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  {less}
}}
ENTRY e {{
  x = {kind}[{n}] parameter(0)
  p = s32[{n}] iota(), iota_dimension=0
  t = ({kind}[{n}], s32[{n}]) sort(x, p), dimensions={{0}}{stable}, to_apply=before
  ROOT r = s32[{n}] get-tuple-element(t), index=1
}}"""
BY_KEY = "ROOT p = pred[] compare(a, b), direction=LT"
BY_PLACE = """p = pred[] compare(a, b), direction=LT
  q = pred[] compare(a, b), direction=EQ
  r = pred[] compare(i, j), direction={}
  s = pred[] and(q, r)
  ROOT t = pred[] or(p, s)"""


def sort(less: str = BY_KEY, stable: bool = True, n: int = 9, kind: str = "f32") -> str:
    return SORT.format(less=less, n=n, kind=kind, stable=", is_stable=true" if stable else "")


def test_the_order_of_equal_keys() -> None:
    first, last = sort(BY_PLACE.format("LT"), stable=False), sort(BY_PLACE.format("GT"), stable=False)
    assert of_texts(sort(), first) == ("equal", "")
    assert of_texts(sort(), last)[0] == "unequal"
    assert of_texts(sort(), sort(stable=False)) == ("equal where", "of equal numbers")


#: The same order, by the bits of the numbers, as compilers for GPUs make it; equal bits go by place.
BY_BITS = """h = {bits}[] bitcast-convert(a)
  k = {bits}[] bitcast-convert(b)
  m = {bits}[] constant({largest})
  o = {bits}[] constant(0)
  c = pred[] compare(h, o), direction=LT
  d = pred[] compare(k, o), direction=LT
  f = {bits}[] xor(h, m)
  g = {bits}[] xor(k, m)
  u = {bits}[] select(c, f, h)
  v = {bits}[] select(d, g, k)
  p = pred[] compare(u, v), direction=LT
  q = pred[] compare(u, v), direction=EQ
  r = pred[] compare(i, j), direction=LT
  s = pred[] and(q, r)
  ROOT t = pred[] or(p, s)"""


@pytest.mark.parametrize(("kind", "bits", "n"), [("f32", 32, 60_000), ("bf16", 16, 5_000), ("f16", 16, 300)])
def test_an_order_by_bits_is_the_order_of_numbers_at_any_length(kind: str, bits: int, n: int) -> None:
    """Of so many numbers of a type two are equal at a random point, with different words."""
    by_bits = BY_BITS.format(bits=f"s{bits}", largest=2 ** (bits - 1) - 1)
    one, other = (parse_module(sort(less, n=n, kind=kind)) for less in (BY_KEY, by_bits))
    assert compare_modules(one, other).relation is Relation.EQUAL
    assert compare_modules(other, one).relation is Relation.EQUAL


def test_what_only_the_order_of_a_field_tells_apart_is_refused() -> None:
    """x > 1 and x - 1 > 0, which no field knows to be the same; with another limit they are not."""
    limit = (
        "c = f32[] constant({})\n  k = f32[N] broadcast(c), dimensions={{}}\n  d = f32[N] subtract(x, k)\n  "
    )
    direct = chosen("GT", bound="v")
    same, other = (limit.format(c) + chosen("GT", of="d") for c in (1, 1.25))
    result = proved(direct, same)
    assert result.relation is Relation.REFUSED
    assert "order" in result.leaves[0].reason
    assert proved(direct, other).relation is Relation.UNEQUAL


def test_a_guard_below_1e_30_is_reached() -> None:
    body = "c = f32[] constant(2e-34)\n  k = f32[N] broadcast(c), dimensions={}\n  a = f32[N] abs(x)\n  "
    guarded = body + "ROOT r = f32[N] maximum(a, k)"
    assert proved(guarded, body + "ROOT r = f32[N] copy(a)").relation is Relation.UNEQUAL
    added = "c = f32[] constant(1e-38)\n  k = f32[N] broadcast(c), dimensions={}\n  ROOT r = f32[N] add(x, k)"
    assert proved(added, "ROOT r = f32[N] copy(x)").relation is Relation.EQUAL


def test_numbers_fit_their_type() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { x = f16[99] parameter(0) c = f32[] constant(3e30) ROOT r = f16[99] copy(x) }"
    )
    constants = Constants(module)
    numbers = meeting_numbers(constants)
    assert float(np.float32(3e30)) in numbers.values
    trial = Trial(constants)
    for number in range(6):
        [words] = with_meeting_floats(module, [np.zeros(99, np.float16)], 1, number, numbers)
        assert np.abs(trial.kappa(words)).max() <= 65504
    assert numbers.within(ElementType.F64).size == numbers.words.size


@pytest.mark.parametrize("n", ["", "1", "6"])
@pytest.mark.parametrize(
    "before", ["a = f32[N] multiply(x, f)", "a = f32[N] subtract(f, x)", "a = f32[N] multiply(x, y)"]
)
def test_a_tie_of_what_is_computed_is_solved_for(n: str, before: str) -> None:
    """4 x, 4 - x and x y, against 9, of scalars and arrays; limits next to it differ, too."""
    text = """HloModule m
    ENTRY e {{
      x = f32[{n}] parameter(0)
      y = f32[{n}] parameter(1)
      four = f32[] constant(4)
      f = f32[{n}] broadcast(four), dimensions={{}}
      {before}
      nine = f32[] constant({limit})
      k = f32[{n}] broadcast(nine), dimensions={{}}
      p = pred[{n}] compare(a, k), direction={direction}
      m = f32[{n}] negate(y)
      ROOT r = f32[{n}] select(p, y, m)
    }}"""

    def module(direction: str, limit: str = "9") -> str:
        return text.format(n=n, before=before.replace("N", n), limit=limit, direction=direction)

    strict = module("GT")
    assert of_texts(strict, module("GE"))[0] == "unequal"
    assert of_texts(strict, module("GT", "9.001"))[0] == "unequal"
    assert of_texts(strict, strict) == ("equal", "")
