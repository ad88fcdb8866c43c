"""What is proved equivalent has the same values on every set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.given import arrays_in
from hlotool.ir.module import Module
from hlotool.lab.faults import Site, family_of
from hlotool.lab.mutation.equivalence import (
    KINDS,
    Mutant,
    draw,
    same_of_reals,
    same_to_the_bit,
    same_when_tidied,
)
from hlotool.parser.reader import parse_module
from hlotool.runs.program import compile_program

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

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


def results(module: Module, values: tuple[object, ...]) -> list[np.ndarray]:
    return arrays_in(NumpyBackend().compile(module).run(values))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if (CORPUS / p).exists()])
def test_what_is_proved_equal_is_equal(path: str) -> None:
    module = parse_module((CORPUS / path).read_text(encoding="utf-8"), path)
    plain = generate_inputs(module, 0).values
    sets = [plain, *(one.values for one in directed_sets(module, plain, 0))][:24]
    for mutant in draw(module, 40, 5):
        # What is no plain sum any more is added up in another order.
        if mutant.site.computation == "sum" or not same_to_the_bit(mutant):
            continue
        for values in sets:
            try:
                expected = results(module, values)
            except HlotoolError:
                continue
            for one, other in zip(results(mutant.module, values), expected):
                np.testing.assert_array_equal(one, other, f"{mutant.kind.name} at {mutant.site}")


TIDIED = """HloModule tidied
twice {{ x = s32[4] parameter(0) ROOT y = s32[4] add(x, x) }}
ENTRY e {{
  x = s32[4] parameter(0)
  {body}
}}"""


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("ROOT r = s32[4] call(x), to_apply=twice", "ROOT a = s32[4] add(x, x)", True),
        ("ROOT r = s32[4] fusion(x), kind=kLoop, calls=twice", "ROOT a = s32[4] add(x, x)", True),
        ("ROOT r = s32[4] multiply(x, x)", "ROOT a = s32[4] add(x, x)", False),
        ("z = s32[4] constant({0, 0, 0, 0}) ROOT r = s32[4] add(x, z)", "ROOT r = s32[4] copy(x)", True),
        ("z = s32[4] constant({0, 0, 0, 1}) ROOT r = s32[4] add(x, z)", "ROOT r = s32[4] copy(x)", False),
        ("ROOT r = s32[4] negate(x)", "z = s32[] constant(0) ROOT r = s32[4] negate(x)", True),
    ],
)  # fmt: skip
def test_what_is_one_text_once_it_is_simplified(one: str, other: str, equal: bool) -> None:
    """Passes see through calls, fusions and dead code; a constant that they fold differs where it differs."""
    module, mutant = (parse_module(TIDIED.format(body=body)) for body in (one, other))
    assert same_when_tidied(module, mutant) is equal


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


RANGES = """HloModule ranges
ENTRY e {
  n = s32[4] parameter(0)
  x = f32[4] parameter(1)
  top = s32[] constant(LIMIT)
  zero = s32[] constant(0)
  low = s32[4] broadcast(zero), dimensions={}
  high = s32[4] broadcast(top), dimensions={}
  c = s32[4] clamp(low, n, high)
  d = s32[4] remainder(c, high)
  f = f32[4] convert(c)
  m = f32[4] multiply(f, x)
  ROOT r = (s32[4], f32[4]) tuple(d, m)
}"""


@pytest.mark.parametrize(
    ("kind", "place", "limit", "equal"),
    [
        ("wraps at half the bits", "c", 32767, True),
        ("wraps at half the bits", "c", 32768, False),
        ("saturation", "c", 3, True),
        ("saturation", "c", 4, False),
        ("remainder of the other sign", "d", 7, True),
        ("remainder of the other sign", "d", -7, False),
        ("NaN lost", "f", 3, True),
        ("NaN lost", "m", 3, False),
        ("infinity clamped", "f", 60000, True),
        ("infinity clamped", "f", 60001, False),
        ("shifted", "high", 3, True),
        ("shifted", "c", 3, False),
    ],
)
def test_ranges_say_that_a_fault_changes_no_number(kind: str, place: str, limit: int, equal: bool) -> None:
    module = parse_module(RANGES.replace("LIMIT", str(limit)))
    [fault] = [one for one in KINDS if one.name == kind]
    assert bool(same_to_the_bit(Mutant(module, fault, Site("e", place), 0))) is equal
