"""Programs with smaller sizes: what they become, that XLA takes them, and that a fault is found in them."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported, UsageError
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import RUNS, RUNS_AT_LAST, Limits
from hlotool.rewrite.scale.plan import Scaled, scaled
from hlotool.rewrite.scale.records import wish_of

NO_LIMITS = Limits(float("inf"), float("inf"))

#: Attention over heads, a mean, a rotation by halves, a mask, and a stack of layers in a loop.
BEFORE = """
HloModule before

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

body {
  p = (s32[], f32[64,128,256], f32[40,256,512], f32[40,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,128,256] get-tuple-element(p), index=1
  w = f32[40,256,512] get-tuple-element(p), index=2
  b = f32[40,512] get-tuple-element(p), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  ws = f32[1,256,512] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,256,512}
  wr = f32[256,512] reshape(ws)
  bs = f32[1,512] dynamic-slice(b, i, zero), dynamic_slice_sizes={1,512}
  bs_r = f32[512] reshape(bs)
  bb = f32[64,128,512] broadcast(bs_r), dimensions={2}
  h = f32[64,128,512] dot(x, wr), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  hb = f32[64,128,512] add(h, bb)
  heads = f32[64,128,4,128] reshape(hb)
  t = f32[64,128,4,128] tanh(heads)
  low = f32[64,128,4,64] slice(t), slice={[0:64], [0:128], [0:4], [0:64]}
  high = f32[64,128,4,64] slice(t), slice={[0:64], [0:128], [0:4], [64:128]}
  n = f32[64,128,4,64] negate(high)
  r = f32[64,128,4,128] concatenate(n, low), dimensions={3}
  back = f32[64,128,512] reshape(r)
  part = f32[64,128,256] dot(back, wr), lhs_contracting_dims={2}, rhs_contracting_dims={1}
  z = f32[] constant(0)
  total = f32[64,128] reduce(part, z), dimensions={2}, to_apply=sum
  count = f32[] constant(256)
  counts = f32[64,128] broadcast(count), dimensions={}
  mean = f32[64,128] divide(total, counts)
  means = f32[64,128,256] broadcast(mean), dimensions={0,1}
  y = f32[64,128,256] subtract(part, means)
  next = s32[] add(i, one)
  ROOT out = (s32[], f32[64,128,256], f32[40,256,512], f32[40,512]) tuple(next, y, w, b)
}

condition {
  q = (s32[], f32[64,128,256], f32[40,256,512], f32[40,512]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  most = s32[] constant(40)
  ROOT less = pred[] compare(j, most), direction=LT
}

ENTRY main {
  weights = f32[40,256,512] parameter(0)
  biases = f32[40,512] parameter(1)
  x0 = f32[64,128,256] parameter(2)
  start = s32[] constant(0)
  state = (s32[], f32[64,128,256], f32[40,256,512], f32[40,512]) tuple(start, x0, weights, biases)
  loop = (s32[], f32[64,128,256], f32[40,256,512], f32[40,512]) while(state), condition=condition, body=body
  ROOT result = f32[64,128,256] get-tuple-element(loop), index=1
}
"""
#: What a compiler makes of it: the mean is multiplied by a reciprocal.
AFTER = BEFORE.replace("constant(256)", "constant(0.00390625)").replace("divide(total", "multiply(total")


def parsed(*texts: str) -> dict[str, Module]:
    return {str(number): parse_module(text) for number, text in enumerate(texts)}


def made(*texts: str, plan: str = "1M") -> Scaled:
    found = scaled(parsed(*texts), plan, NO_LIMITS)
    assert found is not None
    return found


def run(module: Module, arguments: tuple[np.ndarray, ...]) -> np.ndarray:  # type: ignore[type-arg]
    result = get_backend("numpy").compile(module).run(arguments)
    assert isinstance(result, np.ndarray)
    return result


def arguments_of(module: Module) -> tuple[np.ndarray, ...]:  # type: ignore[type-arg]
    rng = np.random.default_rng(0)
    return tuple(rng.normal(scale=0.2, size=p.dims).astype(np.float32) for p in module.entry.parameters)


def test_what_fits_stays() -> None:
    assert scaled(parsed(BEFORE), "auto", NO_LIMITS) is None


def test_both_sides_compute_the_same() -> None:
    found = made(BEFORE, AFTER)
    before, after = found.programs.values()
    values = arguments_of(before)
    np.testing.assert_allclose(run(before, values), run(after, values), rtol=1e-5, atol=1e-6)
    assert found.record.stay == []
    assert found.record.scaled_memory < found.record.memory


def test_sizes_that_were_different_are() -> None:
    """[layers, 256, 512] and [64, 128, 256]: five sizes, and 512 is 4 heads of twice 64."""
    weights, _, x = made(BEFORE, AFTER).programs["0"].entry.parameters
    layers, model, wide = weights.dims
    assert layers == 3
    assert len({*x.dims, wide, layers}) == 5
    assert model == x.dims[2]
    assert wide % 8 == 0
    assert all(size > 1 for size in (*x.dims, *weights.dims))


def test_constants_follow() -> None:
    """The bound of the loop is the number of layers; the mean divides by a power of two, on both sides."""
    before, after = made(BEFORE, AFTER).programs.values()
    values = [
        {i.name: i.literal.array.item() for i in module.instructions() if i.literal is not None}
        for module in (before, after)
    ]
    assert values[0]["most"] == values[1]["most"] == 3
    assert values[0]["count"] == 1 / values[1]["count"]
    assert values[0]["count"] < 256


def test_a_constant_on_one_side_freezes_its_size() -> None:
    """Nobody says that 256 is a number of elements where the other side has nothing like it."""
    odd = AFTER.replace("0.00390625", "0.25")
    found = made(BEFORE, odd, plan="2M")
    assert found.programs["0"].entry.parameters[0].dims[1] == 256
    assert any(stay.size == 256 and "one of the programs only" in stay.why for stay in found.record.stay)


def test_an_integer_on_one_side_freezes_its_size() -> None:
    """A compiler that puts 512 into a program may have counted with a dimension of 512."""
    counted = AFTER.replace(
        "  zero = s32[] constant(0)", "  zero = s32[] constant(0)\n  k = s32[] constant(512)"
    )
    found = made(BEFORE, counted, plan="8M")
    assert found.programs["0"].entry.parameters[1].dims[1] == 512
    assert any(stay.why.startswith("constant %k") for stay in found.record.stay)


def test_a_loop_on_one_side_freezes_its_length() -> None:
    counted = AFTER.replace("constant(40)", "constant(39)")
    assert made(BEFORE, counted).programs["0"].entry.parameters[0].dims[0] == 40


def test_a_fault_shows() -> None:
    """The halves of the rotation, exchanged."""
    wrong = AFTER.replace("concatenate(n, low)", "concatenate(low, n)")
    before, after = made(BEFORE, wrong).programs.values()
    values = arguments_of(before)
    assert np.abs(run(before, values) - run(after, values)).max() > 1e-2


def test_given_arguments_are_cut() -> None:
    """A program that moves data returns, of cut arguments, what is left of what it returned."""
    text = "HloModule m ENTRY e { p = f32[64,48] parameter(0) ROOT r = f32[64,12,4] reshape(p) }"
    found = made(text, plan="64=3,12=5")
    value = np.arange(64 * 48, dtype=np.float32).reshape(64, 48)
    (cut,) = found.arguments("0", (value,))
    expected = value.reshape(64, 12, 4)[:3, :5].reshape(3, 20)
    assert cut.tolist() == expected.tolist()
    assert run(found.programs["0"], (cut,)).tolist() == value.reshape(64, 12, 4)[:3, :5].tolist()


def test_a_plan_that_nothing_fits() -> None:
    text = "HloModule m ENTRY e { p = f32[512,256] parameter(0) ROOT r = f32[512,256] negate(p) }"
    with pytest.raises(Unsupported, match="no dimension of size 7 can be changed; there are 512, 256"):
        made(text, plan="7=3")


MASKED = """HloModule m ENTRY e {
  p = f32[64,32] parameter(0)
  i = s32[64,32] iota(), iota_dimension=0
  c = s32[] constant(45)
  cs = s32[64,32] broadcast(c), dimensions={}
  m = pred[64,32] compare(i, cs), direction=EQ
  z = f32[] constant(0)
  zs = f32[64,32] broadcast(z), dimensions={}
  ROOT r = f32[64,32] select(m, zs, p)
}"""


def test_a_plan_for_a_dimension_that_is_cut() -> None:
    """64 are 45, the one that is compared, and 18 others: 2, 1 and 4 of them are 7."""
    found = made(MASKED, plan="64=7")
    assert found.programs["0"].entry.parameters[0].dims == (7, 32)
    value = np.ones((7, 32), np.float32)
    zeros = np.argwhere(run(found.programs["0"], (value,)) == 0)[:, 0]
    assert len(set(zeros.tolist())) == 1


def test_a_plan_that_leaves_nothing_of_the_parts() -> None:
    with pytest.raises(Unsupported, match="no dimension of size 64 can be changed"):
        made(MASKED, plan="64=3")


@pytest.mark.parametrize("text", ["much", "4=5", "4=1", "=3", "4096=7;3=2"])
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(UsageError):
        wish_of(text)


@pytest.mark.parametrize(("text", "memory"), [("8G", 8 << 30), ("1.5M", 3 << 19), ("100", 100), ("auto", 0)])
def test_memory(text: str, memory: int) -> None:
    assert wish_of(text).memory == memory


def test_what_cannot_be_told_stays() -> None:
    """A slice with steps keeps its dimension, and the plan says why; the other one changes."""
    body = "c = f32[64,7] slice(p), slice={[0:64], [5:32:4]} ROOT r = f32[64,7] negate(c)"
    found = made(f"HloModule m ENTRY e {{ p = f32[64,32] parameter(0) {body} }}", plan="64=3")
    assert found.programs["0"].entry.parameters[0].dims == (3, 32)
    assert any("a slice with steps" in stay.why and stay.size == 32 for stay in found.record.stay)


def test_a_custom_call_that_nobody_knows_keeps_its_sizes() -> None:
    body = 'ROOT r = f32[64,4] custom-call(p), custom_call_target="odd"'
    with pytest.raises(Unsupported, match="no dimension of size 64"):
        made(f"HloModule m ENTRY e {{ p = f32[64,32] parameter(0) {body} }}", plan="64=3")


@pytest.mark.xla
def test_xla_takes_it() -> None:
    """The truth about a scaled program is XLA's: it compiles it and returns what the reference returns."""
    before = made(BEFORE, AFTER).programs["0"]
    values = arguments_of(before)
    theirs = get_backend("xla").compile(before).run(values)
    assert isinstance(theirs, np.ndarray)
    np.testing.assert_allclose(run(before, values), theirs, rtol=1e-4, atol=1e-5)


#: Six dimensions of different sizes.
WIDE = "ENTRY e { x = f32[20,21,22,23,24,25] parameter(0) ROOT t = f32[20,21,22,23,24,25] tanh(x) }"


@pytest.mark.parametrize(
    ("runs", "work", "dims"),
    [
        (RUNS, 1_000_000, (3, 4, 5, 6, 7, 8)),
        (RUNS_AT_LAST, 200_000, (3, 3, 4, 4, 5, 5)),
        (RUNS_AT_LAST, 60_000, (3, 3, 3, 3, 4, 4)),
        (RUNS_AT_LAST, 10_000, (2, 2, 2, 2, 2, 2)),
    ],
)
def test_neighbours_share_a_size_where_sizes_of_their_own_are_too_large(
    runs: int, work: int, dims: tuple[int, ...]
) -> None:
    """As few as it takes: an execution may be so much work, a nanosecond each."""
    limits = Limits(float("inf"), runs * work / 1e9)
    found = scaled(parsed(WIDE), "auto", limits)
    assert found is not None
    assert [i.dims for i in found.programs["0"].instructions()] == [dims] * 2


#: The larger size is everywhere, and its power.
SQUARED = """ENTRY e {
  x = f32[30] parameter(0)
  y = f32[40,40,40,40,40,40] parameter(1)
  a = f32[40,40,40,40,40,40] tanh(y)
  b = f32[40,40,40,40,40,40] tanh(a)
  c = f32[40,40,40,40,40,40] tanh(b)
  d = f32[30] negate(x)
  ROOT r = (f32[30], f32[40,40,40,40,40,40]) tuple(d, c)
}"""


def test_before_they_share_a_size_they_are_out_of_order() -> None:
    """What most arrays have becomes smallest, and all are different."""
    in_order = made(SQUARED, plan="30=3,40=4").record.scaled_work
    for spared, sizes in ((0, [(3,), (4,) * 6]), (1, [(4,), (3,) * 6])):
        found = scaled(parsed(SQUARED), "auto", Limits(float("inf"), RUNS * (in_order - spared) / 1e9))
        assert found is not None
        assert [one.dims for one in found.programs["0"].entry.parameters] == sizes


def test_what_is_too_much_at_any_size_is_refused() -> None:
    with pytest.raises(Unsupported, match="even with the smallest sizes"):
        scaled(parsed(WIDE), "auto", Limits(float("inf"), RUNS * 1_000 / 1e9))


#: A stack of 48 rows, of which eight devices would have six each.
STACK = """HloModule m
below {
  s = (s32[], f32[48,20], f32[20]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(48)
  ROOT b = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[48,20], f32[20]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[48,20] get-tuple-element(s), index=1
  a = f32[20] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  row = f32[1,20] dynamic-slice(w, i, zero), dynamic_slice_sizes={1,20}
  flat = f32[20] reshape(row)
  sum = f32[20] add(a, flat)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[48,20], f32[20]) tuple(j, w, sum)
}
ENTRY e {
  w = f32[48,20] parameter(0)
  a = f32[20] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[48,20], f32[20]) tuple(zero, w, a)
  l = (s32[], f32[48,20], f32[20]) while(s), condition=below, body=step
  sum = f32[20] get-tuple-element(l), index=2
  parts = f32[8,6,20] reshape(w)
  ROOT o = (f32[20], f32[8,6,20]) tuple(sum, parts)
}"""


def test_a_loop_over_parts_of_a_stack_is_short() -> None:
    """2 * 2 rounds are enough where 48 are 8 * 6; where they are 48 there are three."""
    module = made(STACK, plan="2K").programs["0"]
    assert next(i.dims for i in module.instructions() if i.name == "parts")[:2] == (2, 2)
    plain = STACK.replace("parts = f32[8,6,20] reshape(w)", "parts = f32[48,20] tanh(w)")
    plain = plain.replace("(f32[20], f32[8,6,20])", "(f32[20], f32[48,20])")
    module = made(plain, plan="2K").programs["0"]
    assert next(i.dims for i in module.instructions() if i.name == "parts")[0] == 3
