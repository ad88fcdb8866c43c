"""Divisors of means in programs with smaller sizes: in gradients, and where a compiler folded a factor in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.replaying import replayed_pair

from hlotool.ir.module import Module
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import scaled

_NO_LIMITS = Limits(float("inf"), float("inf"))
_SAME = (Verdict.IDENTICAL, Verdict.AGREE)

#: A mean of squares of 768 elements, and its gradient: 2 / 768 times something that is broadcast over them.
BEFORE = """HloModule m

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

ENTRY e {
  x = f32[60,768] parameter(0)
  g = f32[60] parameter(1)
  z = f32[] constant(0)
  n = f32[] constant(768)
  ns = f32[60] broadcast(n), dimensions={}
  k = f32[] constant(2)
  ks = f32[60] broadcast(k), dimensions={}
  squares = f32[60,768] multiply(x, x)
  total = f32[60] reduce(squares, z), dimensions={1}, to_apply=sum
  mean = f32[60] divide(total, ns)
  quotient = f32[60] divide(g, ns)
  twice = f32[60] multiply(quotient, ks)
  spread = f32[60,768] broadcast(twice), dimensions={0}
  gradient = f32[60,768] multiply(spread, x)
  ROOT r = (f32[60], f32[60,768]) tuple(mean, gradient)
}
"""
#: What a compiler makes of it: the factor and the number of elements are one constant, in a fusion.
AFTER = """HloModule m

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

scale {
  p = f32[60] parameter(0)
  n = f32[] constant(0.00130208337)
  ns = f32[60] broadcast(n), dimensions={}
  ROOT mean = f32[60] multiply(p, ns)
}

twice { p = f32[] parameter(0) ROOT ks = f32[60] broadcast(p), dimensions={} }

times {
  p = f32[60] parameter(0)
  ks = f32[60] parameter(1)
  ROOT q = f32[60] multiply(p, ks)
}

ENTRY e {
  x = f32[60,768] parameter(0)
  g = f32[60] parameter(1)
  z = f32[] constant(0)
  squares = f32[60,768] multiply(x, x)
  total = f32[60] reduce(squares, z), dimensions={1}, to_apply=sum
  mean = f32[60] fusion(total), kind=kLoop, calls=scale
  k = f32[] constant(0.00260416674)
  ks = f32[60] fusion(k), kind=kLoop, calls=twice
  quotient = f32[60] fusion(g, ks), kind=kLoop, calls=times
  spread = f32[60,768] broadcast(quotient), dimensions={0}
  gradient = f32[60,768] multiply(spread, x)
  ROOT r = (f32[60], f32[60,768]) tuple(mean, gradient)
}
"""


def constants(before: str, after: str, plan: str = "768=7,60=5") -> list[dict[str, float]]:
    """The constants of both programs, by name, with smaller sizes."""
    found = scaled({"0": parse_module(before), "1": parse_module(after)}, plan, _NO_LIMITS)
    assert found is not None
    return [numbers(module) for module in found.programs.values()]


def numbers(module: Module) -> dict[str, float]:
    return {i.name: float(i.literal.array.flat[0]) for i in module.instructions() if i.literal is not None}


def replayed_scaled(folder: Path, before: str, after: str, scale: str) -> Verdict:
    """The verdict on two programs with smaller sizes."""
    row = replayed_pair(folder, before, after, scale=scale)
    assert row.scaled is not None
    return row.verdict


def test_divisors_in_gradients_follow(tmp_path: Path) -> None:
    """The number that divides what is spread over so many, and the one with a factor of 2 in it."""
    before, after = constants(BEFORE, AFTER)
    assert before["n"] == 7
    assert before["k"] == 2
    assert after["n"] == np.float32(1 / 7)
    assert after["k"] == np.float32(2 / 7)
    assert replayed_scaled(tmp_path / "dump", BEFORE, AFTER, "768=7,60=5") in _SAME


def test_a_lost_factor_still_shows(tmp_path: Path) -> None:
    """A constant that is not 2 / 768 is no reason to let it be 2 / 7."""
    odd = AFTER.replace("0.00260416674", "0.00265")
    assert replayed_scaled(tmp_path / "dump", BEFORE, odd, "768=7,60=5") is Verdict.WRONG
    lost = AFTER.replace("constant(0.00260416674)", "constant(0.00130208337)")
    assert replayed_scaled(tmp_path / "lost", BEFORE, lost, "768=7,60=5") is Verdict.WRONG


@pytest.mark.parametrize("factor", [0.3, -0.3, 5, 7.68])
def test_any_factor_of_the_other_program_is_told(factor: float, tmp_path: Path) -> None:
    """Also a negative one, and one that is the number of elements times what the compiler makes of it."""
    before = BEFORE.replace("constant(2)", f"constant({factor})")
    after = AFTER.replace("0.00260416674", repr(float(np.float32(factor / 768))))
    first, second = constants(before, after)
    assert first["n"] == 7
    assert second["k"] == np.float32(factor / 7)
    assert replayed_scaled(tmp_path / "dump", before, after, "768=7,60=5") in _SAME


def test_a_factor_that_nobody_has_leaves_all_as_they_are() -> None:
    """0.21 / 768 where the other program multiplies by 0.3 and by 0.7: which constants it is made of is not
    known."""
    before = BEFORE.replace("constant(2)", "constant(0.3)").replace(
        "  spread = f32[60,768] broadcast(twice)",
        "  c = f32[] constant(0.7)\n  cs = f32[60] broadcast(c), dimensions={}\n"
        "  less = f32[60] multiply(twice, cs)\n  spread = f32[60,768] broadcast(less)",
    )
    after = AFTER.replace("0.00260416674", repr(float(np.float32(0.21 / 768))))
    first, second = constants(before, after)
    assert first["n"] == 768
    assert second["n"] == np.float32(1 / 768)
    assert second["k"] == np.float32(0.21 / 768)


def test_two_factors_are_no_less_in_doubt_where_no_sum_is_seen() -> None:
    """0.21 / 768 again, before what is not followed: a maximum; 0.3 and 0.7 are still there for something."""
    before = BEFORE.replace("constant(2)", "constant(0.3)").replace(
        "  spread = f32[60,768] broadcast(twice)",
        "  c = f32[] constant(0.7)\n  cs = f32[60] broadcast(c), dimensions={}\n"
        "  less = f32[60] multiply(twice, cs)\n  spread = f32[60,768] broadcast(less)",
    )
    after = AFTER.replace("  spread =", "  most = f32[60] maximum(quotient, quotient)\n  spread =")
    after = after.replace("broadcast(quotient)", "broadcast(most)").replace(
        "  squares =", "  a = f32[] constant(0.3)\n  b = f32[] constant(0.7)\n  squares ="
    )
    made_of_two = after.replace("0.00260416674", repr(float(np.float32(0.21 / 768))))
    first, second = constants(before, made_of_two)
    assert (first["n"], second["n"]) == (768, float(np.float32(1 / 768)))
    # Another number is made of something else.
    first, second = constants(before, after.replace("0.00260416674", "0.00029"))
    assert (first["n"], second["n"]) == (7, float(np.float32(1 / 7)))


#: A third result, and the one more argument that it is made of.
_ROOT = "  ROOT r = (f32[60], f32[60,768]) tuple(mean, gradient)"
_THREE = "  ROOT r = (f32[60], f32[60,768], f32[{0}]) tuple(mean, gradient, other)"


@pytest.mark.parametrize(("other", "follows"), [("add(wide, x)", True), ("negate(wide)", False)])
def test_all_that_a_number_divides_is_spread_over_these_elements(other: str, follows: bool) -> None:
    """Where it divides a value that is broadcast over 768 others by chance, it may be anything, and both
    programs keep it."""
    more = (
        "  h = f32[60] parameter(2)\n  less = f32[60] {0}(h, {1})\n"
        "  wide = f32[60,768] broadcast(less), dimensions={{0}}\n"
        f"  other = f32[60,768] {other}\n{_THREE.format('60,768')}"
    )
    part = "  m = f32[] constant(0.00130208337)\n  ms = f32[60] broadcast(m), dimensions={{}}\n"
    first, second = constants(
        BEFORE.replace(_ROOT, more.format("divide", "ns")),
        AFTER.replace(_ROOT, (part + more).format("multiply", "ms")),
    )
    assert first["n"] == (7 if follows else 768)
    assert second["m"] == second["n"] == np.float32(1 / first["n"])


def test_a_number_in_a_gradient_divides_what_is_summed_up_beside_something_else() -> None:
    """A sum times a factor, and the difference of two such, as the gradient of a normalisation has them."""
    before = BEFORE.replace("divide(g, ns)", "divide(moved, ns)").replace(
        "  quotient =",
        "  times = f32[60] multiply(total, g)\n  moved = f32[60] subtract(times, total)\n  quotient =",
    )
    before = before.replace("broadcast(twice), dimensions={0}", "broadcast(g), dimensions={0}")
    before = before.replace("tuple(mean, gradient)", "tuple(twice, gradient)")
    assert constants(before, before)[0]["n"] == 7
    # With something that is no sum beside it, nothing says what the quotient is of.
    nearly = before.replace("subtract(times, total)", "subtract(times, g)")
    assert constants(nearly, nearly)[0]["n"] == 768


def test_a_constant_that_may_be_made_of_two_numbers_stays() -> None:
    """1 / 384 is 2 / 768 and a mean over 384, and both programs have means over either."""
    more = """  y = f32[60,384] parameter(2)
  m = f32[] constant({0})
  ms = f32[60] broadcast(m), dimensions={{}}
  others = f32[60] reduce(y, z), dimensions={{1}}, to_apply=sum
  other = f32[60] {1}(others, ms)
""" + _THREE.format(60)
    before = BEFORE.replace(_ROOT, more.format("384", "divide"))
    after = AFTER.replace(_ROOT, more.format("0.00260416674", "multiply"))
    first, second = constants(before, after, "768=7,384=11,60=5")
    assert (first["n"], first["m"]) == (768, 384)
    assert second["k"] == second["m"] == np.float32(1 / 384)
    # Where no gradient has it, each follows the sum that it divides.
    plain = before.replace("constant(2)", "constant(1)").replace("divide(g, ns)", "multiply(g, g)")
    first, _ = constants(plain, plain, "768=7,384=11,60=5")
    assert (first["n"], first["m"]) == (7, 11)


@pytest.mark.xla
def test_a_training_step(tmp_path: Path) -> None:
    """Layer norms, norms of squares and a mean as loss: what XLA makes of the gradients computes the same
    with smaller sizes, and the norms divide by what they sum up."""
    import jax
    import jax.numpy as jnp

    def layer(x: jax.Array, weight: jax.Array) -> jax.Array:
        centred = x - x.mean(-1, keepdims=True)
        normal = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        hidden = jnp.tanh(normal @ weight)
        return hidden * jax.lax.rsqrt((hidden**2).mean(-1, keepdims=True) + 1e-6)

    def loss(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        for weight in weights:
            x = layer(x, weight)
        return ((x - y) ** 2).mean()

    def step(weights: list[jax.Array], x: jax.Array, y: jax.Array) -> list[jax.Array]:
        gradients = jax.grad(loss)(weights, x, y)
        return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)]

    weights = [jnp.zeros(dims, jnp.float32) for dims in ((320, 448), (448, 320))]
    batch = jnp.zeros((24, 50, 320), jnp.float32)
    lowered = jax.jit(step).lower(weights, batch, batch)
    before, after = lowered.as_text("hlo"), lowered.compile().as_text()
    assert after is not None
    first, second = constants(before, after, "448=7,320=5,24=3,50=4")
    assert {320.0, 448.0}.isdisjoint(first.values())
    assert not {float(np.float32(k / n)) for k in (1, 2) for n in (320, 448)} & {*second.values()}
    assert replayed_scaled(tmp_path / "dump", before, after, "448=7,320=5,24=3,50=4") in _SAME
