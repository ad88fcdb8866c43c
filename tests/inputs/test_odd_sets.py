"""Sets of what frameworks hardly pass: NaN behind branches and libraries, positions far off, long loops."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.inputs.adversarial import integer_extents, odd_values
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.adversarial.sets import OUT_OF_RANGE, InputSet, leaves_of, unspecified
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module


def _program(text: str) -> tuple[Module, tuple[Any, ...]]:
    module = parse_module(text)
    return module, generate_inputs(module, 0).values


def _with_nan(text: str) -> list[InputSet]:
    module, plain = _program(text)
    return [one for one in directed_sets(module, plain, 0) if one.name.endswith("and NaN")]


SIGN_OR_SQUARE = """HloModule m
size { x = f32[3] parameter(0) ROOT r = f32[3] abs(x) }
square { x = f32[3] parameter(0) ROOT r = f32[3] multiply(x, x) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[3] parameter(1)
  ROOT r = f32[3] conditional(i, x, x), branch_computations={size, square}
}"""


def test_a_branch_meets_nan_where_the_numbers_were_solved_for_something_else() -> None:
    """One set serves the branch and the sign in it; the latter does not keep NaN away."""
    found = {int(one.values[0]): np.isnan(one.values[1]).any() for one in _with_nan(SIGN_OR_SQUARE)}  # type: ignore[call-overload, arg-type]
    assert found[0]
    assert found[1]


def test_numbers_that_lead_to_a_branch_stay_numbers() -> None:
    text = """HloModule m
one { x = f32[3] parameter(0) ROOT r = f32[3] negate(x) }
other { x = f32[3] parameter(0) ROOT r = f32[3] multiply(x, x) }
ENTRY e {
  t = f32[] parameter(0)
  x = f32[3] parameter(1)
  two = f32[] constant(2)
  p = pred[] compare(t, two), direction=GT
  ROOT r = f32[3] conditional(p, x, x), true_computation=one, false_computation=other
}"""
    sets = _with_nan(text)
    branches = [one for one in sets if any("conditional" in aim for aim in one.aims)]
    assert branches
    assert all(np.isfinite(one.values[0]) and np.isnan(one.values[1]).any() for one in branches)  # type: ignore[call-overload, arg-type]


def test_nan_comes_with_every_position_that_is_solved_for() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
}"""
    starts = {int(one.values[1]) for one in _with_nan(text) if np.isnan(one.values[0]).any()}  # type: ignore[call-overload, arg-type]
    assert starts >= {0, 5}


def _call(target: str) -> str:
    return f"""HloModule m
ENTRY e {{
  x = f32[3,3] parameter(0)
  ROOT r = f32[3,3] custom-call(x), custom_call_target="{target}"
}}"""


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        (_call("lapack_spotrf_ffi"), False),
        (_call("blas_strsm_ffi"), False),
        (_call("lapack_sgeev_ffi"), True),  # complains, and returns what was in memory
        (_call("cusolver_potrf_ffi"), True),  # before optimisation it may be another instruction
        ("HloModule m ENTRY e { x = f32[3,3] parameter(0) ROOT r = f32[3,3] cholesky(x), lower=true }", True),
        ("HloModule m ENTRY e { x = f32[3,3] parameter(0) ROOT r = f32[3,3] negate(x) }", False),
    ],
)
def test_what_libraries_make_of_nan(text: str, is_open: bool) -> None:
    module = parse_module(text)
    assert ("NaN" in unspecified(module)) is is_open
    assert "NaN" in unspecified(module, is_bounded=True)
    assert ("infinity" in unspecified(module)) is ("negate" not in text)


@pytest.mark.xla
@pytest.mark.parametrize("routine", ["eigh", "svd", "qr", "cholesky", "inv", "slogdet"])
def test_lapack_returns_nan_where_xla_does(routine: str) -> None:
    """XLA's CPU client and the reference call the same routines: why sets have NaN there."""
    jax = pytest.importorskip("jax")
    function = jax.jit(lambda a: getattr(jax.numpy.linalg, routine)(a @ a.T + jax.numpy.eye(4)))
    for place in ((0, 0), (2, 1), (3, 3)):
        a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
        a[place] = np.nan
        text = function.lower(a).compiler_ir("hlo").as_hlo_text(print_large_constants=True)
        ours = jax.tree.leaves(NumpyBackend().compile(parse_module(text)).run([a]))
        theirs = jax.tree.leaves(function(a))
        for own, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(np.isnan(own), np.isnan(other))


COUNTED = """HloModule m
body {
  s = (s32[], s32[], f32[]) parameter(0)
  t = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  x = f32[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  u = s32[] add(t, one)
  y = f32[] negate(x)
  ROOT r = (s32[], s32[], f32[]) tuple(u, k, y)
}
cond {
  s = (s32[], s32[], f32[]) parameter(0)
  t = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(t, k), direction=LT
}
ENTRY e {
  k = s32[] parameter(0)
  x = f32[] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], s32[], f32[]) tuple(zero, k, x)
  ROOT w = (s32[], s32[], f32[]) while(s), condition=cond, body=body
}"""


def test_a_loop_counts_beyond_half_the_bits_of_its_counter() -> None:
    module, plain = _program(COUNTED)
    (found,) = integer_extents.long_loops(module, plain)
    assert int(found.values[0]) > 1 << 16  # type: ignore[call-overload]
    assert found.odd == ()
    assert not found.suits_other_backends
    trips = NumpyBackend().compile(module).run(list(found.values))[0]  # type: ignore[index]
    assert trips == found.values[0]


def test_no_loop_is_long_that_is_too_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    module, plain = _program(COUNTED)
    monkeypatch.setattr(integer_extents, "_LONGEST", 1_000_000)
    assert not list(integer_extents.long_loops(module, plain))


def test_counters_of_few_bits_have_no_long_loops() -> None:
    module, plain = _program(COUNTED.replace("s32", "s16"))
    assert not list(integer_extents.long_loops(module, plain))


ORDERED = """HloModule m
ENTRY e {
  x = f32[6,2] parameter(0)
  i = s32[4,1] parameter(1)
  ROOT y = f32[4,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,2}, indices_are_sorted=true
}"""


def test_ordered_positions_before_the_start_stay_in_order_wherever_they_wrap() -> None:
    module, plain = _program(ORDERED)
    (leaf,) = (leaf for leaf in leaves_of(module, plain) if leaf.name == "%i")
    together = 0
    for seed in range(20):
        found = odd_values.outside(np.random.default_rng(seed), above=False)(leaf)
        assert found is not None
        wrapped = np.where(found < 0, found + 6, found).ravel()
        assert (np.diff(found.ravel()) >= 0).all()
        assert (np.diff(wrapped) >= 0).all()
        together += bool((found < 0).all() and (wrapped >= 0).all())
    assert 0 < together < 20


def test_positions_far_off_are_in_range_once_half_their_bits_are_lost() -> None:
    module, plain = _program(ORDERED.replace(", indices_are_sorted=true", ""))
    (leaf,) = (leaf for leaf in leaves_of(module, plain) if leaf.name == "%i")
    for above in (True, False):
        far = odd_values.far_outside(above)(leaf)
        wraps = odd_values.far_outside(above, wraps=True)(leaf)
        assert far is not None
        assert wraps is not None
        assert (far.astype(np.int16) == leaf.plain).all()
        assert ((wraps + 6).astype(np.int16) == leaf.plain).all()
    anywhere = odd_values.anywhere(np.random.default_rng(0))(leaf)
    assert anywhere is not None
    assert np.abs(anywhere.astype(np.int64)).max() > 6


def test_positions_lengths_away_are_out_of_range_still_once_they_have_wrapped() -> None:
    module, plain = _program(ORDERED.replace(", indices_are_sorted=true", ""))
    (leaf,) = (leaf for leaf in leaves_of(module, plain) if leaf.name == "%i")
    for seed in range(10):
        before, beyond = (
            odd_values.lengths_away(np.random.default_rng(seed), above)(leaf) for above in (False, True)
        )
        assert before is not None
        assert beyond is not None
        assert ((before + 6 < 0) & (np.abs(before + 6) < 6)).all()
        assert ((beyond >= 6) & (beyond % 6 < 6)).all()


def test_coordinates_have_fractions_on_both_sides_of_the_range() -> None:
    """Rounding down and rounding to 0 differ below 0, and no integer holds what is lengths away."""
    module, plain = _program(
        "HloModule m\nENTRY e { v = f32[5] parameter(0) x = f32[20] parameter(1) f = f32[20] floor(x) "
        "i = s32[20] convert(f) ROOT r = f32[20] gather(v, i), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1} }"
    )
    sets = {one.name: np.asarray(one.values[1]) for one in islice(directed_sets(module, plain, 0), 12)}
    below = sets["positions before the start"]
    assert (below < -1).any()
    assert ((below > -1) & (below < 0)).any()
    assert (sets["positions beyond the end"] > 5).any()
    assert (sets["positions lengths before"] < -(2**31)).all()
    assert (sets["positions lengths beyond"] >= 2**31).all()


def test_all_amounts_of_a_shift_are_out_of_its_domain() -> None:
    module, plain = _program(
        "HloModule m\nENTRY e { x = s32[4] parameter(0) y = s32[4] parameter(1) "
        "ROOT s = s32[4] shift-right-logical(x, y) }"
    )
    (one,) = [one for one in directed_sets(module, plain, 0) if one.name == "numbers out of domains"]
    amounts = np.asarray(one.values[1])
    assert ((amounts < 0) | (amounts > 31)).all()
    assert 32 in amounts


def test_positions_of_any_size_are_out_of_range() -> None:
    module, plain = _program(ORDERED.replace(", indices_are_sorted=true", ""))
    sets = [one for one in directed_sets(module, plain, 0) if np.abs(one.values[1]).max() > 1 << 20]  # type: ignore[arg-type]
    assert sets
    assert all(OUT_OF_RANGE in one.odd for one in sets)
