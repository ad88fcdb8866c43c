"""The gamma function's logarithm and derivatives, and Hurwitz' zeta, written in HLO as XLA writes them.

XLA: ChloLegalizeToStablehlo. Lanczos, A Precision Approximation of the Gamma Function, 1964; Johansson,
Rigorous high-precision computation of the Hurwitz zeta function, 2015, formula 5.
"""

from __future__ import annotations

import math

import numpy as np

from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ElementType
from hlotool.parser.mlir.arithmetic import Value, function

_G = 7.0
_LANCZOS = (
    0.9999999999998099, 676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406,
    12.507343278686905, -0.13857109526572012, 9.984369578019572e-06, 1.5056327351493116e-07,
)  # fmt: skip


def _reflected(x: Value) -> tuple[Value, Value]:
    """Whether the function is taken at 1 - x, and what it is taken at, less 1."""
    is_reflected = x < 0.5
    return is_reflected, is_reflected.select(-x, x - 1)


def _logarithm(z: Value) -> Value:
    """Of z + g + 1/2."""
    return (z / (_G + 0.5)).of("log-plus-one") + math.log(_G + 0.5)


@function("lgamma")
def _lgamma(x: Value) -> Value:
    is_reflected, z = _reflected(x)
    series = z.like(_LANCZOS[0])
    for number, coefficient in enumerate(_LANCZOS[1:], 1):
        series = series + coefficient / (z + number)
    log = _logarithm(z)
    # (z + 1/2) log(t) - t, which must not overflow.
    power = ((z + 0.5) - (z + (_G + 0.5)) / log) * log
    result = (power + (math.log(2) + math.log(math.pi)) / 2) + series.of("log")
    # sin(πx) by the distance from the next integer: exactly 0 at the poles.
    size = abs(x)
    fraction = size - size.of("floor")
    fraction = (fraction > 0.5).select(1 - fraction, fraction)
    log_of_sine = (math.pi * fraction).of("sine").of("log")
    reflection = (math.log(math.pi) - log_of_sine) - result
    reflection = log_of_sine.of("is-finite", kind=ElementType.PRED).select(reflection, -log_of_sine)
    result = is_reflected.select(reflection, result)
    return size.compared("EQ", math.inf).select(x.like(math.inf), result)


@function("digamma")
def _digamma(x: Value) -> Value:
    is_reflected, z = _reflected(x)
    series, slope = z.like(_LANCZOS[0]), z.like(0)
    for number, coefficient in enumerate(_LANCZOS[1:], 1):
        term = z + number
        slope = slope - coefficient / (term * term)
        series = series + coefficient / term
    result = (_logarithm(z) + slope / series) - _G / (z + (_G + 0.5))
    angle = math.pi * (x + abs((x + 0.5).of("floor")))
    reflection = result - (math.pi * angle.of("cosine")) / angle.of("sine")
    result = is_reflected.select(reflection, result)
    return ((x <= 0) & x.is_whole()).select(x.like(math.nan), result)


#: (2n)! / B(2n), of Euler and Maclaurin's formula, from n = 12 down to 1.
_BERNOULLI = (
    -7.166165256175667e+18, 1.8152105401943546e+17, -4597978722407473.0, 116467828143500.67,
    -2950130727918.164, 74724249600.0, -1892437580.3183792, 47900160.0, -1209600.0, 30240.0, -720.0, 12.0,
)  # fmt: skip
#: Terms of the series that are summed one by one, behind the first.
_SUMMED = 9


@function("zeta", count=2)
def _zeta(x: Value, q: Value) -> Value:
    at, negative = q, -x
    total = q**negative
    for _ in range(_SUMMED):
        at = at + 1
        total = total + at**negative
    at = at + 1
    last = at**negative
    integral = (last * at) / (x - 1)
    inverse = 1 / (at * at)
    tail = x.like(0)
    for number, coefficient in enumerate(_BERNOULLI[:-1]):
        first = 2 * (len(_BERNOULLI) - 1 - number)
        tail = ((x + first) * (x + (first - 1))) * (inverse * (tail + 1 / coefficient))
    tail = last * ((x / at) * (tail + 1 / _BERNOULLI[-1]) + 0.5)
    tiny = float(np.finfo(dtype_of(x.kind)).smallest_subnormal)
    result = (abs(last) < abs(total) * tiny).select(total, (total + integral) + tail)
    nan = x.like(math.nan)
    result = (x < 1).select(nan, result)
    is_low, is_whole = q <= 0, x.is_whole()
    result = (is_low & x.compared("NE", x.of("floor"))).select(nan, result)
    at_pole = (is_whole & (x % 2).compared("EQ", 0)).select(x.like(math.inf), nan)
    result = (is_low & q.is_whole()).select(at_pole, result)
    return x.compared("EQ", 1).select(x.like(math.inf), result)


@function("polygamma", count=2)
def _polygamma(n: Value, x: Value) -> Value:
    sign = 2 * (n % 2) - 1
    result = (sign * _lgamma(n + 1).of("exponential")) * _zeta(n + 1, x)
    result = n.compared("EQ", 0).select(_digamma(x), result)
    is_natural = n.is_whole() & n.compared("GE", 0)
    return is_natural.select(result, math.nan)
