"""Differences that constants explain which a compiler may have rounded, and those that they do not."""

from __future__ import annotations

import numpy as np
import pytest
from support.rewrites import CORPUS

import hlotool
from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.thresholds import ROOTS
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import compare_modules
from hlotool.runs.exact.within import comparing
from hlotool.runs.program import compile_program

#: Six constants that no simple number rounds to.
CONSTANTS = [0.73218413, 1.9274635, 3.1823457, 0.41927364, 2.2718371, 1.3719283]
F = "f32[4,6]"


def scaled(value: str, constants: list[float], name: str) -> tuple[str, str]:
    """Instructions that multiply a value by one constant after the other, and the name of the result."""
    lines = ""
    for number, constant in enumerate(constants):
        lines += f"{name}{number} = f32[] constant({constant:.9g})\n"
        lines += f"{name}b{number} = {F} broadcast({name}{number}), dimensions={{}}\n"
        lines += f"{name}m{number} = {F} multiply({value}, {name}b{number})\n"
        value = f"{name}m{number}"
    return lines, value


def program(constants: list[float], rest: str = "", function: str = "erf") -> hlotool.Module:
    """f(x · the product of `constants`) · y, or what `rest` makes of the product in its place."""
    lines, value = scaled("x", constants, "c")
    rest = rest or f"f = {F} {function}({value})\n ROOT r = {F} multiply(f, y)"
    text = f"HloModule m\nENTRY e {{\n x = {F} parameter(0)\n y = {F} parameter(1)\n {lines} {rest}\n}}"
    return hlotool.parse(text)


def folded(constants: list[float], off: float = 1.0) -> float:
    """Their product as a compiler folds it, every step in f32."""
    product = np.float32(1)
    for constant in constants:
        product *= np.float32(constant)
    return float(product * np.float32(off)) if off != 1 else float(product)


def prove(one: hlotool.Module, other: hlotool.Module) -> ExactResult:
    return compare_modules(one, other)


@pytest.mark.parametrize("function", ["erf", "exponential", "tanh"])
def test_a_product_of_six_constants_is_no_difference_for_certain(function: str) -> None:
    """No relation has so many factors."""
    found = prove(program(CONSTANTS, function=function), program([folded(CONSTANTS)], function=function))
    assert found.relation is Relation.REFUSED
    assert "off both programs return the same" in found.leaves[0].reason


def test_arguments_at_which_a_constant_decides_nothing_accuse_no_program() -> None:
    """c·x / (c·x + erf(y)), where y is 0 in the first point: as of an update that a norm makes the same."""
    rest = f"e = {F} erf(y)\n s = {F} add({{0}}, e)\n ROOT r = {F} divide({{0}}, s)"
    one = program(CONSTANTS, rest.format(scaled("x", CONSTANTS, "c")[1]))
    other = program([folded(CONSTANTS)], rest.format(scaled("x", CONSTANTS[:1], "c")[1]))
    given = np.ones((4, 6), np.float32), np.zeros((4, 6), np.float32)
    backend = NumpyBackend()
    sides = [compile_program("", "", module, backend) for module in (one, other)]
    found = comparing(sides[0], sides[1], arguments=given)(30.0, 2)
    assert found.relation is Relation.REFUSED, found.leaves


@pytest.mark.parametrize("off", [1 + 2e-6, 1 - 2e-6, 1 + 1e-4])
def test_a_constant_that_is_further_off_is_another_one(off: float) -> None:
    assert prove(program(CONSTANTS), program([folded(CONSTANTS, off)])).relation is Relation.UNEQUAL


@pytest.mark.parametrize(("original", "ulps"), [(CONSTANTS[0], 3), (1.0, -3), (0.5, 3)])
def test_a_constant_beside_its_original_is_off_by_one_rounding_at_most(original: float, ulps: int) -> None:
    """Nobody computed 0.7321843 from 0.7321841; below 1 three ulps are no more than four operations round."""
    near = np.float32(original)
    for _ in range(abs(ulps)):
        near = np.nextafter(near, np.float32(2 * ulps))
    found = prove(program([original, CONSTANTS[1]]), program([float(near), CONSTANTS[1]]))
    assert found.relation is Relation.UNEQUAL


def test_rounded_constants_excuse_no_other_fault() -> None:
    """The same folded constant, and beside it y in place of z, a lost term, or one element that is off."""
    lines, value = scaled("x", [folded(CONSTANTS)], "d")
    for fault in (
        f"f = {F} erf({value})\n ROOT r = {F} multiply(f, x)",
        f"f = {F} erf({value})\n g = {F} multiply(f, y)\n e = f32[] constant(1e-6)\n"
        f" b = {F} broadcast(e), dimensions={{}}\n ROOT r = {F} add(g, b)",
    ):
        text = f"HloModule m\nENTRY e {{\n x = {F} parameter(0)\n y = {F} parameter(1)\n {lines} {fault}\n}}"
        found = prove(program(CONSTANTS), hlotool.parse(text))
        assert found.relation is Relation.UNEQUAL


@pytest.mark.parametrize(
    ("rate", "relation"), [(1e-6, Relation.REFUSED), (1.00001e-6, Relation.UNEQUAL), (2e-6, Relation.UNEQUAL)]
)
def test_a_rounded_constant_of_a_small_update(rate: float, relation: Relation) -> None:
    """Beside a parameter no number shows it, unless the parameter is small: as of an output of its own."""

    def update(constants: list[float], rate: float) -> hlotool.Module:
        _, product = scaled("x", constants, "c")
        rest = f"rate = f32[] constant({rate:.9g})\n rates = {F} broadcast(rate), dimensions={{}}\n"
        rest += f"u = {F} multiply({product}, rates)\n ROOT r = {F} subtract(y, u)"
        return program(constants, rest)

    assert prove(update(CONSTANTS, 1e-6), update([folded(CONSTANTS)], rate)).relation is relation


def test_an_epsilon_that_hardly_shows_is_no_rounding() -> None:
    """A norm of a norm: beside numbers near 1 f64 keeps 1e-15 of the first one's epsilon."""
    (folder,) = (CORPUS / "below_rounding").iterdir()
    before, after = sorted(folder.glob("*optimizations.txt"))
    one, other = (hlotool.parse(path.read_text()) for path in (before, after))
    assert prove(one, other).relation is Relation.UNEQUAL


MANY = f"f32[{int(ROOTS.value) + 1}]"


def rooted(body: str) -> hlotool.Module:
    return hlotool.parse(
        f"HloModule m\nENTRY e {{\n x = {MANY} parameter(0)\n y = {MANY} parameter(1)\n"
        f" a = {MANY} multiply(x, x)\n b = {MANY} multiply(y, y)\n s = {MANY} add(a, b)\n"
        f" q = {MANY} sqrt(s)\n {body}\n}}"
    )


def test_more_roots_than_points_are_found_for_are_no_difference() -> None:
    """√s √s = s needs a point at which all s are squares."""
    known = rooted(f"r0 = {MANY} add(s, x)\n ROOT r = {MANY} subtract(r0, x)")
    found = prove(known, rooted(f"ROOT r = {MANY} multiply(q, q)"))
    assert found.relation is Relation.REFUSED
    assert "roots" in found.leaves[0].reason
    nearly = rooted(f"m = {MANY} multiply(q, q)\n ROOT r = {MANY} add(m, y)")
    assert prove(known, nearly).relation is Relation.UNEQUAL
