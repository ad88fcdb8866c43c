"""Generated inputs meet what their uses demand: one small program per kind of use."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from hlotool.errors import InputDataError
from hlotool.inputs.generate import GeneratedInputs, generate_inputs
from hlotool.ir.arrays import DTYPES, Array
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module

SEEDS = range(4)

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
REPLACE = "replace { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }"


def _generate(entry: str, computations: str = "", seed: int = 0, **options: Any) -> GeneratedInputs:
    module = parse_module(f"HloModule m\n{computations}\nENTRY e {{\n{entry}\n}}\n")
    return generate_inputs(module, seed, **options)


def _values(entry: str, computations: str = "", seed: int = 0, **options: Any) -> tuple[Any, ...]:
    return _generate(entry, computations, seed, **options).values


def _array(entry: str, number: int = 0, seed: int = 0, computations: str = "") -> Array:
    value = _generate(entry, computations, seed).values[number]
    assert isinstance(value, np.ndarray)
    return value


def _inside(values: Array, low: float, high: float) -> bool:
    return bool((values >= low).all() and (values <= high).all())


# Defaults


@pytest.mark.parametrize("element_type", list(ElementType), ids=str)
def test_defaults_are_varied_finite_and_small(element_type: ElementType) -> None:
    array = _array(f"ROOT x = {element_type}[300] parameter(0)")
    assert array.dtype == DTYPES[element_type]
    assert array.shape == (300,)
    numbers = array.astype(np.complex128)
    assert np.isfinite(numbers).all()
    limit = 255 if element_type.is_integer and element_type.bits <= 8 else 20
    assert np.abs(numbers).max() <= limit
    assert len(np.unique(numbers)) > 1


def test_seeds_and_parameters_are_independent() -> None:
    entry = "x = f32[9] parameter(0) y = f32[9] parameter(1) ROOT t = (f32[9], f32[9]) tuple(x, y)"
    first, again, other = _values(entry), _values(entry), _values(entry, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other))
    x, y = first
    assert not np.array_equal(x, y)
    alone = _array("z = s32[2] parameter(1) ROOT x = f32[9] parameter(0)")
    assert np.array_equal(alone, x)


def test_nested_tuples_and_tokens() -> None:
    inputs = _generate("ROOT x = (f32[2], (token[], s32[3]), ()) parameter(0)")
    values: tuple[Any, ...] = inputs.values
    ((a, (token, b), empty),) = values
    assert a.shape == (2,)
    assert token is None
    assert b.dtype == np.int32
    assert empty == ()
    assert [(d.number, d.index, d.shape) for d in inputs.descriptions] == [
        (0, (0,), "f32[2]"),
        (0, (1, 1), "s32[3]"),
    ]


def test_generated_inputs_can_be_sent_to_another_process() -> None:
    inputs = _generate("ROOT x = f32[2] parameter(0)")
    assert pickle.loads(pickle.dumps(inputs)).descriptions == inputs.descriptions


def test_a_value_range_replaces_the_default_of_floats() -> None:
    entry = "x = f32[99] parameter(0) i = s32[9] parameter(1) ROOT y = f32[99] sqrt(x)"
    x, i = _values(entry, value_range=(-5.0, 50.0))
    assert _inside(x, 0, 50)
    assert x.max() > 20
    assert i.dtype == np.int32
    with pytest.raises(InputDataError, match="empty"):
        _generate(entry, value_range=(1.0, 0.0))


def test_opaque_parameters_have_no_values() -> None:
    with pytest.raises(InputDataError, match=r"parameter 0 \(%x\) is of shape opaque\[\]"):
        _generate("x = opaque[] parameter(0) ROOT y = f32[] parameter(1)")


def test_scalar_preds_take_both_values_over_seeds() -> None:
    values = {bool(_array("ROOT p = pred[] parameter(0)", seed=seed)) for seed in (5, 6)}
    assert values == {False, True}


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic_sizes_are_chosen_and_equal_for_equal_bounds(seed: int) -> None:
    x, y = _values(
        """x = f32[<=8,3] parameter(0)
        y = f32[<=8,3] parameter(1)
        ROOT z = f32[<=8,3] add(x, y)""",
        seed=seed,
    )
    assert x.shape == y.shape
    assert 4 <= x.shape[0] <= 8
    assert x.shape[1] == 3


# Indices


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_indices(seed: int) -> None:
    """Each component of an index vector has its own range."""
    indices = _array(
        """x = f32[100,7,50] parameter(0)
        i = s32[40,2] parameter(1)
        ROOT g = f32[40,7,10] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0},
          start_index_map={2,0}, index_vector_dim=1, slice_sizes={1,7,10}""",
        1,
        seed,
    )
    assert _inside(indices[:, 0], 0, 40)
    assert _inside(indices[:, 1], 0, 99)
    assert indices[:, 1].max() > 40


def test_gather_indices_made_of_parts() -> None:
    """As frontends write it: negative indices wrapped, batch numbers concatenated."""
    inputs = _generate(
        """x = f32[6,1000] parameter(0)
        i = s32[6] parameter(1)
        zero = s32[] constant(0)
        zeros = s32[6] broadcast(zero), dimensions={}
        n = s32[] constant(1000)
        ns = s32[6] broadcast(n), dimensions={}
        negative = pred[6] compare(i, zeros), direction=LT
        wrapped = s32[6] add(i, ns)
        j = s32[6] select(negative, wrapped, i)
        column = s32[6,1] reshape(j)
        rows = s32[6,1] iota(), iota_dimension=0
        both = s32[6,2] concatenate(rows, column), dimensions={1}
        ROOT g = f32[6] gather(x, both), offset_dims={}, collapsed_slice_dims={0,1},
          start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}""",
    )
    indices = inputs.values[1]
    assert isinstance(indices, np.ndarray)
    assert _inside(indices, 0, 999)
    assert indices.max() > 20
    assert inputs.descriptions[1].rule == "in [0, 999]"
    assert inputs.descriptions[1].purposes == ("indices of gather %g",)


SCATTER = """x = f32[{size}] parameter(0)
  i = s32[{count},1] parameter(1)
  u = f32[{count}] parameter(2)
  ROOT s = f32[{size}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=replace"""


@pytest.mark.parametrize("seed", SEEDS)
def test_scatter_indices_declared_unique_and_sorted(seed: int) -> None:
    entry = SCATTER.format(size=60, count=50)
    plain = _array(entry, 1, seed, REPLACE)
    unique = _array(entry + ", unique_indices=true", 1, seed, REPLACE)
    ascending = _array(entry + ", indices_are_sorted=true", 1, seed, REPLACE)
    both = _array(entry + ", unique_indices=true, indices_are_sorted=true", 1, seed, REPLACE)
    for indices in (plain, unique, ascending, both):
        assert _inside(indices, 0, 59)
    assert len(np.unique(plain)) < 50
    assert len(np.unique(unique)) == len(np.unique(both)) == 50
    assert (np.diff(unique[:, 0]) < 0).any()
    assert (np.diff(ascending[:, 0]) >= 0).all()
    assert (np.diff(both[:, 0]) > 0).all()


def test_scatter_windows_fit() -> None:
    indices = _array(
        """x = f32[20,30] parameter(0)
        i = s32[15,2] parameter(1)
        u = f32[15,4,9] parameter(2)
        ROOT s = f32[20,30] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
          scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=replace""",
        1,
        computations=REPLACE,
    )
    assert _inside(indices[:, 0], 0, 16)
    assert _inside(indices[:, 1], 0, 21)
    assert indices[:, 1].max() > 16


def test_unique_index_vectors_in_batches() -> None:
    """Distinct within each batch; the vectors, not their components."""
    indices = _array(
        """x = f32[3,4,4] parameter(0)
        i = s32[3,14,2] parameter(1)
        u = f32[3,14] parameter(2)
        ROOT s = f32[3,4,4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1,2},
          input_batching_dims={0}, scatter_indices_batching_dims={0}, scatter_dims_to_operand_dims={1,2},
          index_vector_dim=2, unique_indices=true, to_apply=replace""",
        1,
        computations=REPLACE,
    )
    assert _inside(indices, 0, 3)
    assert [len(np.unique(batch, axis=0)) for batch in indices] == [14, 14, 14]


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic_slice_starts(seed: int) -> None:
    entry = """x = f32[10,{n}] parameter(0)
        i = s32[] parameter(1)
        j = u8[] parameter(2)
        k = s32[] convert(j)
        ROOT s = f32[4,5] dynamic-slice(x, i, k), dynamic_slice_sizes={{4,5}}"""
    assert 0 <= _array(entry.format(n=5), 1, seed) <= 6
    assert _array(entry.format(n=5), 2, seed) == 0
    assert 0 <= _array(entry.format(n=300), 2, seed) <= 255


def test_starts_of_dynamic_update_slice_made_by_arithmetic() -> None:
    """Two free parts share the room; a constant stride divides it."""
    _, _, a, b, c = _values(
        """x = f32[40,41] parameter(0)
        u = f32[4,1] parameter(1)
        a = s32[] parameter(2)
        b = s32[] parameter(3)
        c = s32[] parameter(4)
        i = s32[] add(a, b)
        ten = s32[] constant(10)
        j = s32[] multiply(c, ten)
        ROOT s = f32[40,41] dynamic-update-slice(x, u, i, j)"""
    )
    assert 0 <= a <= 18
    assert 0 <= b <= 18
    assert 0 <= c <= 4


def test_indices_through_control_flow() -> None:
    """Call, fusion, conditional and the state of a loop lead back to the parameter."""
    (indices,) = _generate(
        """x = f32[77] parameter(0)
            i = s32[] parameter(1)
            p = pred[] parameter(2)
            c = s32[] call(i), to_apply=keep
            f = s32[] fusion(c), kind=kLoop, calls=keep
            d = s32[] conditional(p, f, f), true_computation=keep, false_computation=keep
            s = (s32[], f32[77]) tuple(d, x)
            w = (s32[], f32[77]) while(s), condition=never, body=body
            ROOT r = f32[77] get-tuple-element(w), index=1""",
        """keep { p = s32[] parameter(0) ROOT r = s32[] copy(p) }
            never { s = (s32[], f32[77]) parameter(0) ROOT p = pred[] constant(false) }
            body {
              s = (s32[], f32[77]) parameter(0)
              i = s32[] get-tuple-element(s), index=0
              x = f32[77] get-tuple-element(s), index=1
              v = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}
              y = f32[77] dynamic-update-slice(x, v, i)
              ROOT r = (s32[], f32[77]) tuple(i, y)
            }""",
    ).descriptions[1:2]
    assert indices.rule == "in [0, 76]"


def test_class_labels() -> None:
    labels = _array(
        """labels = s32[200] parameter(0)
        wide = s32[200,10] broadcast(labels), dimensions={0}
        classes = s32[200,10] iota(), iota_dimension=1
        ROOT hot = pred[200,10] compare(wide, classes), direction=EQ"""
    )
    assert set(np.unique(labels)) == set(range(10))


def test_branch_indices_reach_every_branch() -> None:
    seen = {
        int(
            _array(
                """i = s32[] parameter(0) x = f32[] parameter(1)
                ROOT c = f32[] conditional(i, x, x, x), branch_computations={a, b, c}""",
                seed=seed,
                computations="\n".join(
                    f"{n} {{ p = f32[] parameter(0) ROOT r = f32[] negate(p) }}" for n in "abc"
                ),
            )
        )
        for seed in range(3)
    }
    assert seen == {0, 1, 2}


# Domains


@pytest.mark.parametrize(
    ("operation", "low", "high"),
    [
        ("sqrt(x)", 0, 4),
        ("rsqrt(x)", 0.1, 4),
        ("log(x)", 0.1, 4),
        ("log-plus-one(x)", -0.9, 4),
        ("asin(x)", -1, 1),
        ("atanh(x)", -0.95, 0.95),
        ("acosh(x)", 1, 8),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_domains(operation: str, low: float, high: float, seed: int) -> None:
    assert _inside(_array(f"x = f32[500] parameter(0) ROOT y = f32[500] {operation}", seed=seed), low, high)


@pytest.mark.parametrize("element_type", ["f32", "bf16", "f64", "s32", "u8"])
def test_divisors_are_not_zero(element_type: str) -> None:
    x = _array(
        f"""y = {element_type}[500] parameter(1)
        x = {element_type}[500] parameter(0)
        ROOT d = {element_type}[500] divide(y, x)"""
    )
    assert (np.abs(x.astype(np.float64)) >= 0.25).all()


def test_a_divisor_of_both_signs_stays_so() -> None:
    x = _array("y = f32[500] parameter(1) x = f32[500] parameter(0) ROOT d = f32[500] divide(y, x)")
    assert (x < 0).any()
    assert (x > 0).any()


def test_powers() -> None:
    fractional = "x = f32[500] parameter(0) e = f32[500] parameter(1) ROOT p = f32[500] power(x, e)"
    assert (_array(fractional) > 0).all()
    square = """x = f32[500] parameter(0) e = f32[] constant(2) es = f32[500] broadcast(e), dimensions={}
      ROOT p = f32[500] power(x, es)"""
    assert (_array(square) < 0).any()
    counted = """x = f32[500,1] parameter(0) e = f32[500,1] iota(), iota_dimension=1
      ROOT p = f32[500,1] power(x, e)"""
    assert (_array(counted) < 0).any()
    whole = "x = s32[500] parameter(0) e = s32[500] parameter(1) ROOT p = s32[500] power(x, e)"
    assert _inside(_array(whole, 1), 0, 6)


def test_shift_amounts() -> None:
    assert _inside(
        _array("x = s8[99] parameter(0) n = s8[99] parameter(1) ROOT s = s8[99] shift-left(x, n)", 1), 0, 7
    )


ADAM = """g = f32[50] parameter(0)
  v = f32[50] parameter(1)
  step = s32[] parameter(2)
  decay = f32[] constant(0.999)
  decays = f32[50] broadcast(decay), dimensions={}
  rest = f32[] constant(0.001)
  rests = f32[50] broadcast(rest), dimensions={}
  old = f32[50] multiply(decays, v)
  square = f32[50] multiply(g, g)
  new = f32[50] multiply(rests, square)
  moment = f32[50] add(old, new)
  one = f32[] constant(1)
  count = f32[] convert(step)
  power = f32[] power(decay, count)
  bias = f32[] subtract(one, power)
  biases = f32[50] broadcast(bias), dimensions={}
  corrected = f32[50] divide(moment, biases)
  root = f32[50] sqrt(corrected)
  epsilon = f32[] constant(1e-8)
  epsilons = f32[50] broadcast(epsilon), dimensions={}
  denominator = f32[50] add(root, epsilons)
  ROOT update = f32[50] divide(g, denominator)"""


@pytest.mark.parametrize("seed", SEEDS)
def test_moments_and_steps_of_adam(seed: int) -> None:
    gradient, moment, step = _values(ADAM, seed=seed)
    assert (gradient < 0).any()
    assert (moment > 0).all()
    assert step >= 1


def test_what_holds_anyway_is_not_demanded() -> None:
    inputs = _generate(
        """x = f32[9] parameter(0)
        y = f32[9] parameter(1)
        e = f32[9] exponential(x)
        l = f32[9] log(e)
        small = f32[] constant(1e-6)
        smalls = f32[9] broadcast(small), dimensions={}
        m = f32[9] maximum(y, smalls)
        r = f32[9] rsqrt(m)
        s = f32[9] multiply(y, y)
        q = f32[9] sqrt(s)
        ROOT t = (f32[9], f32[9], f32[9]) tuple(l, r, q)"""
    )
    assert [d.rule for d in inputs.descriptions] == ["", ""]


def test_a_sum_in_a_divisor_makes_its_terms_nonnegative() -> None:
    weights = _array(
        """x = f32[30] parameter(1)
        w = f32[30] parameter(0)
        zero = f32[] constant(0)
        total = f32[] reduce(w, zero), dimensions={0}, to_apply=add
        totals = f32[30] broadcast(total), dimensions={}
        ROOT m = f32[30] divide(x, totals)""",
        computations=ADD,
    )
    assert (weights >= 0).all()


def test_contradictions_are_reported() -> None:
    inputs = _generate(
        """x = f32[9] parameter(0)
        two = f32[] constant(2)
        twos = f32[9] broadcast(two), dimensions={}
        y = f32[9] subtract(x, twos)
        a = f32[9] sqrt(y)
        b = f32[9] asin(x)
        ROOT t = (f32[9], f32[9]) tuple(a, b)"""
    )
    (description,) = inputs.descriptions
    assert description.rule == "at least 2"
    assert description.unmet == ("argument of asin %b",)


# Reductions, matrices, loops, random numbers, scale


@pytest.mark.parametrize(
    ("opcode", "element_type", "value"),
    [
        ("add", "f32", 0.0),
        ("multiply", "f32", 1.0),
        ("maximum", "f32", -np.inf),
        ("minimum", "bf16", np.inf),
        ("maximum", "f8e4m3fn", -448.0),
        ("maximum", "s8", -128),
        ("minimum", "u16", 65535),
        ("and", "u8", 255),
        ("and", "s32", -1),
        ("or", "pred", False),
        ("and", "pred", True),
    ],
)
def test_initial_values_are_identities(opcode: str, element_type: str, value: float) -> None:
    init = _array(
        f"""x = {element_type}[9] parameter(1)
        init = {element_type}[] parameter(0)
        copy = {element_type}[] copy(init)
        ROOT r = {element_type}[] reduce(x, copy), dimensions={{0}}, to_apply=op""",
        computations=f"""op {{
          a = {element_type}[] parameter(0) b = {element_type}[] parameter(1)
          ROOT r = {element_type}[] {opcode}(a, b)
        }}""",
    )
    assert float(init) == value


@pytest.mark.parametrize(("direction", "value"), [("GT", -np.inf), ("LE", np.inf)])
def test_initial_values_of_an_argument_reduction(direction: str, value: float) -> None:
    extremum, position = _values(
        """init = f32[] parameter(0)
        start = s32[] parameter(1)
        x = f32[9] parameter(2)
        i = s32[9] iota(), iota_dimension=0
        ROOT r = (f32[], s32[]) reduce(x, i, init, start), dimensions={0}, to_apply=op""",
        f"""op {{
          a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
          p = pred[] compare(a, b), direction={direction}
          v = f32[] select(p, a, b)
          k = s32[] select(p, i, j)
          ROOT r = (f32[], s32[]) tuple(v, k)
        }}""",
    )[:2]
    assert (extremum, position) == (value, 0)


@pytest.mark.parametrize("element_type", ["f32", "f64", "c64"])
def test_cholesky_operands_are_positive_definite(element_type: str) -> None:
    a = _array(
        f"""x = {element_type}[3,20,20] parameter(0)
        t = {element_type}[3,20,20] transpose(x), dimensions={{0,2,1}}
        s = {element_type}[3,20,20] add(x, t)
        ROOT c = {element_type}[3,20,20] cholesky(s), lower=true"""
    ).astype(np.complex128)
    np.testing.assert_allclose(a, np.conj(np.swapaxes(a, -1, -2)), atol=1e-6)
    assert np.linalg.eigvalsh(a).min() > 0.5
    assert np.linalg.cond(a).max() < 20


@pytest.mark.parametrize(("lower", "triangle"), [("true", np.tril), ("false", np.triu)])
def test_triangular_operands_are_well_conditioned(lower: str, triangle: Any) -> None:
    a = _array(
        f"""x = f32[60,60] parameter(0)
        b = f32[60,2] parameter(1)
        ROOT c = f32[60,2] triangular-solve(x, b), left_side=true, lower={lower}, transpose_a=NO_TRANSPOSE"""
    )
    np.testing.assert_array_equal(a, triangle(a))
    assert np.linalg.cond(a) < 100


COLLATZ = (
    """n = s32[] parameter(0)
    zero = s32[] constant(0)
    s = (s32[], s32[]) tuple(n, zero)
    w = (s32[], s32[]) while(s), condition=running, body=step
    ROOT count = s32[] get-tuple-element(w), index=1""",
    """running {
      s = (s32[], s32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      ROOT p = pred[] compare(n, one), direction=NE
    }
    step {
      s = (s32[], s32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      c = s32[] get-tuple-element(s), index=1
      one = s32[] constant(1)
      two = s32[] constant(2)
      three = s32[] constant(3)
      half = s32[] divide(n, two)
      triple = s32[] multiply(n, three)
      next = s32[] add(triple, one)
      rest = s32[] remainder(n, two)
      odd = pred[] compare(rest, one), direction=EQ
      m = s32[] select(odd, next, half)
      d = s32[] add(c, one)
      ROOT r = (s32[], s32[]) tuple(m, d)
    }""",
)


@pytest.mark.parametrize("seed", SEEDS)
def test_loops_end(seed: int) -> None:
    assert 1 <= _array(COLLATZ[0], seed=seed, computations=COLLATZ[1]) <= 16


def test_states_of_generators_use_all_bits() -> None:
    state = _array(
        "s = u64[2] parameter(0) ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_default"
    )
    assert state.min() > 2**40


def test_weights_are_scaled_by_the_length_of_the_sum() -> None:
    entry = """x = f32[8,400] parameter(0)
      w = f32[200,400] parameter(1)
      t = f32[400,200] transpose(w), dimensions={1,0}
      ROOT d = f32[8,200] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    x, w = _values(entry)
    assert np.std(x @ w.T) == pytest.approx(1, rel=0.1)


def test_group_sizes_of_a_ragged_dot() -> None:
    sizes = _array(
        """x = f32[12,4] parameter(0)
        w = f32[3,4,5] parameter(1)
        n = s32[3] parameter(2)
        ROOT d = f32[12,5] ragged-dot(x, w, n), lhs_contracting_dims={1}, rhs_contracting_dims={1},
          lhs_ragged_dims={0}, rhs_group_dims={0}""",
        2,
    )
    assert (sizes >= 0).all()
    assert sizes.sum() <= 12


# Borders of manual regions

_BORDER = """x = f32[8,4] parameter(0) count = s32[] parameter(1) nu = f32[8] parameter(2)
  ids = s32[8] parameter(3)
  in = (f32[4,4], s32[], f32[4], s32[4]) custom-call(x, count, nu, ids),
    custom_call_target="xla.sdy.GlobalToLocalShape"
  n = s32[] get-tuple-element(in), index=1 one = s32[] constant(1) m = s32[] add(n, one)
  f = f32[] convert(m) r = f32[] sqrt(f) b = f32[4] broadcast(r), dimensions={}
  v = f32[4] get-tuple-element(in), index=2 s = f32[4] sqrt(v) d = f32[4] multiply(s, b)
  i = s32[4] get-tuple-element(in), index=3 y = f32[4,4] get-tuple-element(in), index=0
  g = f32[4,4] gather(y, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,4}
  ROOT t = (f32[4], f32[4,4]) tuple(d, g)"""


@pytest.mark.parametrize("seed", range(8))
def test_each_value_that_enters_a_manual_region_gets_its_own_demands(seed: int) -> None:
    """JAX's shard_map takes all operands across the border in one call."""
    x, count, nu, ids = _values(_BORDER, seed=seed)
    assert count >= -1, "it is one less than the argument of a square root"
    assert (nu >= 0).all()
    assert _inside(ids, 0, 3)
    assert (x < 0).any(), "nothing is asked of the first operand"
