"""What exact arithmetic changes about a verdict, and what it must not change.

Expected relations follow from algebra: each pair is, or is not, the same function of real numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.programs import CHAOS

from hlotool.backends.numpy import NumpyBackend
from hlotool.facts import thresholds
from hlotool.ir.types import ShapeIndex
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import CompareExactly, judgement_of
from hlotool.judge.tolerance import ChosenTolerance
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.exact import within
from hlotool.runs.exact.result import ExactResult, LeafResult, Relation
from hlotool.runs.exact.task import programs

F32 = np.float32


def _normal(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(dims).astype(F32)


def _pair(before: str, after: str, arguments: list[Any], **options: Any) -> LeafComparison:
    """The verdict on two programs that the reference's interpreter executes both."""
    one, other = parse_module(before), parse_module(after)
    compare_exactly = within.comparing(*programs(one, other), arguments=arguments)
    return _judged(before, after, arguments, compare_exactly, **options)


def _judged(
    before: str, after: str, arguments: list[Any], compare_exactly: CompareExactly | None, **options: Any
) -> LeafComparison:
    one, other = parse_module(before), parse_module(after)
    actual = NumpyBackend().compile(other).run(arguments)
    judgement = judgement_of(one, arguments, actual, tested=other, compare_exactly=compare_exactly, **options)
    [leaf] = judge(judgement).leaves
    return leaf


def _answering(relation: Relation, asked: list[int]) -> CompareExactly:
    """An arbiter that says this of a result of one array, and notes at how many points it was asked."""

    def compare(seconds: float, trials: int) -> ExactResult:
        asked.append(trials)
        index: ShapeIndex = ()
        return ExactResult([LeafResult(index, relation, total=1)], trials=trials)

    return compare


NORMALISED = """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[8,32] parameter(0)
  z = f32[] constant(0)
  q = f32[8,32] multiply(x, x)
  r = f32[8] reduce(q, z), dimensions={1}, to_apply=sum
  c = f32[] constant(1e-7)
  cs = f32[8] broadcast(c), dimensions={}
  v = f32[8] add(r, cs)
  i = f32[8] rsqrt(v)
  b = f32[8,32] broadcast(i), dimensions={0}
  ROOT y = f32[8,32] multiply(x, b)
}"""
#: x / sqrt(v) for x rsqrt(v): the same function, rounded otherwise.
DIVIDED = NORMALISED.replace("i = f32[8] rsqrt(v)", "i = f32[8] sqrt(v)").replace(
    "ROOT y = f32[8,32] multiply(x, b)", "ROOT y = f32[8,32] divide(x, b)"
)
WITHOUT_EPSILON = NORMALISED.replace("constant(1e-7)", "constant(0)")


def test_the_same_function_agrees_with_a_reason() -> None:
    leaf = _pair(NORMALISED, DIVIDED, [_normal(8, 32)])
    assert leaf.verdict is Verdict.AGREE
    assert leaf.reason.startswith("mathematically equivalent (2 exact trials); worst error")
    assert leaf.exact is not None
    assert leaf.exact.relation == "equal"


def test_a_dropped_epsilon_shows_in_f64() -> None:
    leaf = _pair(DIVIDED, WITHOUT_EPSILON, [_normal(8, 32)])
    assert leaf.verdict is Verdict.UNEQUAL
    assert leaf.exact is not None
    assert 1e-9 < leaf.exact.apart < 1e-8  # 1e-7 / 2 beside the least sum of squares
    assert leaf.reason.startswith(
        "not mathematically equivalent (256 of 256 elements at a random point; in double precision"
        " 1.8e-09 of the values apart, which is no rounding); on these inputs a few ulps apart"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(1e-7, 1e-30, id="f64 hides it as well"),
        pytest.param(1.0, 1.0000003, id="a constant that is three ulps off"),
    ],
)
def test_a_difference_that_f64_does_not_show_accuses_nobody(before: float, after: float) -> None:
    scale = 1.0 if before == 1.0 else 1e15
    one, other = (
        text.replace("constant(1e-7)", f"constant({value})")
        for text, value in ((DIVIDED, before), (NORMALISED, after))
    )
    x = [F32(scale) * _normal(8, 32)]
    leaf = _pair(one, other, x)
    assert leaf.verdict is Verdict.DIFFERS
    assert leaf.reason.startswith("not mathematically equivalent (256 of 256 elements at a random point)")
    assert _pair(one, other, x, exact=True).verdict is Verdict.UNEQUAL


ROWS = """ENTRY e {
  x = f32[8,16] parameter(0)
  y = f32[8,16] parameter(1)
  u = f32[8,16] copy(y)
  m = f32[8,16] multiply(x, x)
  ROOT r = f32[8,16] add(m, u)
}"""
#: The first row of y is its second one.
OTHER_ROW = ROWS.replace(
    "u = f32[8,16] copy(y)",
    """a = f32[1,16] slice(y), slice={[1:2], [0:16]}
  b = f32[7,16] slice(y), slice={[1:8], [0:16]}
  u = f32[8,16] concatenate(a, b), dimensions={0}""",
)


def test_a_row_in_the_place_of_its_neighbour_shows_in_f64() -> None:
    """Beside terms ten million times as large it changes a sum by a few ulps."""
    leaf = _pair(ROWS, OTHER_ROW, [_normal(8, 16), F32(1e-7) * _normal(8, 16, seed=1)])
    assert leaf.verdict is Verdict.UNEQUAL
    assert leaf.reason.endswith("on these inputs a few ulps apart")


def test_equal_bits_are_asked_about_on_demand_only() -> None:
    """1e-7 beside a sum of 32 squares does not change one bit."""
    leaf = _pair(NORMALISED, WITHOUT_EPSILON, [_normal(8, 32)])
    assert (leaf.verdict, leaf.exact) == (Verdict.IDENTICAL, None)
    assert _pair(NORMALISED, WITHOUT_EPSILON, [_normal(8, 32)], exact=True).verdict is Verdict.UNEQUAL


def test_the_same_function_may_be_demanded_beside_a_tolerance() -> None:
    options: dict[str, Any] = {"tolerance": ChosenTolerance(rtol=1e-3)}
    assert _pair(DIVIDED, WITHOUT_EPSILON, [_normal(8, 32)], **options).verdict is Verdict.AGREE
    assert _pair(DIVIDED, WITHOUT_EPSILON, [_normal(8, 32)], exact=True, **options).verdict is Verdict.UNEQUAL


def test_another_function_that_is_far_off_is_wrong() -> None:
    leaf = _pair(NORMALISED, NORMALISED.replace("1e-7", "0.1"), [_normal(8, 32)])
    assert leaf.verdict is Verdict.WRONG


#: x - x x for x (1 - x).
DISTRIBUTED = CHAOS.replace("subtract(us, x)", "multiply(x, x)").replace("multiply(x, d)", "subtract(x, d)")
#: x (1 - x) 3.9 with x (1.0001 - x).
OTHER_CHAOS = CHAOS.replace("u = f32[] constant(1)", "u = f32[] constant(1.0001)")
START = [F32([0.3, 0.4, 0.55, 0.7])]


def test_where_legal_executions_say_nothing_equality_says_it() -> None:
    leaf = _pair(CHAOS, DISTRIBUTED, START)
    assert leaf.verdict is Verdict.ROUNDING
    assert leaf.reason.startswith(
        "mathematically equivalent (2 exact trials), though values alone do not show it"
    )
    assert leaf.evidence is not None
    assert leaf.evidence.instruction is not None


def test_another_function_is_not_excused_by_an_instability() -> None:
    leaf = _pair(CHAOS, OTHER_CHAOS, START)
    assert leaf.verdict is Verdict.UNSTABLE
    assert leaf.reason.startswith("not mathematically equivalent")
    assert _pair(CHAOS, OTHER_CHAOS, START, exact=True).verdict is Verdict.UNEQUAL


def test_an_instability_does_not_excuse_coarser_rounding() -> None:
    rounded = DISTRIBUTED.replace(
        "y = f32[4] multiply(cs, p)",
        "m = f32[4] multiply(cs, p) n = bf16[4] convert(m) y = f32[4] convert(n)",
    )
    leaf = _pair(CHAOS, rounded, START)
    assert leaf.verdict is Verdict.WRONG
    assert leaf.exact is not None
    assert leaf.exact.relation == "equal"


#: Chaos between 0 and 40, rounded down.
DECIDING, DECIDING_TOO = (
    text.replace(
        "ROOT r = f32[4] get-tuple-element(w), index=1",
        """
  hundred = f32[] constant(40)
  hs = f32[4] broadcast(hundred), dimensions={}
  r = f32[4] get-tuple-element(w), index=1
  g = f32[4] multiply(r, hs)
  ROOT k = s32[4] convert(g)""",
    )
    for text in (CHAOS, DISTRIBUTED)
)


def test_what_decisions_make_is_excused_after_more_points_only() -> None:
    asked: list[int] = []
    leaf = _judged(DECIDING, DECIDING_TOO, START, _answering(Relation.EQUAL, asked))
    assert leaf.verdict is Verdict.ROUNDING
    assert asked == [thresholds.EXACT_TRIALS.value, thresholds.MOST_POINTS.value]
    assert "(8 exact trials)" in leaf.reason


def test_two_points_alone_excuse_no_decisions_and_the_reason_says_so() -> None:
    def answer(seconds: float, trials: int) -> ExactResult:
        return (
            _answering(Relation.EQUAL, [])(seconds, trials)
            if trials == 2
            else ExactResult(refused="too slow")
        )

    leaf = _judged(DECIDING, DECIDING_TOO, START, answer)
    assert leaf.verdict is Verdict.UNSTABLE
    assert leaf.exact is not None
    assert leaf.exact.relation == "equal"
    assert leaf.reason.endswith(
        "(2 exact trials), but at too few points for what comparisons decide: too slow"
    )


def test_what_more_points_tell_apart_is_another_function() -> None:
    def answer(seconds: float, trials: int) -> ExactResult:
        return _answering(Relation.EQUAL if trials == 2 else Relation.UNEQUAL, [])(seconds, trials)

    leaf = _judged(DECIDING, DECIDING_TOO, START, answer)
    assert leaf.verdict is Verdict.UNSTABLE
    assert leaf.reason.startswith("not mathematically equivalent")
    assert _judged(DECIDING, DECIDING_TOO, START, answer, exact=True).verdict is Verdict.UNEQUAL


def test_what_is_affordable_at_the_first_points_is_asked_at_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pair computes some thousand elements, which are too many for eight points and not for two."""
    count = sum(within.computed_elements(parse_module(text)) for text in (CHAOS, DISTRIBUTED))
    monkeypatch.setattr(thresholds, "EXACT_ELEMENTS", thresholds.Threshold(2 * count, "", ""))
    compared = within.comparing(*programs(parse_module(CHAOS), parse_module(DISTRIBUTED)))
    assert compared(60, 8).trials == 8
    monkeypatch.setattr(thresholds, "EXACT_ELEMENTS", thresholds.Threshold(count, "", ""))
    assert "too many for 2 points" in compared(60, 8).refused


SPREAD = """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[8,64] parameter(0)
  z = f32[] constant(0)
  n = f32[] constant(0.015625)
  ns = f32[8] broadcast(n), dimensions={}
  r = f32[8] reduce(x, z), dimensions={1}, to_apply=sum
  m = f32[8] multiply(r, ns)
  mb = f32[8,64] broadcast(m), dimensions={0}
  d = f32[8,64] subtract(x, mb)
  q = f32[8,64] multiply(d, d)
  t = f32[8] reduce(q, z), dimensions={1}, to_apply=sum
  ROOT v = f32[8] multiply(t, ns)
}"""
#: E[x²] - E[x]² for E[(x - E[x])²].
CANCELLING = SPREAD.replace("subtract(x, mb)", "copy(x)").replace(
    "ROOT v = f32[8] multiply(t, ns)",
    "w = f32[8] multiply(t, ns) mm = f32[8] multiply(m, m) ROOT v = f32[8] subtract(w, mm)",
)


def test_the_same_function_computed_badly_stays_wrong() -> None:
    """Variance 1 around 10 000: the squares of f32 have no digits left for it."""
    leaf = _pair(SPREAD, CANCELLING, [_normal(8, 64) + F32(1e4)])
    assert leaf.verdict is Verdict.WRONG
    assert "the programs are mathematically equivalent (2 exact trials)" in leaf.reason


def test_the_same_function_in_a_narrower_type_stays_wrong() -> None:
    narrow = NORMALISED.replace(
        "q = f32[8,32] multiply(x, x)",
        "h = bf16[8,32] convert(x) g = f32[8,32] convert(h) q = f32[8,32] multiply(g, g)",
    )
    leaf = _pair(NORMALISED, narrow, [_normal(8, 32)])
    assert leaf.verdict is Verdict.WRONG
    assert leaf.reason.startswith("the tested program rounds to bf16 at convert %h")


LOG_EXP = """ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  ROOT z = f32[4] log(y)
}"""


def test_an_overflow_is_not_excused() -> None:
    nothing = "ENTRY e { x = f32[4] parameter(0) ROOT z = f32[4] copy(x) }"
    assert _pair(LOG_EXP, nothing, [F32([1, 2, 100, 3])]).verdict is Verdict.RANGE


@pytest.mark.parametrize("exact", [False, True])
def test_without_an_arbiter_nothing_is_said(exact: bool) -> None:
    """As of results that something else than the reference's interpreter returned."""
    leaf = _judged(DIVIDED, WITHOUT_EPSILON, [_normal(8, 32)], None, exact=exact)
    assert (leaf.verdict, leaf.exact) == (Verdict.AGREE, None)


def test_what_is_refused_leaves_the_verdict_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "EXACT_ELEMENTS", thresholds.Threshold(1, "", ""))
    leaf = _pair(DIVIDED, WITHOUT_EPSILON, [_normal(8, 32)])
    assert leaf.verdict is Verdict.AGREE
    assert leaf.exact is not None
    assert leaf.exact.relation == "refused"
    assert "elements are computed, too many for 2 points" in leaf.exact.reason


def test_a_bug_of_exact_arithmetic_does_not_cost_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> ExactResult:
        raise ZeroDivisionError("of nothing")

    monkeypatch.setattr(within, "compare", broken)
    leaf = _pair(DIVIDED, WITHOUT_EPSILON, [_normal(8, 32)])
    assert leaf.verdict is Verdict.AGREE
    assert leaf.exact is not None
    assert leaf.exact.reason == "internal error, please report: ZeroDivisionError: of nothing"


def test_how_much_a_program_computes() -> None:
    """Read and written, in each of 7 rounds: 3 x (4 + 4 + 4), two broadcasts, a counter and its test."""
    loop = CHAOS.replace("constant(200)", "constant(7)")
    assert within.computed_elements(parse_module(loop)) == 7 * (3 * 12 + 2 * (1 + 4) + 2 * 3)
    assert within.computed_elements(parse_module(LOG_EXP)) == 16
