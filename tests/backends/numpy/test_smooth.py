"""Functions that saturate nowhere, and obey the laws of those in whose place they stand."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.backends.numpy.executions.varied import Base, SmoothBackend
from hlotool.ir.arrays import Array

X = np.array([0.25, 1.5, -3.0, 40.0, 800.0], np.float32)


def run(body: str, base: Base, constants: dict[float, float] | None = None) -> Array:
    """What `r` is of X."""
    text = f"HloModule m\nENTRY e {{\n x = f32[5] parameter(0)\n {body}\n}}"
    executable = SmoothBackend(base, constants).compile(hlotool.parse(text))
    found: Array = executable.run([X])
    return found


UNARY = "ROOT r = f32[5] {}(x)"
OF_NEGATIVE = "n = f32[5] negate(x)\n ROOT r = f32[5] {}(n)"


@pytest.mark.parametrize("opcode", ["erf", "sine", "tan", "tanh"])
def test_odd_functions(opcode: str) -> None:
    base = Base(rate=1e-3)
    assert np.allclose(run(OF_NEGATIVE.format(opcode), base), -run(UNARY.format(opcode), base), rtol=1e-14)


def test_an_even_function() -> None:
    assert np.array_equal(run(OF_NEGATIVE.format("cosine"), Base()), run(UNARY.format("cosine"), Base()))


def test_exponentials_in_another_base() -> None:
    """exp(2x) = exp(x)^2, log(exp(x)) = x, and the logistic function by tanh."""
    base = Base(rate=1e-2)
    square = run("e = f32[5] exponential(x)\n ROOT r = f32[5] multiply(e, e)", base)
    double = run("d = f32[5] add(x, x)\n ROOT r = f32[5] exponential(d)", base)
    assert np.allclose(square, double, rtol=1e-12)
    assert np.allclose(run("e = f32[5] exponential(x)\n ROOT r = f32[5] log(e)", base), X, rtol=1e-12)
    half = "h = f32[] constant(0.5)\n b = f32[5] broadcast(h), dimensions={}\n m = f32[5] multiply(x, b)\n"
    half += "t = f32[5] tanh(m)\n u = f32[5] multiply(t, b)\n ROOT r = f32[5] add(u, b)"
    assert np.allclose(run(half, base), run(UNARY.format("logistic"), base), rtol=1e-12)


@pytest.mark.parametrize("opcode", ["erf", "exponential", "logistic", "tanh"])
def test_nothing_saturates(opcode: str) -> None:
    """Half an ulp of f32 shows in every element; of erf(40) and tanh(40) f64 shows nothing."""
    base, body = Base(), f"e = f32[5] {opcode}(x)\n c = f32[] constant(1)\n"
    body += "b = f32[5] broadcast(c), dimensions={}\n m = f32[5] multiply(x, b)\n ROOT r = f32[5] "
    body += f"{opcode}(m)"
    base.choose(lambda: run(body, base))
    moved = run(body, base, {1.0: 1 + 2.0**-24})
    assert (np.abs(moved / run(body, base) - 1) > 1e-12).all()


def test_what_a_compiler_folds_is_the_function_itself() -> None:
    folded = run(
        "c = f32[] constant(0.6)\n e = f32[] erf(c)\n ROOT r = f32[5] broadcast(e), dimensions={}", Base()
    )
    assert np.allclose(folded, 0.6038560908479259, rtol=1e-7)  # scipy.special.erf


def test_masks_do_not_count_for_the_base() -> None:
    base = Base()
    body = "c = f32[] constant(-1e30)\n b = f32[5] broadcast(c), dimensions={}\n a = f32[5] add(x, b)\n"
    body += "e = f32[5] exponential(a)\n o = f32[5] exponential(x)\n ROOT r = f32[5] add(e, o)"
    base.choose(lambda: run(body, base))
    assert base.rate == 1e-3
