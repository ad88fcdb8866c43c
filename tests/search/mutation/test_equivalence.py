"""What is proved equivalent has the same values on every set; each law holds on programs that show it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.plan import directed_sets
from hlotool.errors import HlotoolError, Unsupported
from hlotool.faults.families import family_of
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.replay.program import compile_program
from hlotool.search.mutation.equivalence import same_of_reals
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.mutants import KINDS, Mutant, draw
from hlotool.search.mutation.reading import result_symbols
from hlotool.values.generate import generate_inputs
from hlotool.values.npz import arrays_in

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

#: Programs in which many mutants change nothing: masks, clamps, narrow integers, constants.
PROGRAMS = (
    "modules/clamp.array_bounds.hlo",
    "modules/dynamic-slice.clamped.hlo",
    "modules/dynamic-update-slice.clamped.hlo",
    "modules/iota.types.hlo",
    "modules/convert.integer_to_integer.hlo",
    "modules/while.array_state.hlo",
    "modules/select.hlo",
    "modules/dot.batched.hlo",
    "modules/reduce.sum.hlo",
    "modules/pad.negative_and_interior.hlo",
    "jax/int4/module_0000.jit_int4.before_optimizations.txt",
    "jax/slices/module_0000.jit_slices.before_optimizations.txt",
)


def terms(module: Module) -> list[np.ndarray] | None:
    try:
        return result_symbols(module, LAWS)
    except Unsupported:
        return None


def same_terms(one: Module, other: Module) -> bool:
    left, right = terms(one), terms(other)
    return left is not None and right is not None and all(map(np.array_equal, left, right))


def results(module: Module, values: tuple[object, ...]) -> list[np.ndarray]:
    return arrays_in(NumpyBackend().compile(module).run(values))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if (CORPUS / p).exists()])
def test_what_is_proved_equal_is_equal(path: str) -> None:
    module = parse_module((CORPUS / path).read_text(encoding="utf-8"), path)
    plain = generate_inputs(module, 0).values
    sets = [plain, *(one.values for one in directed_sets(module, plain, 0))][:24]
    for mutant in draw(module, 40, 5):
        # What is no plain sum any more is added up in another order.
        is_sum = mutant.site.computation == "sum"
        if is_sum or not same_terms(module, mutant.module):
            continue
        for values in sets:
            try:
                expected = results(module, values)
            except HlotoolError:
                continue
            for one, other in zip(results(mutant.module, values), expected):
                np.testing.assert_array_equal(one, other, f"{mutant.kind.name} at {mutant.site}")


def entry(body: str) -> Module:
    return parse_module(f"HloModule m\nENTRY e {{\n{body}\n}}")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        # A clamp of a remainder within its bounds.
        (
            "x = u8[3] parameter(0)\nROOT r = u8[3] copy(x)",
            "x = u8[3] parameter(0)\nl = u8[] constant(0)\nh = u8[] constant(255)\n"
            "ROOT r = u8[3] clamp(l, x, h)",
            True,
        ),
        (
            "x = u8[3] parameter(0)\nROOT r = u8[3] copy(x)",
            "x = u8[3] parameter(0)\nl = u8[] constant(0)\nh = u8[] constant(254)\n"
            "ROOT r = u8[3] clamp(l, x, h)",
            False,
        ),
        # A narrow type holds what a mask leaves.
        (
            "x = s32[3] parameter(0)\nm = s32[] constant(7)\nb = s32[3] broadcast(m), dimensions={}\n"
            "ROOT r = s32[3] and(x, b)",
            "x = s32[3] parameter(0)\nm = s32[] constant(7)\nb = s32[3] broadcast(m), dimensions={}\n"
            "a = s32[3] and(x, b)\nn = s8[3] convert(a)\nROOT r = s32[3] convert(n)",
            True,
        ),
        (
            "x = s32[3] parameter(0)\nROOT r = s32[3] copy(x)",
            "x = s32[3] parameter(0)\nn = s8[3] convert(x)\nROOT r = s32[3] convert(n)",
            False,
        ),
        # Rows of a broadcast are alike, those of a parameter are not.
        (
            "x = f32[2] parameter(0)\nROOT r = f32[3,2] broadcast(x), dimensions={1}",
            "x = f32[2] parameter(0)\nb = f32[3,2] broadcast(x), dimensions={1}\n"
            "ROOT r = f32[3,2] reverse(b), dimensions={0}",
            True,
        ),
        (
            "x = f32[3,2] parameter(0)\nROOT r = f32[3,2] copy(x)",
            "x = f32[3,2] parameter(0)\nROOT r = f32[3,2] reverse(x), dimensions={0}",
            False,
        ),
        # Sums of floats commute, and do not associate.
        (
            "x = f32[] parameter(0)\ny = f32[] parameter(1)\nROOT r = f32[] add(x, y)",
            "x = f32[] parameter(0)\ny = f32[] parameter(1)\nROOT r = f32[] add(y, x)",
            True,
        ),
        (
            "x = f32[] parameter(0)\ny = f32[] parameter(1)\nROOT r = f32[] subtract(x, y)",
            "x = f32[] parameter(0)\ny = f32[] parameter(1)\nROOT r = f32[] subtract(y, x)",
            False,
        ),
        # NaN is not 0, unless it cannot be there.
        (
            "x = f32[2] parameter(0)\nROOT r = f32[2] copy(x)",
            "x = f32[2] parameter(0)\np = pred[2] compare(x, x), direction=NE\nz = f32[] constant(0)\n"
            "b = f32[2] broadcast(z), dimensions={}\nROOT r = f32[2] select(p, b, x)",
            False,
        ),
        (
            "i = s32[2] parameter(0)\nROOT r = f32[2] convert(i)",
            "i = s32[2] parameter(0)\nx = f32[2] convert(i)\np = pred[2] compare(x, x), direction=NE\n"
            "z = f32[] constant(0)\nb = f32[2] broadcast(z), dimensions={}\nROOT r = f32[2] select(p, b, x)",
            True,
        ),
        # 0 is its own negative, and 1 is not.
        (
            "x = s32[2] parameter(0)\nz = s32[] constant(0)\nb = s32[2] broadcast(z), dimensions={}\n"
            "p = pred[2] compare(x, b), direction=LT\nn = s32[2] negate(x)\nROOT r = s32[2] select(p, n, x)",
            "x = s32[2] parameter(0)\nz = s32[] constant(0)\nb = s32[2] broadcast(z), dimensions={}\n"
            "p = pred[2] compare(x, b), direction=LE\nn = s32[2] negate(x)\nROOT r = s32[2] select(p, n, x)",
            True,
        ),
        (
            "x = s32[2] parameter(0)\nz = s32[] constant(1)\nb = s32[2] broadcast(z), dimensions={}\n"
            "p = pred[2] compare(x, b), direction=LT\nn = s32[2] negate(x)\nROOT r = s32[2] select(p, n, x)",
            "x = s32[2] parameter(0)\nz = s32[] constant(1)\nb = s32[2] broadcast(z), dimensions={}\n"
            "p = pred[2] compare(x, b), direction=LE\nn = s32[2] negate(x)\nROOT r = s32[2] select(p, n, x)",
            False,
        ),
        # A product of vectors is a number, made of both.
        (
            "x = f32[3] parameter(0)\ny = f32[3] parameter(1)\n"
            "ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            "x = f32[3] parameter(0)\ny = f32[3] parameter(1)\nz = f32[3] reverse(y), dimensions={0}\n"
            "w = f32[3] reverse(z), dimensions={0}\n"
            "ROOT r = f32[] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            True,
        ),
        (
            "x = f32[3] parameter(0)\ny = f32[3] parameter(1)\n"
            "ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            "x = f32[3] parameter(0)\ny = f32[3] parameter(1)\nz = f32[3] reverse(y), dimensions={0}\n"
            "ROOT r = f32[] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            False,
        ),
        # Where a slice has but one place to start, its index does not matter.
        (
            "x = f32[4] parameter(0)\ni = s32[] parameter(1)\n"
            "ROOT r = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}",
            "x = f32[4] parameter(0)\ni = s32[] parameter(1)\nj = s32[] add(i, i)\n"
            "ROOT r = f32[4] dynamic-slice(x, j), dynamic_slice_sizes={4}",
            True,
        ),
        (
            "x = f32[4] parameter(0)\ni = s32[] parameter(1)\n"
            "ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}",
            "x = f32[4] parameter(0)\ni = s32[] parameter(1)\nj = s32[] add(i, i)\n"
            "ROOT r = f32[3] dynamic-slice(x, j), dynamic_slice_sizes={3}",
            False,
        ),
    ],
)
def test_laws(one: str, other: str, equal: bool) -> None:
    assert same_terms(entry(one), entry(other)) is equal


def test_wrapping_sums_are_not_bounded() -> None:
    """127 + 1 is -128 in s8: the sum of non-negative numbers need not be one."""
    sum_ = "x = u8[] parameter(0)\ns = s8[] bitcast-convert(x)\no = s8[] constant(127)\n"
    one = entry(sum_ + "m = s8[] maximum(s, o)\nROOT r = s8[] add(m, o)")
    other = entry(
        sum_ + "m = s8[] maximum(s, o)\na = s8[] add(m, o)\nz = s8[] constant(0)\nROOT r = s8[] maximum(a, z)"
    )
    assert not same_terms(one, other)


@pytest.mark.parametrize("divisor", [3, -3])
def test_a_remainder_made_positive_again(divisor: int) -> None:
    """`jnp.remainder` changes nothing that is positive already; of a negative divisor nothing is known."""
    text = f"""x = s32[4] parameter(0)
n = s32[] constant({divisor})
b = s32[4] broadcast(n), dimensions={{}}
z = s32[] constant(0)
o = s32[4] broadcast(z), dimensions={{}}
r = s32[4] remainder(x, b)
p = pred[4] compare(r, o), direction=LT
q = pred[4] compare(r, o), direction=NE
m = pred[4] and(p, q)
a = s32[4] add(r, b)
"""
    one = entry(text + "ROOT s = s32[4] select(m, a, r)")
    again = """s = s32[4] select(m, a, r)
p1 = pred[4] compare(s, o), direction=LT
q1 = pred[4] compare(s, o), direction=NE
m1 = pred[4] and(p1, q1)
a1 = s32[4] add(s, b)
ROOT t = s32[4] select(m1, a1, s)"""
    assert same_terms(one, entry(text + again)) is (divisor > 0)


@pytest.mark.parametrize(("opcode", "equal"), [("maximum", True), ("add", False)])
def test_what_is_reduced_twice(opcode: str, equal: bool) -> None:
    """An element counts once among those of which the largest is taken, and twice in a sum."""
    text = f"""HloModule m
f {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] {opcode}(a, b) }}
ENTRY e {{
  x = s32[4] parameter(0)
  z = s32[] constant(0)
  s = s32[1] slice(x), slice={{[2:3]}}
  y = s32[5] concatenate(x, s), dimensions={{0}}
  ROOT r = s32[] reduce(%s, z), dimensions={{0}}, to_apply=f
}}"""
    assert same_terms(*(parse_module(text % name) for name in ("x", "y"))) is equal


FORMULAS = """HloModule formulas
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  p = pred[4] compare(x, y), direction=LT
  s = f32[4] add(x, y)
  a = f32[4] multiply(s, s)
  xx = f32[4] multiply(x, x)
  xy = f32[4] multiply(x, y)
  yy = f32[4] multiply(y, y)
  b = f32[4] add(xx, xy)
  c = f32[4] add(b, xy)
  d = f32[4] add(c, OTHER)
  ROOT r = f32[4] select(p, a, d)
}"""


@pytest.mark.parametrize(
    "kind", ["tie decided the other way", "negated comparison", "select without its mask"]
)
@pytest.mark.parametrize(("other", "equal"), [("yy", True), ("xy", False)])
def test_a_choice_between_two_formulas_of_one_number(kind: str, other: str, equal: bool) -> None:
    """(x + y)² is x² + 2xy + y², whichever is taken; at x = y x² + 3xy is, too, and nowhere else."""
    module = parse_module(FORMULAS.replace("OTHER", other))
    [fault] = [one for one in KINDS if one.name == kind]
    mutant = Mutant(module, fault, fault.sites(module)[0], 0)
    reference = compile_program("right", "", module, "numpy")
    tested = compile_program("mutant", "", mutant.module, "numpy", reference)
    assert bool(same_of_reals(reference, mutant, tested)) is equal


def test_rounding_and_wrapping_are_no_functions_of_real_numbers() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { x = f32[4] parameter(0) y = f32[4] exponential(x) "
        "ROOT r = s32[4] convert(y) }"
    )
    for fault in KINDS:
        if family_of(fault) in ("precision", "integers") and (sites := fault.sites(module)):
            mutant = Mutant(module, fault, sites[0], 0)
            reference = compile_program("right", "", module, "numpy")
            tested = compile_program("mutant", "", mutant.module, "numpy", reference)
            assert not same_of_reals(reference, mutant, tested)


IF_NAN = """HloModule if_nan
or { p = pred[] parameter(0) q = pred[] parameter(1) ROOT o = pred[] or(p, q) }
ENTRY e {
  x = f32[4] parameter(0)
  p = pred[4] TEST
  no = pred[] constant(false)
  any = pred[] reduce(p, no), dimensions={0}, to_apply=or
  m = pred[4] broadcast(any), dimensions={}
  two = f32[] constant(2)
  t = f32[4] broadcast(two), dimensions={}
  s = f32[4] select(m, t, x)
  ROOT r = f32[4] multiply(s, s)
}"""


@pytest.mark.parametrize("test", ["compare(x, x), direction=NE", "is-finite(x)"])
@pytest.mark.parametrize("kind", ["missing element of a reduction", "wrong constant"])
def test_what_is_done_with_nan_is_no_function_of_real_numbers(test: str, kind: str) -> None:
    """Among real numbers the same side is always taken."""
    module = parse_module(IF_NAN.replace("TEST", test))
    [fault] = [one for one in KINDS if one.name == kind]
    for site in fault.sites(module):
        mutant = Mutant(module, fault, site, 0)
        reference = compile_program("right", "", module, "numpy")
        tested = compile_program("mutant", "", mutant.module, "numpy", reference)
        assert not same_of_reals(reference, mutant, tested)
