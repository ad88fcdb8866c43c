"""Facts of result leaves, found by data-flow analysis of modules."""

from __future__ import annotations

import math

import pytest

from hlotool.facts.dataflow import join_leaves, leaf_facts
from hlotool.facts.result_facts import NOTHING, Facts
from hlotool.facts.trip_counts import UNKNOWN_TRIPS
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_module


def _facts(entry: str, computations: str = "") -> tuple[Facts, ...]:
    return leaf_facts(parse_module(f"HloModule m\n{computations}\nENTRY e {{\n{entry}\n}}\n"))


def _name(origin: object) -> str | None:
    return None if origin is None else str(origin).split(" (")[0]


ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
MAX = "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }"


def test_data_movement_adds_nothing() -> None:
    (facts,) = _facts(
        """x = f32[4,2] parameter(0)
        t = f32[2,4] transpose(x), dimensions={1,0}
        n = f32[2,4] negate(t)
        ROOT r = f32[8] reshape(n)"""
    )
    assert facts == NOTHING


def test_arithmetic_rounds() -> None:
    (facts,) = _facts("x = f32[4] parameter(0) y = f32[4] exponential(x) ROOT z = f32[4] multiply(y, y)")
    assert facts.rounding is not None
    assert facts.rounding.element_type is ElementType.F32
    assert _name(facts.transcendental) == "exponential %y"
    assert facts.sum is None


def test_the_coarsest_intermediate_type_survives_widening() -> None:
    (facts,) = _facts(
        """x = f32[4] parameter(0)
        h = bf16[4] convert(x)
        w = f32[4] convert(h)
        ROOT z = f32[4] add(w, w)"""
    )
    assert facts.rounding is not None
    assert facts.rounding.element_type is ElementType.BF16
    assert facts.rounding.epsilon == 2.0**-7
    assert _name(facts.rounding.origin) == "convert %h"


@pytest.mark.parametrize(
    ("source", "target", "rounds"),
    [
        ("s8", "f32", False),
        ("s32", "f32", True),
        ("s32", "f64", False),
        ("f64", "f32", True),
        ("pred", "bf16", False),
    ],
)
def test_converts_round_when_the_target_holds_less(source: str, target: str, rounds: bool) -> None:
    (facts,) = _facts(f"x = {source}[] parameter(0) ROOT y = {target}[] convert(x)")
    assert (facts.rounding is not None) == rounds


def test_reduce_precision_rounds_to_its_mantissa() -> None:
    (facts,) = _facts(
        "x = f32[] parameter(0) ROOT y = f32[] reduce-precision(x), exponent_bits=5, mantissa_bits=10"
    )
    assert facts.rounding is not None
    assert facts.rounding.epsilon == 2.0**-10


@pytest.mark.parametrize(
    ("header", "attributes", "length"),
    [
        ("replica_count=8", "replica_groups={{0,1,2,3},{4,5,6,7}}", 4),
        ("replica_count=8", "replica_groups=[1,8]<=[8]", 8),
        ("replica_count=8", "replica_groups={}", 8),
        ("num_partitions=8", "channel_id=1, use_global_device_ids=true, replica_groups=[4,2]<=[8]", 2),
        ("num_partitions=8", "channel_id=1, replica_groups={{0}}", 8),
    ],
)
def test_an_all_reduce_sums_over_its_group(header: str, attributes: str, length: int) -> None:
    text = f"""HloModule m, {header}
{ADD}
ENTRY e {{ x = f32[4] parameter(0) ROOT r = f32[4] all-reduce(x), {attributes}, to_apply=add }}"""
    (facts,) = leaf_facts(parse_module(text))
    assert facts.sum is not None
    assert facts.sum.length == length


def test_an_all_reduce_that_chooses_sums_nothing() -> None:
    (facts,) = _facts(
        "x = f32[4] parameter(0) ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=max", MAX
    )
    assert facts == NOTHING


@pytest.mark.parametrize(
    ("call", "length"),
    [
        ('bf16[2,9] custom-call(a, b), custom_call_target="__cublas$gemm"', 60),
        ('f32[2,9] custom-call(a, b), custom_call_target="__cublas$lt$matmul"', 60),
        (
            'f32[8,5,5,16] custom-call(x, w), custom_call_target="__cudnn$convForward", '
            "window={size=3x3}, dim_labels=b01f_01io->b01f",
            3 * 3 * 4,
        ),
        (
            'f32[8,7,7,4] custom-call(dy, w), custom_call_target="__cudnn$convBackwardInput", '
            "window={size=3x3}, dim_labels=b01f_01io->b01f",
            3 * 3 * 16,
        ),
        (
            'f32[3,3,4,16] custom-call(x, dy), custom_call_target="__cudnn$convBackwardFilter", '
            "window={size=3x3}, dim_labels=b01f_01io->b01f",
            8 * 5 * 5,
        ),
        ('f32[8,5,5,16] custom-call(x, w), custom_call_target="__onednn$convolution"', 3 * 3 * 4),
        ('f32[8,7,7,4] custom-call(x), custom_call_target="my_norm"', 8),
    ],
)
def test_library_calls_sum_what_their_sizes_say(call: str, length: int) -> None:
    (facts,) = _facts(
        f"""a = bf16[2,3,20] parameter(0)
        b = bf16[3,20,9] parameter(1)
        x = f32[8,7,7,4] parameter(2)
        w = f32[3,3,4,16] parameter(3)
        dy = f32[8,5,5,16] parameter(4)
        ROOT r = {call}"""
    )
    assert facts.sum is not None
    assert facts.sum.length == length
    assert facts.sum.error == math.sqrt(length) * 2.0**-23


def test_a_dot_sums_its_contracting_dimensions() -> None:
    (facts,) = _facts(
        """x = f32[3,4,5] parameter(0)
        y = f32[4,5,2] parameter(1)
        ROOT d = f32[3,2] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"""
    )
    assert facts.sum is not None
    assert facts.sum.length == 20
    assert facts.sum.error == math.sqrt(20) * 2.0**-23


def test_a_bf16_dot_accumulates_in_f32() -> None:
    (facts,) = _facts(
        """x = bf16[3,64] parameter(0)
        y = bf16[64,2] parameter(1)
        ROOT d = bf16[3,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    )
    assert facts.sum is not None
    assert facts.sum.error == 8 * 2.0**-23
    assert facts.rounding is not None
    assert facts.rounding.element_type is ElementType.BF16


def test_a_dot_algorithm_rounds_its_inputs() -> None:
    (facts,) = _facts(
        """x = f32[3,4] parameter(0)
        y = f32[4,2] parameter(1)
        ROOT d = f32[3,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0},
          algorithm=dot_tf32_tf32_f32"""
    )
    assert facts.rounding is not None
    assert facts.rounding.epsilon == 2.0**-10


def test_a_convolution_sums_window_and_features() -> None:
    (facts,) = _facts(
        """x = f32[1,8,8,3] parameter(0)
        k = f32[5,5,3,16] parameter(1)
        ROOT c = f32[1,4,4,16] convolution(x, k), window={size=5x5}, dim_labels=b01f_01io->b01f"""
    )
    assert facts.sum is not None
    assert facts.sum.length == 75


@pytest.mark.parametrize(("reducer", "length"), [("add", 12), ("max", None)])
def test_reductions_sum_unless_they_only_choose(reducer: str, length: int | None) -> None:
    (facts,) = _facts(
        f"""x = f32[5,12] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[5] reduce(x, z), dimensions={{1}}, to_apply={reducer}""",
        ADD + "\n" + MAX,
    )
    assert (facts.sum and facts.sum.length) == length
    assert (facts.rounding is None) == (length is None)


def test_scatter_and_windows_sum() -> None:
    (scattered, windowed) = _facts(
        """x = f32[9] parameter(0)
        i = s32[7,1] parameter(1)
        u = f32[7] parameter(2)
        z = f32[] constant(0)
        s = f32[9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
          scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
        w = f32[7] reduce-window(x, z), window={size=3}, to_apply=add
        ROOT t = (f32[9], f32[7]) tuple(s, w)""",
        ADD,
    )
    assert scattered.sum is not None
    assert scattered.sum.length == 7
    assert windowed.sum is not None
    assert windowed.sum.length == 3


def test_tuples_keep_their_leaves_apart() -> None:
    exact, rounded, nested = _facts(
        """x = f32[] parameter(0)
        y = f32[] add(x, x)
        inner = (f32[], f32[]) tuple(x, y)
        p = (f32[], (f32[], f32[])) tuple(y, inner)
        b = (f32[], (f32[], f32[])) opt-barrier(p)
        g = (f32[], f32[]) get-tuple-element(b), index=1
        h = f32[] get-tuple-element(g), index=0
        i = f32[] get-tuple-element(g), index=1
        ROOT r = (f32[], f32[], (f32[])) tuple(h, i, t)
        """.replace("ROOT", "t = (f32[]) tuple(h)\n        ROOT")
    )
    assert exact == nested == NOTHING
    assert rounded.rounding is not None


def test_calls_and_fusions_are_looked_into() -> None:
    (facts,) = _facts(
        """x = f32[] parameter(0)
        f = f32[] fusion(x), kind=kLoop, calls=inner
        ROOT c = f32[] call(f), to_apply=outer""",
        """inner { p = f32[] parameter(0) ROOT r = f32[] tanh(p) }
        outer { p = f32[] parameter(0) ROOT r = f32[] negate(p) }""",
    )
    assert _name(facts.transcendental) == "tanh %r"


def test_random_numbers_and_what_depends_on_them() -> None:
    clean, noisy, chosen = _facts(
        """x = f32[4] parameter(0)
        zero = f32[] constant(0)
        one = f32[] constant(1)
        noise = f32[4] rng(zero, one), distribution=rng_uniform
        y = f32[4] add(x, noise)
        p = pred[4] compare(noise, x), direction=LT
        s = f32[4] select(p, x, x)
        ROOT t = (f32[4], f32[4], f32[4]) tuple(x, y, s)"""
    )
    assert clean.random is None
    assert _name(noisy.random) == _name(chosen.random) == "rng %noise"


def test_rng_bit_generator_is_reproducible() -> None:
    facts = _facts(
        "s = u64[2] parameter(0) ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_philox"
    )
    assert facts == (NOTHING, NOTHING)


def test_integers_made_of_rounded_floats() -> None:
    from_inputs, from_results, gathered = _facts(
        """x = f32[4] parameter(0)
        y = f32[4] multiply(x, x)
        a = s32[4] convert(x)
        b = s32[4] convert(y)
        c = s32[4] add(b, b)
        ROOT t = (s32[4], s32[4], s32[4]) tuple(a, b, c)"""
    )
    assert from_inputs.decision is None
    assert _name(from_results.decision) == _name(gathered.decision) == "convert %b"


BRANCHES = """
same { p = f32[] parameter(0) ROOT r = f32[] negate(p) }
other { p = f32[] parameter(0) ROOT r = f32[] exponential(p) }
"""


def test_a_conditional_joins_its_branches_and_its_predicate() -> None:
    (facts,) = _facts(
        """x = f32[] parameter(0)
        y = f32[] add(x, x)
        flag = pred[] compare(y, x), direction=LT
        ROOT c = f32[] conditional(flag, x, x), true_computation=same, false_computation=other""",
        BRANCHES,
    )
    assert _name(facts.decision) == "compare %flag"
    assert _name(facts.transcendental) == "exponential %r"


def _loop(limit: str = "limit = s32[] constant(10)") -> str:
    return f"""cond {{
      s = (s32[], f32[], f32[]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      {limit}
      ROOT p = pred[] compare(i, limit), direction=LT
    }}
    body {{
      s = (s32[], f32[], f32[]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      a = f32[] get-tuple-element(s), index=1
      b = f32[] get-tuple-element(s), index=2
      one = s32[] constant(1)
      j = s32[] add(i, one)
      c = f32[] add(a, b)
      ROOT r = (s32[], f32[], f32[]) tuple(j, c, b)
    }}"""


_ENTRY = """a = f32[] parameter(0)
      b = f32[] parameter(1)
      zero = s32[] constant(0)
      x = (s32[], f32[], f32[]) tuple(zero, a, b)
      ROOT w = (s32[], f32[], f32[]) while(x), condition=cond, body=body"""


def test_a_loop_sums_over_its_iterations() -> None:
    counter, total, kept = _facts(_ENTRY, _loop())
    assert counter == kept == NOTHING
    assert total.sum is not None
    assert total.sum.length == 10


def test_a_known_trip_count_goes_before_constants() -> None:
    entry = _ENTRY + ', backend_config={"known_trip_count":{"n":"25"}}'
    total = _facts(entry, _loop())[1]
    assert total.sum is not None
    assert total.sum.length == 25


def test_an_unknown_trip_count_is_guessed() -> None:
    total = _facts(_ENTRY, _loop("limit = s32[] add(i, i)"))[1]
    assert total.sum is not None
    assert total.sum.length == UNKNOWN_TRIPS


def test_carried_state_reaches_a_fixed_point() -> None:
    """The value needs three iterations to travel from the last element to the first."""
    first = _facts(
        """x = f32[] parameter(0)
        y = f32[] exponential(x)
        s = (f32[], f32[], f32[]) tuple(x, x, y)
        ROOT w = (f32[], f32[], f32[]) while(s), condition=cond, body=body""",
        """cond { s = (f32[], f32[], f32[]) parameter(0) ROOT p = pred[] constant(false) }
        body {
          s = (f32[], f32[], f32[]) parameter(0)
          b = f32[] get-tuple-element(s), index=1
          c = f32[] get-tuple-element(s), index=2
          ROOT r = (f32[], f32[], f32[]) tuple(b, c, c)
        }""",
    )[0]
    assert _name(first.transcendental) == "exponential %y"


def test_a_random_condition_taints_the_whole_state() -> None:
    facts = _facts(
        """x = f32[] parameter(0) s = (f32[]) tuple(x)
        ROOT w = (f32[]) while(s), condition=cond, body=body""",
        """cond {
          s = (f32[]) parameter(0) x = f32[] get-tuple-element(s), index=0
          z = f32[] constant(0)
          u = f32[] rng(z, x), distribution=rng_uniform
          ROOT p = pred[] compare(u, x), direction=LT
        }
        body {
          s = (f32[]) parameter(0) x = f32[] get-tuple-element(s), index=0
          ROOT r = (f32[]) tuple(x)
        }""",
    )
    assert _name(facts[0].random) == "rng %u"


def test_async_pairs_pass_their_result() -> None:
    (facts,) = _facts(
        """x = f32[8] parameter(0)
        s = ((f32[8]), f32[8], u32[]) async-start(x), calls=wrapped
        u = ((f32[8]), f32[8], u32[]) async-update(s)
        ROOT d = f32[8] async-done(u)""",
        "wrapped { p = f32[8] parameter(0) ROOT r = f32[8] log(p) }",
    )
    assert _name(facts.transcendental) == "log %r"


def test_facts_of_two_programs_join() -> None:
    (before,) = _facts("x = f32[] parameter(0) ROOT y = f32[] exponential(x)")
    (after,) = _facts("x = f32[] parameter(0) h = bf16[] convert(x) ROOT y = f32[] convert(h)")
    (joined,) = join_leaves((before,), (after,))
    assert joined.rounding is not None
    assert joined.rounding.element_type is ElementType.BF16
    assert joined.transcendental is not None
    assert join_leaves((before,), (before,)) == (before,)
