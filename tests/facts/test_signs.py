"""Signs and ranges of values: every law where it holds, and next to it where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.ranges import Interval
from hlotool.facts.signs import Fact, Law, Order, Signs
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

REDUCERS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT sum = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT larger = f32[] maximum(a, b) }
min { a = f32[] parameter(0) b = f32[] parameter(1) ROOT smaller = f32[] minimum(a, b) }
"""
HEAD = """ENTRY e {
  x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  eighth = f32[] constant(0.125)
  eighths = f32[4] broadcast(eighth), dimensions={}
"""


def program(body: str, computations: str = "") -> Module:
    """Instructions on x and y, f32[4,8]."""
    return parse_module(f"HloModule m\n{REDUCERS}{computations}{HEAD}{body}\n}}")


def named(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def fact(body: str, computations: str = "") -> Fact:
    module = program(body, computations)
    return Signs(module).of(module.entry.root)


SHAPE = "f32[4,8]"
MAXIMUM = """m = f32[4] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[4,8] broadcast(m), dimensions={0}
"""
SUM_OF_EXP = """e = f32[4,8] exponential(x)
  s = f32[4] reduce(e, zero), dimensions={1}, to_apply=add
  sb = f32[4,8] broadcast(s), dimensions={0}
"""
LOG_SUM_EXP = """e = f32[4,8] exponential(x)
  s = f32[4] reduce(e, zero), dimensions={1}, to_apply=add
  l = f32[4] log(s)
  lb = f32[4,8] broadcast(l), dimensions={0}
"""
MEANS = """xx = f32[4,8] multiply(x, x)
  s = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  ss = f32[4] reduce(xx, zero), dimensions={1}, to_apply=add
  m = f32[4] multiply(s, eighths)
  mm = f32[4] multiply(m, m)
  q = f32[4] multiply(ss, eighths)
"""

#: Where a law holds: what is computed, the range of it, and the law.
HOLDS = [
    ("ROOT r = f32[4,8] broadcast(eighth), dimensions={}", Interval(0.125, 0.125), Law.CONSTANT),
    ("ROOT r = f32[4,8] iota(), iota_dimension=1", Interval(0, 7), Law.CONSTANT),
    ("a = f32[4,8] abs(x)\n ROOT r = f32[8,4] transpose(a), dimensions={1,0}", Interval(0), Law.MOVED),
    ("a = f32[4,8] abs(x)\n b = f32[4,8] exponential(y)\n ROOT r = f32[4,8] add(a, b)", Interval(0), Law.SUM),
    ("a = f32[4,8] abs(x)\n ROOT r = f32[4,8] negate(a)", Interval(high=0), Law.SUM),
    ("a = f32[4,8] abs(x)\n b = f32[4,8] negate(a)\n"
     "ROOT r = f32[4] reduce(b, zero), dimensions={1}, to_apply=add", Interval(high=0), Law.SUM),
    ("a = f32[4,8] abs(x)\n"
     "ROOT r = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}", Interval(0), Law.SUM),
    ("a = f32[4,8] abs(x)\n b = f32[4,8] tanh(y)\n c = f32[4,8] negate(a)\n d = f32[4,8] abs(b)\n"
     "ROOT r = f32[4,8] multiply(c, d)", Interval(high=0), Law.PRODUCT),
    ("ROOT r = f32[4,8] multiply(x, x)", Interval(0), Law.SQUARE),
    ("a = f32[4,8] add(x, y)\n b = f32[4,8] add(y, x)\n ROOT r = f32[4,8] multiply(a, b)", Interval(0),
     Law.SQUARE),
    ("t = f32[] constant(4)\n tb = f32[4,8] broadcast(t), dimensions={}\n ROOT r = f32[4,8] power(x, tb)",
     Interval(0), Law.SQUARE),
    ("ROOT r = f32[4,8] abs(x)", Interval(0), Law.ABSOLUTE),
    ("ROOT r = f32[4,8] exponential(x)", Interval(0), Law.EXPONENTIAL),
    ("ROOT r = f32[4,8] sqrt(x)", Interval(0), Law.ROOT),
    ("ROOT r = f32[4,8] rsqrt(x)", Interval(0), Law.ROOT),
    ("ROOT r = f32[4,8] tanh(x)", Interval(-1, 1), Law.BOUNDED),
    ("ROOT r = f32[4,8] logistic(x)", Interval(0, 1), Law.BOUNDED),
    ("ROOT r = f32[4,8] clamp(zero, x, eighth)", Interval(0, 0.125), Law.CHOSEN),
    ("z = f32[4,8] broadcast(zero), dimensions={}\n ROOT r = f32[4,8] maximum(x, z)", Interval(0),
     Law.CHOSEN),
    ("a = f32[4,8] logistic(x)\n ROOT r = f32[4,8] log(a)", Interval(high=0), Law.MONOTONE),
    (MAXIMUM + "ROOT r = f32[4,8] subtract(x, mb)", Interval(high=0), Law.BELOW_MAXIMUM),
    (MAXIMUM + "ROOT r = f32[4,8] subtract(mb, x)", Interval(0), Law.BELOW_MAXIMUM),
    (MAXIMUM + "d = f32[4,8] subtract(x, mb)\n ROOT r = f32[4,8] exponential(d)", Interval(0, 1),
     Law.BELOW_MAXIMUM),
    (SUM_OF_EXP + "ROOT r = f32[4,8] divide(e, sb)", Interval(0, 1), Law.SHARE),
    (LOG_SUM_EXP + "ROOT r = f32[4,8] subtract(x, lb)", Interval(high=0), Law.LOG_SHARE),
    (MEANS + "ROOT r = f32[4] subtract(q, mm)", Interval(0), Law.VARIANCE),
]  # fmt: skip

#: The same with one thing changed that the law needs.
DOES_NOT = [
    "ROOT r = f32[4,8] add(x, y)",
    "ROOT r = f32[4,8] multiply(x, y)",
    "t = f32[] constant(3)\n tb = f32[4,8] broadcast(t), dimensions={}\n ROOT r = f32[4,8] power(x, tb)",
    "a = f32[4,8] abs(x)\n ROOT r = f32[4,8] subtract(a, y)",
    MAXIMUM + "ROOT r = f32[4,8] subtract(y, mb)",
    (MAXIMUM + "ROOT r = f32[4,8] subtract(x, mb)").replace("to_apply=max", "to_apply=add"),
    SUM_OF_EXP + "n = f32[4,8] negate(e)\n ROOT r = f32[4,8] divide(x, sb)",
    LOG_SUM_EXP + "ROOT r = f32[4,8] subtract(y, lb)",
    (LOG_SUM_EXP + "ROOT r = f32[4,8] subtract(x, lb)").replace("zero)", "low)"),
    MEANS + "k = f32[4] add(m, eighths)\n kk = f32[4] multiply(k, k)\nROOT r = f32[4] subtract(q, kk)",
]


@pytest.mark.parametrize(("body", "interval", "law"), HOLDS)
def test_laws(body: str, interval: Interval, law: Law) -> None:
    found = fact(body)
    assert found.interval == interval
    assert law in found.laws


@pytest.mark.parametrize("body", DOES_NOT)
def test_nothing_is_known_without_what_a_law_needs(body: str) -> None:
    found = fact(body)
    assert found.interval == Interval()
    assert not found.laws


def test_every_law_is_tested() -> None:
    assert {law for _, _, law in HOLDS} == set(Law)


@pytest.mark.parametrize(("body", "interval", "law"), HOLDS)
def test_the_reference_backend_stays_in_the_range(body: str, interval: Interval, law: Law) -> None:
    """What NumPy computes lies there, up to rounding."""
    module = program(body)
    rng = np.random.default_rng(5)
    for scale in (0.1, 1, 10):
        x, y = (rng.normal(scale=scale, size=(4, 8)).astype(np.float32) for _ in range(2))
        result = np.asarray(NumpyBackend().compile(module).run([x, y]), np.float64)
        result = result[~np.isnan(result)]
        assert np.all(result >= interval.low - 1e-5)
        assert np.all(result <= interval.high + 1e-5)


def test_a_reduction_beside_other_elements_says_nothing() -> None:
    """The maximum of each column beside the rows: square arrays, so that the dimensions fit."""
    body = """s = f32[4,4] slice(x), slice={[0:4],[0:4]}
  m = f32[4] reduce(s, low), dimensions={1}, to_apply=max
  b = f32[4,4] broadcast(m), dimensions={AXIS}
  ROOT r = f32[4,4] subtract(s, b)"""
    assert fact(body.replace("AXIS", "0")).interval == Interval(high=0)
    assert fact(body.replace("AXIS", "1")).interval == Interval()
    through_reshapes = body.replace(
        "b = f32[4,4] broadcast(m), dimensions={AXIS}",
        "m1 = f32[4,1] reshape(m)\n m2 = f32[4] reshape(m1)\n t = f32[4,4] broadcast(m2), dimensions={1}\n"
        "b = f32[4,4] transpose(t), dimensions={1,0}",
    )
    assert fact(through_reshapes).interval == Interval(high=0)


FUSIONS = """
f { p = f32[4,8] parameter(0)
  q = f32[4] parameter(1)
  qb = f32[4,8] broadcast(q), dimensions={0}
  d = f32[4,8] subtract(p, qb)
  ROOT a = f32[4,8] abs(d) }
g { p = f32[4,8] parameter(0)
  l = f32[] constant(-inf)
  ROOT m = f32[4] reduce(p, l), dimensions={1}, to_apply=max }
"""


def test_through_fusions() -> None:
    """The maximum is computed in one fusion and read in another; a second caller undoes it."""
    body = """m = f32[4] fusion(x), kind=kInput, calls=g
  a = f32[4,8] fusion(x, m), kind=kLoop, calls=f
  MORE
  ROOT r = f32[4,8] negate(a)"""
    module = program(body.replace("MORE", ""), FUSIONS)
    signs = Signs(module)
    assert signs.of(named(module, "d")) == Fact(Interval(high=0), frozenset({Law.BELOW_MAXIMUM}))
    assert signs.of(module.entry.root).interval == Interval(high=0)
    module = program(body.replace("MORE", "other = f32[4,8] fusion(y, m), kind=kLoop, calls=f"), FUSIONS)
    signs = Signs(module)
    assert signs.of(named(module, "d")).interval == Interval()
    assert signs.of(module.entry.root).interval == Interval(high=0)


def test_the_arguments_of_all_callers_count() -> None:
    computations = "h { p = f32[4,8] parameter(0) ROOT n = f32[4,8] negate(p) }\n"
    body = """a = f32[4,8] abs(x)
  first = f32[4,8] call(a), to_apply=h
  b = f32[4,8] OP(y)
  second = f32[4,8] call(b), to_apply=h
  ROOT r = f32[4,8] add(first, second)"""
    # When the computation is looked at, its second argument has not been: nothing is known of it.
    assert fact(body.replace("OP", "abs"), computations).interval == Interval()
    assert fact(body.replace("call(b), to_apply=h", "negate(b)").replace("OP", "abs"), computations) == Fact(
        Interval(high=0), frozenset({Law.ABSOLUTE, Law.SUM})
    )


def test_through_loops() -> None:
    """What a loop only hands on keeps its range; what it computes does not."""
    computations = """
c { s = (s32[], f32[4,8], f32[4,8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT r = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[4,8], f32[4,8]) parameter(0) i = s32[] get-tuple-element(s), index=0
  k = f32[4,8] get-tuple-element(s), index=1
  v = f32[4,8] get-tuple-element(s), index=2
  one = s32[] constant(1) j = s32[] add(i, one)
  w = f32[4,8] subtract(v, k)
  ROOT t = (s32[], f32[4,8], f32[4,8]) tuple(j, k, w) }
"""
    body = """a = f32[4,8] abs(x)
  i = s32[] constant(0)
  t = (s32[], f32[4,8], f32[4,8]) tuple(i, a, a)
  l = (s32[], f32[4,8], f32[4,8]) while(t), condition=c, body=b
  ROOT r = f32[4,8] get-tuple-element(l), index=INDEX"""
    assert fact(body.replace("INDEX", "1"), computations).interval == Interval(0)
    assert fact(body.replace("INDEX", "2"), computations).interval == Interval()


def test_integers_that_may_wrap_around() -> None:
    body = """n = s32[4,8] iota(), iota_dimension=1
  big = s32[] constant(1000000000)
  bigs = s32[4,8] broadcast(big), dimensions={}
  p = s32[4,8] multiply(n, BY)
  ROOT r = f32[4,8] convert(p)"""
    assert fact(body.replace("BY", "n")).interval == Interval(0, 49)
    assert fact(body.replace("BY", "bigs")).interval == Interval()


def test_what_is_rounded_to_an_integer() -> None:
    body = "a = f32[4,8] logistic(x)\n i = s32[4,8] convert(a)\n ROOT r = f32[4,8] convert(i)"
    assert fact(body).interval == Interval()


def test_a_range_above_0_holds_0() -> None:
    """exp comes as near to 0 as one likes: max(exp(x), 1e-38) is not exp(x)."""
    body = """tiny = f32[] constant(1e-38)
  t = f32[4,8] broadcast(tiny), dimensions={}
  e = f32[4,8] exponential(x)
  ROOT r = f32[4,8] maximum(e, t)"""
    module = program(body)
    assert Signs(module).order(named(module, "e"), named(module, "t")) is None


@pytest.mark.parametrize(
    ("body", "a", "b", "order"),
    [
        ("t = f32[4,8] tanh(x)\n o = f32[] constant(1)\n ROOT r = f32[4,8] broadcast(o), dimensions={}",
         "t", "r", Order.AT_MOST),
        (MAXIMUM + "ROOT r = f32[4,8] add(x, mb)", "x", "mb", Order.AT_MOST),
        (MAXIMUM + "ROOT r = f32[4,8] add(x, mb)", "mb", "x", Order.AT_LEAST),
        (MAXIMUM.replace("to_apply=max", "to_apply=min") + "ROOT r = f32[4,8] add(x, mb)", "x", "mb",
         Order.AT_LEAST),
        (LOG_SUM_EXP + "ROOT r = f32[4,8] add(x, lb)", "x", "lb", Order.AT_MOST),
        (MEANS + "ROOT r = f32[4] add(q, mm)", "mm", "q", Order.AT_MOST),
        (MEANS + "ROOT r = f32[4] add(q, mm)", "q", "m", None),
        ("ROOT r = f32[4,8] add(x, y)", "x", "y", None),
    ],
)  # fmt: skip
def test_orders(body: str, a: str, b: str, order: Order | None) -> None:
    module = program(body)
    found = Signs(module).order(named(module, a), named(module, b))
    assert (None if found is None else found[0]) is order


@pytest.mark.parametrize("stage", [0, 1])
def test_log_probabilities_of_a_real_program(stage: int) -> None:
    """Before optimisation and after it, in whatever fusions: the log-softmax of the training step's loss."""
    (dumped,) = open_dump("corpus/jax/train_mnist_mlp").modules
    assert dumped.pair is not None
    module = load_stage(dumped, dumped.pair[stage])
    signs = Signs(module)
    facts = [signs.of(i) for i in module.instructions() if i.opcode == "subtract"]
    laws = {law for f in facts for law in f.laws if f.interval.high == 0}
    assert {Law.BELOW_MAXIMUM, Law.LOG_SHARE} & laws


@pytest.mark.parametrize("name", ["train_mnist_mlp", "transformer"])
def test_values_of_real_programs_lie_in_their_ranges(name: str) -> None:
    """Those that the reference backend computes, before optimisation and after it."""
    (dumped,) = open_dump(f"corpus/jax/{name}").modules
    assert dumped.pair is not None
    known = 0
    for stage in dumped.pair:
        module = load_stage(dumped, stage)
        signs = Signs(module)
        seen: list[tuple[Instruction, float, float]] = []

        def probe(instruction: Instruction, value: Value, seen: Any = seen) -> None:
            if isinstance(instruction.shape, ArrayShape) and instruction.element_type.is_floating:
                numbers = np.asarray(value, np.float64)
                finite = numbers[np.isfinite(numbers)]
                if finite.size:
                    seen.append((instruction, float(finite.min()), float(finite.max())))

        NumpyBackend().compile(module).run(list(generate_inputs(module, 3).values), probe)
        for instruction, low, high in seen:
            found = signs.of(instruction)
            slack = 1e-5 * max(1.0, abs(low), abs(high))
            assert found.interval.low - slack <= low <= high <= found.interval.high + slack, instruction
            known += bool(found.laws)
    assert known > 20
