"""Programs that differ only beyond a limit, below a guard, or for some integers are never plainly `equal`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.programs import write_module

from hlotool.parser.reader import parse_module
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.records import ProvedRecord
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import ProveTask, compare_modules, programs, prove
from hlotool.sources.directory import open_dump

#: A limit or a guard beside the identity; `{c}` is a positive number on whose far side no ordinary point is.
HIDDEN = {
    "an upper limit": "ROOT r = f32[{n}] minimum(x, k)",
    "a lower limit": "m = f32[{n}] negate(k)\n  ROOT r = f32[{n}] maximum(x, m)",
    "both limits": "m = f32[{n}] negate(k)\n  ROOT r = f32[{n}] clamp(m, x, k)",
    "a guard above": "p = pred[{n}] compare(x, k), direction=GT\n  ROOT r = f32[{n}] select(p, z, x)",
    "a guard below": "m = f32[{n}] negate(k)\n  p = pred[{n}] compare(m, x), direction=GE\n"
    "  ROOT r = f32[{n}] select(p, z, x)",
    "a guard on sums": "s = f32[{n}] add(x, x)\n  p = pred[{n}] compare(s, k), direction=LT\n"
    "  ROOT r = f32[{n}] select(p, x, z)",
}
TINY = "a = f32[{n}] abs(x)\n  p = pred[{n}] compare(a, k), direction=LT\n  ROOT r = f32[{n}] select(p, z, x)"

TEXT = """HloModule m
ENTRY e {{
  x = f32[{n}] parameter(0)
  c = f32[] constant({c})
  k = f32[{n}] broadcast(c), dimensions={{}}
  o = f32[] constant(0)
  z = f32[{n}] broadcast(o), dimensions={{}}
  {body}
}}"""


def proved(left: str, right: str, seed: int = 0) -> ExactResult:
    return compare_modules(parse_module(left), parse_module(right), seed=seed)


def floats(body: str, n: int, c: float = 1.0) -> str:
    return TEXT.format(n=n, c=f"{c:.9g}", body=body.format(n=n))


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("seed", range(3))
def test_what_lies_beyond_a_limit_is_reached(name: str, seed: int) -> None:
    """From either side, a scalar or an array, whatever the limit is; the program itself stays equal."""
    draw = random.Random(f"{name} {seed}")
    n, c = draw.choice([1, 2, 3, 7]), 10.0 ** draw.uniform(3, 36)
    limited, identity = floats(HIDDEN[name], n, c), floats("ROOT r = f32[{n}] copy(x)", n)
    assert proved(limited, identity, seed).relation is Relation.UNEQUAL
    assert proved(identity, limited, seed).relation is Relation.UNEQUAL
    assert proved(limited, limited, seed).relation is Relation.EQUAL


@pytest.mark.parametrize("seed", range(3))
def test_what_lies_near_zero_is_reached(seed: int) -> None:
    draw = random.Random(seed)
    n, c = draw.choice([1, 4]), 10.0 ** draw.uniform(-28, -4)
    guarded, identity = floats(TINY, n, c), floats("ROOT r = f32[{n}] copy(x)", n)
    assert proved(guarded, identity, seed).relation is Relation.UNEQUAL
    assert proved(identity, guarded, seed).relation is Relation.UNEQUAL
    assert proved(guarded, guarded, seed).relation is Relation.EQUAL


@pytest.mark.parametrize(
    "body",
    [
        "a = f32[{n}] abs(x)\n  p = pred[{n}] compare(a, z), direction=GE\n"
        "  ROOT r = f32[{n}] select(p, x, z)",
        "a = f32[{n}] exponential(x)\n  p = pred[{n}] compare(a, z), direction=GT\n"
        "  ROOT r = f32[{n}] select(p, x, z)",
        "p = pred[{n}] compare(x, x), direction=NE\n  ROOT r = f32[{n}] select(p, z, x)",
    ],
)
def test_what_cannot_be_is_no_side(body: str) -> None:
    """|x| < 0, exp(x) <= 0, x that is not itself."""
    assert proved(floats(body, 3), floats("ROOT r = f32[{n}] copy(x)", 3)).relation is Relation.EQUAL


def test_what_no_float_exceeds_is_no_side() -> None:
    limited = floats("ROOT r = f32[{n}] minimum(x, k)", 3, float("3.40282347e38"))
    assert proved(limited, floats("ROOT r = f32[{n}] copy(x)", 3)).relation is Relation.EQUAL


#: A decision that no point turns round.
UNREACHED = """HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  a = f32[4] multiply(x, x)
  n = f32[4] negate(x)
  b = f32[4] multiply(x, n)
  o = f32[] constant(0)
  z = f32[4] broadcast(o), dimensions={{}}
  f = f32[4] add(a, b)
  c = f32[] constant(5)
  k = f32[4] broadcast(c), dimensions={{}}
  p = pred[4] compare(f, k), direction=GT, metadata={{source_file="model.py" source_line=7}}
  w = f32[4] {}(x)
  ROOT r = f32[4] select(p, w, x)
}}"""


def test_what_no_point_reaches_is_named() -> None:
    """The sum is 0 whatever the argument is, which no analysis here knows."""
    result = proved(UNREACHED.format("negate"), UNREACHED.format("abs"))
    assert result.relation is Relation.EQUAL_WHERE
    assert [str(side) for side in result.not_covered] == [
        f"compare %p of the {program} (line 12, model.py:7) is never true" for program in ("first", "second")
    ]


def test_points_can_be_forbidden() -> None:
    left, right = (
        parse_module(floats(b, 2, 1e9)) for b in (HIDDEN["an upper limit"], "ROOT r = f32[2] copy(x)")
    )
    result = compare(*programs(left, right), Options(covers=False))
    assert result.relation is Relation.EQUAL_WHERE


LOOP = """HloModule jit_count
less {{
  s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(i, n), direction=LT
}}
step {{
  s = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  x = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2] add(x, x)
  ROOT t = (s32[], s32[], f32[2]) tuple(j, n, y)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  n = s32[] parameter(1)
  zero = s32[] constant(0)
  {bound}
  s = (s32[], s32[], f32[2]) tuple(zero, m, x)
  w = (s32[], s32[], f32[2]) while(s), condition=less, body=step
  ROOT y = f32[2] get-tuple-element(w), index=2
}}"""
BOUNDS = {
    "as it is": "m = s32[] copy(n)",
    "a limit": "k = s32[] constant({k})\n  m = s32[] minimum(n, k)",
    "absolute": "m = s32[] abs(n)",
}


def of_files(folder: Path, left: str, right: str) -> ProvedRecord:
    folder.mkdir()
    write_module(folder, 0, left, right)
    [module] = open_dump(folder).modules
    assert module.pair is not None
    return prove(ProveTask("m", (module, module), *module.pair, trials=2, seed=0, time_limit=60.0))


@pytest.mark.parametrize("name", ["a limit", "absolute"])
def test_counts_beyond_a_limit_are_no_equality(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    draw = random.Random(name)
    bound = BOUNDS[name].format(k=draw.randint(20, 400))
    changed, as_it_is = LOOP.format(bound=bound), LOOP.format(bound=BOUNDS["as it is"])
    for number, pair in enumerate([(changed, as_it_is), (as_it_is, changed)]):
        assert of_files(tmp_path / str(number), *pair).relation in ("unequal", "equal where")


def test_counts_that_are_the_same(tmp_path: Path) -> None:
    as_it_is = LOOP.format(bound=BOUNDS["as it is"])
    assert of_files(tmp_path / "dump", as_it_is, as_it_is).relation == "equal"
