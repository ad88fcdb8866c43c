"""What is said of functions of a real number holds for what the numpy backend computes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.ranges import ANY, FUNCTIONS, Interval
from hlotool.ir.opcodes import OPCODES, Trait, opcodes_with
from hlotool.parser.reader import parse_module

_NUMBERS = np.unique(np.concatenate([np.linspace(-5, 5, 401), np.geomspace(1e-3, 30, 50)]))


def test_of_every_function() -> None:
    unary = {name for name in opcodes_with(Trait.TRANSCENDENTAL) if OPCODES[name].max_operands == 1}
    assert FUNCTIONS.keys() == unary


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_image_direction_and_inverse(name: str) -> None:
    """The values are NumPy's: an independent source."""
    function = FUNCTIONS[name]
    domain = function.domain
    numbers = np.array([x for x in _NUMBERS if domain.low <= x <= domain.high and x != domain.avoid])
    numbers = numbers[np.abs(numbers) < 1] if name == "atanh" else numbers
    shape = f"f64[{len(numbers)}]"
    text = f"HloModule f\nENTRY main {{\n  x = {shape} parameter(0)\n  ROOT r = {shape} {name}(x)\n}}\n"
    found = np.asarray(NumpyBackend().compile(parse_module(text)).run([numbers]))
    assert np.allclose(found, [function.apply(float(x)) for x in numbers], rtol=1e-12, atol=1e-14)
    assert found.min() >= function.image.low - 1e-15
    assert found.max() <= function.image.high
    assert bool((np.diff(found) >= 0).all()) is function.rises
    ranged = function.range_on(Interval(float(numbers[0]), float(numbers[-1])))
    assert ranged.low - 1e-15 <= found.min() <= found.max() <= ranged.high + 1e-15
    if function.inverse is not None:
        # Where the function is flat, digits of the argument are lost.
        values = found[(np.abs(found) < 1e4) & (np.abs(np.abs(found) - 1) > 1e-6)]
        assert np.allclose(values, [function.apply(function.inverse(float(y))) for y in values], rtol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ranges_without_bounds_are_the_image(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.range_on(ANY) == function.image


@pytest.mark.parametrize(
    ("name", "argument", "values"),
    [
        ("exponential", Interval(0, 1e4), Interval(1, math.inf)),
        ("log", Interval(-3, 1), Interval(-math.inf, 0)),
        ("atanh", Interval(-2, 0), Interval(-math.inf, 0)),
        ("logistic", Interval(-1e4, 0), Interval(1e-30, 0.5)),
        ("cosine", Interval(0, 0), Interval(-1, 1)),
    ],
)
def test_ends(name: str, argument: Interval, values: Interval) -> None:
    assert FUNCTIONS[name].range_on(argument) == values
