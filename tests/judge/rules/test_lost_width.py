"""What only one of two programs rounds: width that is lost is wrong, width that is kept is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.judging import executed

from hlotool.ir.arrays import Array
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.freedoms import ON_TPU, UNKNOWN_TARGET, Freedoms
from hlotool.judge.rules.instructions import Sampler, narrowings, steps_of, terms_of
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

F32 = np.float32
HEALTHY = {Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING}
TPU = Freedoms("tpu", product=ON_TPU)


def _normal(*dims: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(F32)


def _bf16(*dims: int, seed: int = 0) -> Array:
    return _normal(*dims, seed=seed).astype(ml_dtypes.bfloat16)


def _leaf(
    before: str, after: str, arguments: list[Any], allowed: Freedoms = UNKNOWN_TARGET
) -> LeafComparison:
    actual = executed(after, arguments)
    judgement = judgement_of(parse_module(before), arguments, actual, tested=parse_module(after))
    [leaf] = judge(replace(judgement, freedoms=allowed)).leaves
    return leaf


# A sum of products of bf16, kept in f32; a loss of it; a step that keeps its weights in f32.
MIXED = """add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
ENTRY e {
  x = bf16[16,8] parameter(0)
  w = f32[8,4] parameter(1)
  y = f32[16,4] parameter(2)
  n = bf16[8,4] convert(w)
  d = bf16[16,4] dot(x, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = bf16[16,4] tanh(d)
  f = f32[16,4] convert(t)
  r = f32[16,4] subtract(f, y)
  e = f32[16,4] multiply(r, r)
  z = f32[] constant(0)
  l = f32[4] reduce(e, z), dimensions={0}, to_apply=add
  c = f32[] constant(0.3)
  b = f32[4] broadcast(c), dimensions={}
  ROOT o = f32[4] multiply(l, b)
}"""
MIXED_INPUTS = [_bf16(16, 8), _normal(8, 4, seed=1), _normal(16, 4, seed=2)]


def _through(text: str, name: str, shape: str, kind: str) -> str:
    """The program with one of its values rounded on the way to all that reads it."""
    line = next(line for line in text.splitlines() if f" {name} = " in line)
    wide, narrow = line.replace(f"{name} = ", f"{name}.w = ").replace("ROOT ", ""), f"{kind}[{shape}]"
    root = "ROOT " if "ROOT" in line else ""
    back = f"  {root}{name} = f32[{shape}] convert({name}.n)"
    return text.replace(line, f"{wide}\n  {name}.n = {narrow} convert({name}.w)\n{back}")


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize(("name", "shape"), [("l", "4"), ("o", "4"), ("e", "16,4")])
def test_a_value_of_f32_that_is_rounded_on_the_way_is_wrong(name: str, shape: str, kind: str) -> None:
    leaf = _leaf(MIXED, _through(MIXED, name, shape, kind), MIXED_INPUTS)
    assert leaf.verdict is Verdict.WRONG
    assert leaf.reason.startswith(f"the tested program rounds to {kind} at convert %{name}.n (line ")
    assert "what the reference has in f32" in leaf.reason


DOT = """ENTRY e {
  a = bf16[16,64] parameter(0)
  b = bf16[64,8] parameter(1)
  ROOT d = f32[16,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def test_a_product_that_is_returned_in_a_narrower_type_is_wrong() -> None:
    narrow = DOT.replace("ROOT d = f32", "n = bf16").replace(
        "{0}\n}", "{0}\n  ROOT d = f32[16,8] convert(n)\n}"
    )
    leaf = _leaf(DOT, narrow, [_bf16(16, 64), _bf16(64, 8, seed=1)])
    assert leaf.verdict is Verdict.WRONG
    assert "rounds to bf16 at dot %n (line 4)" in leaf.reason


SUM = """add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
ENTRY e {
  x = f32[8,64] parameter(0)
  z = f32[] constant(0)
  ROOT y = f32[8] reduce(x, z), dimensions={1}, to_apply=add
}"""


@pytest.mark.parametrize(
    "rounded",
    [
        "s = f32[] add(p, q)\n  ROOT r = f32[] reduce-precision(s), exponent_bits=8, mantissa_bits=7",
        "s = f32[] add(p, q)\n  n = bf16[] convert(s)\n  ROOT r = f32[] convert(n)",
    ],
)
def test_a_sum_whose_steps_are_rounded_is_wrong(rounded: str) -> None:
    leaf = _leaf(SUM, SUM.replace("ROOT s = f32[] add(p, q)", rounded), [_normal(8, 64)])
    assert leaf.verdict is Verdict.WRONG
    assert "adds up in bf16 at reduce %y" in leaf.reason


ROUNDING = """ENTRY e {
  x = f32[16,8] parameter(0)
  y = f32[16,8] parameter(1)
  s = f32[16,8] multiply(x, y)
  t = f32[8,8] slice(s), slice={[0:8], [0:8]}
  n = bf16[8,8] convert(t)
  w = f32[8,8] convert(n)
  ROOT r = f32[8,8] multiply(w, w)
}"""
ROUNDING_INPUTS = [_normal(16, 8), _normal(16, 8, seed=1)]


@pytest.mark.parametrize(
    "body",
    [
        # The rounding moves before the slice, behind a transpose, a negation and a power of two.
        "n = bf16[16,8] convert(s) t = bf16[8,8] slice(n), slice={[0:8], [0:8]} w = f32[8,8] convert(t)",
        """t = f32[8,8] slice(s), slice={[0:8], [0:8]} v = f32[8,8] transpose(t), dimensions={1,0}
           n = bf16[8,8] convert(v) u = f32[8,8] convert(n) w = f32[8,8] transpose(u), dimensions={1,0}""",
        """t = f32[8,8] slice(s), slice={[0:8], [0:8]} m = f32[8,8] negate(t) h = f32[] constant(0.25)
           hs = f32[8,8] broadcast(h), dimensions={} u = f32[8,8] multiply(m, hs) n = bf16[8,8] convert(u)
           v = f32[8,8] convert(n) f = f32[] constant(4) fs = f32[8,8] broadcast(f), dimensions={}
           k = f32[8,8] multiply(v, fs) w = f32[8,8] negate(k)""",
        # It is written as what keeps the type.
        """t = f32[8,8] slice(s), slice={[0:8], [0:8]}
           w = f32[8,8] reduce-precision(t), exponent_bits=8, mantissa_bits=7""",
    ],
)
def test_a_rounding_that_the_reference_does_elsewhere_is_legal(body: str) -> None:
    start, end = ROUNDING.index("  t = "), ROUNDING.index("  ROOT")
    after = f"{ROUNDING[:start]}{body}\n{ROUNDING[end:]}"
    assert _leaf(ROUNDING, after, ROUNDING_INPUTS).verdict in HEALTHY


def _without_cast() -> str:
    start, end = ROUNDING.index("  n = "), ROUNDING.index("  ROOT")
    return f"{ROUNDING[:start]}{ROUNDING[end:].replace('(w, w)', '(t, t)')}"


def test_a_cast_that_was_removed_is_named() -> None:
    leaf = _leaf(ROUNDING, _without_cast(), ROUNDING_INPUTS)
    assert leaf.verdict is Verdict.ROUNDING
    assert leaf.reason.startswith(
        "excess precision: the cast to bf16 at convert %n (line 6) of the reference is gone"
    )


def test_a_cast_may_not_be_removed_where_every_rounding_is_asked_for() -> None:
    leaf = _leaf(ROUNDING, _without_cast(), ROUNDING_INPUTS, Freedoms(excess_precision=False))
    assert leaf.verdict is Verdict.WRONG
    assert "xla_allow_excess_precision=false" in leaf.reason


REDUCED = """ENTRY e {
  x = f32[64] parameter(0)
  q = f32[64] reduce-precision(x), exponent_bits=8, mantissa_bits=7
  ROOT r = f32[64] multiply(q, q)
}"""


def test_a_reduction_of_precision_is_meant() -> None:
    dropped = REDUCED.replace("  q = f32[64] reduce-precision(x), exponent_bits=8, mantissa_bits=7\n", "")
    leaf = _leaf(REDUCED, dropped.replace("(q, q)", "(x, x)"), [_normal(64)])
    assert leaf.verdict is Verdict.WRONG
    assert leaf.reason.endswith(
        "reduce-precision %q (line 3) of the reference was dropped, which asks for it"
    )
    coarser = REDUCED.replace("mantissa_bits=7", "mantissa_bits=5")
    assert _leaf(REDUCED, coarser, [_normal(64)]).verdict is Verdict.WRONG


def test_a_reduction_of_precision_may_be_written_otherwise() -> None:
    """As a conversion there and back, or behind what moves data."""
    body = "n = bf16[64] convert(x)\n  q = f32[64] convert(n)"
    cast = REDUCED.replace("q = f32[64] reduce-precision(x), exponent_bits=8, mantissa_bits=7", body)
    assert _leaf(REDUCED, cast, [_normal(64)]).verdict in HEALTHY
    power = REDUCED.replace("multiply(q, q)", "power(q, c)").replace(
        "  ROOT", "  t = f32[] constant(2)\n  c = f32[64] broadcast(t), dimensions={}\n  ROOT"
    )
    assert _leaf(REDUCED, power, [_normal(64)]).verdict in HEALTHY


PRODUCT = """ENTRY e {
  a = f32[16,64] parameter(0)
  b = f32[64,8] parameter(1)
  t = f32[16,64] tanh(a)
  ROOT d = f32[16,8] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
PRODUCT_INPUTS = [_normal(16, 64), _normal(64, 8, seed=1)]
OPERANDS = PRODUCT.replace("(t, b)", "(u, v)").replace(
    "  ROOT", "  u = bf16[16,64] convert(t)\n  v = bf16[64,8] convert(b)\n  ROOT"
)


def test_operands_are_free_where_the_target_or_an_algorithm_rounds_them() -> None:
    assert _leaf(PRODUCT, OPERANDS, PRODUCT_INPUTS).verdict is Verdict.WRONG
    assert _leaf(PRODUCT, OPERANDS, PRODUCT_INPUTS, TPU).verdict in HEALTHY
    asked = PRODUCT.replace("={0}\n}", "={0}, algorithm=dot_bf16_bf16_f32\n}")
    assert _leaf(asked, OPERANDS, PRODUCT_INPUTS).verdict in HEALTHY


def test_what_is_read_by_more_than_products_is_not_free_on_a_tpu() -> None:
    more = """
  s = f32[16,64] add(READ, READ)
  z = f32[] constant(0.001)
  zs = f32[16,64] broadcast(z), dimensions={}
  m = f32[16,64] multiply(s, zs)
  k = f32[16,8] slice(m), slice={[0:16], [0:8]}
  ROOT r = f32[16,8] add(d, k)
}"""
    before, after = (
        text.replace("ROOT d", "d").replace("={0}\n}", "={0}" + more.replace("READ", read))
        for text, read in ((PRODUCT, "t"), (OPERANDS, "g"))
    )
    after = after.replace("  v = bf16", "  g = f32[16,64] convert(u)\n  v = bf16")
    leaf = _leaf(before, after, PRODUCT_INPUTS, TPU)
    assert leaf.verdict is Verdict.WRONG
    assert "convert %u" in leaf.reason


def test_a_product_in_three_pieces_of_bf16_is_legal() -> None:
    """Each operand is the sum of what bf16 holds of it: the pieces are rounded, and nothing is lost."""
    pieces = """
  piece0 = bf16[16,64] convert(t)
  piece0w = f32[16,64] convert(piece0)
  l1 = f32[16,64] subtract(t, piece0w)
  piece1 = bf16[16,64] convert(l1)
  piece1w = f32[16,64] convert(piece1)
  l2 = f32[16,64] subtract(l1, piece1w)
  piece2 = bf16[16,64] convert(l2)
  piece2w = f32[16,64] convert(piece2)
  d0 = f32[16,8] dot(piece0w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d1 = f32[16,8] dot(piece1w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d2 = f32[16,8] dot(piece2w, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[16,8] add(d1, d2)
  ROOT d = f32[16,8] add(d0, s)
}"""
    split = PRODUCT[: PRODUCT.index("\n  ROOT")] + pieces
    assert _leaf(PRODUCT, split, PRODUCT_INPUTS).verdict in HEALTHY


def test_a_product_in_another_order_says_nothing() -> None:
    """A compiler may multiply in another order: what it rounds then the reference never has."""
    before = """ENTRY e {
  x = bf16[64] parameter(0)
  y = bf16[64] parameter(1)
  z = bf16[64] parameter(2)
  m = bf16[64] multiply(x, y)
  n = bf16[64] multiply(m, z)
  w = f32[64] convert(n)
  ROOT r = f32[64] multiply(w, w)
}"""
    after = before.replace("multiply(x, y)", "multiply(y, z)").replace("multiply(m, z)", "multiply(x, m)")
    inputs = [_bf16(64, seed=seed) for seed in range(3)]
    assert _leaf(before, after, inputs).verdict in HEALTHY


#: Scaled down twice in f16, then squared in f32.
SCALED = """ENTRY e {
  x = f32[16,8] parameter(0)
  y = f32[16,8] parameter(1)
  h = f16[16,8] convert(x)
  c = f16[] constant(0.79785)
  cs = f16[16,8] broadcast(c), dimensions={}
  d = f16[] constant(0.044708)
  ds = f16[16,8] broadcast(d), dimensions={}
  s = f16[16,8] multiply(h, cs)
  t = f16[16,8] multiply(s, ds)
  f = f32[16,8] convert(t)
  q = f32[16,8] multiply(f, f)
  ROOT r = f32[16,8] add(q, y)
}"""
#: Both factors in one, which is rounded: all that follows is 1e-4 off.
SCALED_ONCE = SCALED.replace("constant(0.79785)", "constant(0.035675)").replace("multiply(s, ds)", "copy(s)")


def test_width_is_lost_where_constants_of_a_narrow_type_were_merged() -> None:
    """A square is rounded to bf16, in a program that rounds to f16 before."""
    arguments = [_normal(16, 8), F32(1e-3) * _normal(16, 8, seed=1)]
    assert _leaf(SCALED, SCALED_ONCE, arguments).verdict in HEALTHY
    rounded = SCALED_ONCE.replace("add(q, y)", "add(p, y)").replace(
        "  ROOT", "  p = f32[16,8] reduce-precision(q), exponent_bits=8, mantissa_bits=7\n  ROOT"
    )
    leaf = _leaf(SCALED, rounded, arguments)
    assert leaf.verdict is Verdict.WRONG
    assert "rounds to bf16 at reduce-precision %p" in leaf.reason


def test_width_is_lost_within_a_few_ulps_of_what_is_added_to_it() -> None:
    """A correction is rounded to bf16, in a program of f32: the sum is two ulps off."""
    arguments = [_normal(16, 8), F32(1e-5) * _normal(16, 8, seed=1)]
    before = """ENTRY e {
  x = f32[16,8] parameter(0)
  y = f32[16,8] parameter(1)
  q = f32[16,8] multiply(y, y)
  p = f32[16,8] sqrt(q)
  ROOT r = f32[16,8] add(x, p)
}"""
    after = _through(before, "p", "16,8", "bf16")
    leaf = _leaf(before, after, arguments)
    assert np.abs(executed(after, arguments) - executed(before, arguments)).max() < 2**-22
    assert leaf.verdict is Verdict.WRONG
    assert "rounds to bf16" in leaf.reason


def test_what_is_left_of_terms_that_cancel_is_not_looked_for() -> None:
    """1e-13 of terms of 1,000 is f64's own rounding: another order gives another number."""
    module = parse_module(
        """HloModule m
add { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT s = bf16[] add(a, b) }
within { p = bf16[64] parameter(0) zero = bf16[] constant(0)
  ROOT r = bf16[] reduce(p, zero), dimensions={0}, to_apply=add }
ENTRY e { x = bf16[64] parameter(0) n = bf16[64] negate(x) b = bf16[64] bitcast(n)
  ROOT f = bf16[] fusion(b), kind=kInput, calls=within }"""
    )
    named = {i.name: i for i in module.instructions()}
    wanted = {n.instruction: n for n in narrowings(module) if n.adds}
    assert set(wanted) == {named["r"]}
    assert terms_of(module, wanted) == {named["r"]: named["n"]}
    for value, is_kept in ((1e-13, False), (-1e-13, False), (1e-9, True), (3.7, True)):
        sampler = Sampler(wanted, terms_of(module, wanted))
        sampler(named["n"], np.array([1000.0, -1000.0, np.inf]))
        sampler(named["r"], np.array(value))
        assert (named["r"] in sampler.samples) is is_kept


def test_a_pool_adds_up_in_the_type_that_its_scatter_has() -> None:
    """XLA:CPU makes a scatter of select-and-scatter; both round to bf16 at every addition."""
    functions = """
ge { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
add { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(a, b) }
"""
    module = parse_module(
        f"""HloModule m{functions}
ENTRY e {{ x = bf16[8] parameter(0) s = bf16[4] parameter(1) z = bf16[] constant(0)
  ROOT r = bf16[8] select-and-scatter(x, s, z), window={{size=2 stride=2}}, select=ge, scatter=add }}"""
    )
    [found] = [n for n in narrowings(module) if n.instruction.opcode == "select-and-scatter"]
    assert found.adds
    assert [step.opcode for step in steps_of(found.instruction)] == ["parameter", "parameter", "add"]
