"""Pairs of programs that are the same function of real numbers, and pairs that nearly are."""

from __future__ import annotations

import pytest

import hlotool
from hlotool.facts.signs import Law
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import compare_modules

#: Reducers that the programs below call.
COMPUTATIONS = """
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
largest { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
backwards { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(b, a) }
squares {
  a = f32[] parameter(0) b = f32[] parameter(1)
  c = f32[] multiply(b, b) ROOT r = f32[] add(a, c)
}
"""

#: The parameters of all programs.
PARAMETERS = "".join(f"{name} = f32[4,6] parameter({number})\n" for number, name in enumerate("xyz"))
PARAMETERS += "square = f32[5,6] parameter(3)\n"


def prove(one: str, other: str) -> ExactResult:
    """Two bodies of one program, which end with the instruction `r`."""
    modules = []
    for body in (one, other):
        lines = [line.strip() for line in body.strip().split(";")]
        lines[-1] = f"ROOT {lines[-1]}"
        text = f"HloModule m\n{COMPUTATIONS}\nENTRY e {{\n{PARAMETERS}" + "\n".join(lines) + "\n}\n"
        modules.append(hlotool.parse(text))
    return compare_modules(*modules)


F = "f32[4,6]"
ONE = f"c = f32[] constant(1); one = {F} broadcast(c), dimensions={{}}; "


def half(value: str) -> str:
    return f"h = f32[] constant({value}); b = {F} broadcast(h), dimensions={{}}; "


#: A lower triangular matrix l, its product with its own transpose, the diagonal of ones.
TRIANGLE = (
    "t = f32[5,5] slice(square), slice={[0:5],[0:5]}; i = s32[5,5] iota(), iota_dimension=0;"
    " j = s32[5,5] iota(), iota_dimension=1; k = pred[5,5] compare(i, j), direction=GE;"
    " on = pred[5,5] compare(i, j), direction=EQ; eye = f32[5,5] convert(on);"
    " o = f32[] constant(0); os = f32[5,5] broadcast(o), dimensions={}; l = f32[5,5] select(k, t, os);"
    " a = f32[5,5] dot(l, l), lhs_contracting_dims={1}, rhs_contracting_dims={1};"
)

SQUARES = f"a = {F} multiply(x, x); b = {F} multiply(y, y); s = {F} add(a, b);"
LARGEST = (
    "i = f32[] constant(-inf); l = f32[4] reduce(x, i), dimensions={1}, to_apply=largest;"
    f" m = {F} broadcast(l), dimensions={{0}};"
)

#: Title → two programs that are equal, and one that is not equal to the first.
LAWS = {
    "distributive": (
        f"s = {F} add(x, y); r = {F} multiply(s, z)",
        f"a = {F} multiply(x, z); b = {F} multiply(y, z); r = {F} add(a, b)",
        f"a = {F} multiply(x, z); b = {F} multiply(y, x); r = {F} add(a, b)",
    ),
    "division by multiplication": (
        f"{ONE} i = {F} divide(one, y); r = {F} multiply(x, i)",
        f"r = {F} divide(x, y)",
        f"r = {F} divide(y, x)",
    ),
    "root of a square": (
        f"s = {F} multiply(x, x); r = {F} sqrt(s)",
        f"r = {F} abs(x)",
        f"r = {F} copy(x)",
    ),
    "reciprocal root": (
        f"s = {F} multiply(x, x); q = {F} rsqrt(s); r = {F} multiply(q, y)",
        f"s = {F} multiply(x, x); q = {F} sqrt(s); r = {F} divide(y, q)",
        f"s = {F} multiply(x, y); q = {F} sqrt(s); r = {F} divide(y, q)",
    ),
    "exponential of a sum": (
        f"s = {F} add(x, y); r = {F} exponential(s)",
        f"a = {F} exponential(x); b = {F} exponential(y); r = {F} multiply(a, b)",
        f"a = {F} exponential(x); b = {F} exponential(y); r = {F} add(a, b)",
    ),
    "logarithm of an exponential": (
        f"e = {F} exponential(x); r = {F} log(e)",
        f"r = {F} copy(x)",
        f"r = {F} copy(y)",
    ),
    "tanh by exponentials": (
        f"r = {F} tanh(x)",
        f"{ONE} n = {F} negate(x); d = {F} add(x, x); e = {F} exponential(d); a = {F} subtract(e, one);"
        f" b = {F} add(e, one); r = {F} divide(a, b)",
        f"{ONE} e = {F} exponential(x); a = {F} subtract(e, one); b = {F} add(e, one); r = {F} divide(a, b)",
    ),
    "logistic by tanh": (
        f"r = {F} logistic(x)",
        f"{half('0.5')} a = {F} multiply(x, b); t = {F} tanh(a); u = {F} multiply(t, b); r = {F} add(u, b)",
        f"{half('0.5')} t = {F} tanh(x); u = {F} multiply(t, b); r = {F} add(u, b)",
    ),
    "the sine is odd": (
        f"n = {F} negate(x); r = {F} sine(n)",
        f"s = {F} sine(x); r = {F} negate(s)",
        f"r = {F} sine(x)",
    ),
    "square by power": (
        f"{half('2')} r = {F} power(x, b)",
        f"r = {F} multiply(x, x)",
        f"s = {F} multiply(x, x); r = {F} multiply(s, x)",
    ),
    "larger of both": (
        f"r = {F} maximum(x, y)",
        f"p = pred[4,6] compare(x, y), direction=GT; r = {F} select(p, x, y)",
        f"p = pred[4,6] compare(x, y), direction=LT; r = {F} select(p, x, y)",
    ),
    "a decimal constant folded": (
        f"{half('3')} m = f32[] constant(0.044715); c = {F} broadcast(m), dimensions={{}};"
        f" p = {F} multiply(b, c); r = {F} multiply(x, p)",
        f"{half('0.134145')} r = {F} multiply(x, b)",
        f"{half('0.134146')} r = {F} multiply(x, b)",
    ),
    "sums in another order": (
        "z0 = f32[] constant(0); r = f32[] reduce(x, z0), dimensions={0,1}, to_apply=sum",
        "z0 = f32[] constant(0); a = f32[4] reduce(x, z0), dimensions={1}, to_apply=sum;"
        " r = f32[] reduce(a, z0), dimensions={0}, to_apply=sum",
        "z0 = f32[] constant(0); a = f32[4,5] slice(x), slice={[0:4],[0:5]};"
        " r = f32[] reduce(a, z0), dimensions={0,1}, to_apply=sum",
    ),
    "largest element": (
        "i = f32[] constant(-inf); r = f32[4] reduce(x, i), dimensions={1}, to_apply=largest",
        f"n = {F} negate(x); i = f32[] constant(-inf); m = {F} negate(n);"
        " r = f32[4] reduce(m, i), dimensions={1}, to_apply=backwards",
        f"n = {F} negate(x); i = f32[] constant(-inf); r = f32[4] reduce(n, i), dimensions={{1}},"
        " to_apply=largest",
    ),
    "product as a sum": (
        "r = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "a = f32[4,4,6] broadcast(x), dimensions={0,2}; b = f32[4,4,6] broadcast(y), dimensions={1,2};"
        " p = f32[4,4,6] multiply(a, b); z0 = f32[] constant(0);"
        " r = f32[4,4] reduce(p, z0), dimensions={2}, to_apply=sum",
        "t = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1};"
        " r = f32[4,4] transpose(t), dimensions={1,0}",
    ),
    "running sums": (
        "z0 = f32[] constant(0);"
        f" r = {F} reduce-window(x, z0), window={{size=1x6 pad=0_0x5_0}}, to_apply=sum",
        f"i = {F} iota(), iota_dimension=1; t = f32[6,6] iota(), iota_dimension=0;"
        " u = f32[6,6] iota(), iota_dimension=1; p = pred[6,6] compare(t, u), direction=LE;"
        " m = f32[6,6] convert(p);"
        " r = f32[4,6] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "z0 = f32[] constant(0);"
        f" r = {F} reduce-window(x, z0), window={{size=1x6 pad=0_0x5_0}}, to_apply=largest",
    ),
    "root of a sum": (
        "a = f32[1,3] slice(x), slice={[0:1],[0:3]}; b = f32[1,3] slice(y), slice={[0:1],[0:3]};"
        " s = f32[1,3] add(a, b); q = f32[1,3] rsqrt(s); r = f32[1,3] multiply(q, q)",
        "a = f32[1,3] slice(x), slice={[0:1],[0:3]}; b = f32[1,3] slice(y), slice={[0:1],[0:3]};"
        " s = f32[1,3] add(a, b); o = f32[] constant(1); os = f32[1,3] broadcast(o), dimensions={};"
        " r = f32[1,3] divide(os, s)",
        "a = f32[1,3] slice(x), slice={[0:1],[0:3]}; b = f32[1,3] slice(y), slice={[0:1],[0:3]};"
        " s = f32[1,3] add(a, b); q = f32[1,3] rsqrt(s); r = f32[1,3] multiply(s, q)",
    ),
    "tan as a quotient": (
        f"r = {F} tan(x)",
        f"s = {F} sine(x); c = {F} cosine(x); r = {F} divide(s, c)",
        f"s = {F} sine(x); c = {F} cosine(x); r = {F} divide(c, s)",
    ),
    "root with a sign": (
        f"a = {F} subtract(x, y); d = {F} divide(z, a); r = {F} sqrt(d)",
        f"a = {F} subtract(y, x); n = {F} negate(z); d = {F} divide(n, a); r = {F} sqrt(d)",
        f"a = {F} subtract(y, x); d = {F} divide(z, a); r = {F} sqrt(d)",
    ),
    "factor of a triangle times itself": (
        f"{TRIANGLE} r = f32[5,5] cholesky(a), lower=true",
        f"{TRIANGLE} d = f32[5,5] multiply(l, eye); z0 = f32[] constant(0);"
        " v = f32[5] reduce(d, z0), dimensions={0}, to_apply=sum; s = f32[5] sign(v);"
        " b = f32[5,5] broadcast(s), dimensions={1}; r = f32[5,5] multiply(l, b)",
        f"{TRIANGLE} r = f32[5,5] cholesky(a), lower=false",
    ),
    "solution times the matrix": (
        f"{TRIANGLE} q = f32[5,4] slice(square), slice={{[0:5],[0:4]}};"
        " s = f32[5,4] triangular-solve(l, q), left_side=true, lower=true, transpose_a=NO_TRANSPOSE;"
        " r = f32[5,4] dot(l, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        f"{TRIANGLE} r = f32[5,4] slice(square), slice={{[0:5],[0:4]}}",
        f"{TRIANGLE} r = f32[5,4] slice(l), slice={{[0:5],[0:4]}}",
    ),
    "transform of a sum": (
        f"s = {F} add(x, y); t = c64[4,4] fft(s), fft_type=RFFT, fft_length={{6}}; r = f32[4,4] real(t)",
        "a = c64[4,4] fft(x), fft_type=RFFT, fft_length={6};"
        " b = c64[4,4] fft(y), fft_type=RFFT, fft_length={6};"
        " s = c64[4,4] add(a, b); r = f32[4,4] real(s)",
        "t = c64[4,4] fft(x), fft_type=RFFT, fft_length={6}; r = f32[4,4] real(t)",
    ),
    "through bf16": (
        f"a = bf16[4,6] convert(x); b = {F} convert(a); r = {F} add(b, b)",
        f"r = {F} add(x, x)",
        f"r = {F} add(x, y)",
    ),
    "an integer division by a constant": (
        f"{half('41')} d = {F} divide(x, b); r = s32[4,6] convert(d)",
        f"{half('0.024390243')} d = {F} multiply(x, b); r = s32[4,6] convert(d)",
        f"{half('0.02449')} d = {F} multiply(x, b); r = s32[4,6] convert(d)",
    ),
}


#: Title → two programs that are equal by an inequality, the inequality, one that is not equal to the first.
INEQUALITIES = {
    "a sum of squares is not negative": (
        f"{SQUARES} r = {F} abs(s)",
        f"{SQUARES} r = {F} copy(s)",
        Law.SQUARE,
        f"{SQUARES} r = {F} negate(s)",
    ),
    "nothing exceeds the maximum": (
        f"{LARGEST} d = {F} subtract(x, m); {half('0')} r = {F} minimum(d, b)",
        f"{LARGEST} r = {F} subtract(x, m)",
        Law.BELOW_MAXIMUM,
        f"{LARGEST} r = {F} subtract(m, x)",
    ),
    "an exponential is not negative": (
        f"e = {F} exponential(x); f = {F} exponential(y); s = {F} add(e, f); {half('0')}"
        f" p = pred[4,6] compare(s, b), direction=LT; n = {F} negate(s); r = {F} select(p, n, s)",
        f"e = {F} exponential(x); f = {F} exponential(y); r = {F} add(e, f)",
        Law.EXPONENTIAL,
        f"e = {F} exponential(x); f = {F} exponential(y); s = {F} add(e, f); r = {F} negate(s)",
    ),
}


@pytest.mark.parametrize("title", INEQUALITIES)
def test_equal_by_an_inequality(title: str) -> None:
    one, other, law, wrong = INEQUALITIES[title]
    result = prove(one, other)
    assert result.relation is Relation.EQUAL
    assert law.value in result.laws
    assert prove(one, wrong).relation is Relation.UNEQUAL


@pytest.mark.parametrize("title", LAWS)
def test_equal(title: str) -> None:
    one, other, _ = LAWS[title]
    assert prove(one, other).relation is Relation.EQUAL


@pytest.mark.parametrize("title", LAWS)
def test_unequal(title: str) -> None:
    one, _, wrong = LAWS[title]
    result = prove(one, wrong)
    assert result.relation is Relation.UNEQUAL
    [leaf] = result.leaves
    assert leaf.witness is not None
    assert leaf.witness.expected != leaf.witness.actual


def test_the_logarithm_of_a_complex_number_by_its_parts() -> None:
    """As XLA writes it: log(max) + log1p((min / max)²) / 2, of the absolute parts.

    Where that is not equal nothing follows: only one of the programs has the function, which may need laws
    that are not known.
    """
    one = f"c = c64[4,6] complex(x, y); l = c64[4,6] log(c); r = {F} real(l)"
    parts = (
        f"a = {F} abs(x); b = {F} abs(y); m = {F} maximum(a, b); n = {F} minimum(a, b); q = {F} divide(n, m);"
        f" s = {F} multiply(q, q); g = {F} log-plus-one(s); f = {F} log(m);"
    )
    halved = half("0.5").replace("b =", "halves =")
    result = prove(one, f"{parts} {halved} k = {F} multiply(g, halves); r = {F} add(f, k)")
    assert result.relation is Relation.EQUAL
    assert result.laws == ["log(a b) = log(a) + log(b)"]
    assert prove(one, f"{parts} r = {F} add(f, g)").relation is Relation.REFUSED
