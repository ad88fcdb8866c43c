"""Loops over equally many elements, small loops, and what is computed from each result of a reduction."""

from __future__ import annotations

import pytest
from support.rewrites import Program, check, rewrite

from hlotool.backends.cuda.codegen.partition import of_fusion
from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
PIPELINE = "fuse,fuse{kind=rows},fuse{kind=joint}"


def module_of(entry: str) -> Module:
    return parse_module(f"HloModule m\n{SUM}ENTRY e {{ zero = f32[] constant(0) {entry} }}")


def launched(module: Module) -> list[Instruction]:
    """What is not a matter of tuples, constants or parameters."""
    quiet = ("constant", "get-tuple-element", "parameter", "tuple")
    return [i for i in module.entry.instructions if i.opcode not in quiet]


def joined(entry: str) -> list[Instruction]:
    """What is left after fusion, whose results are the same; every fusion is one kernel."""
    module = module_of(entry)
    check(Program(module), PIPELINE)
    found = launched(rewrite(module, PIPELINE)[0])
    for fusion in (i for i in found if i.opcode == "fusion"):
        assert len(of_fusion(fusion.computation("calls")).kernels) == 1
    return found


#: The moments and the parameters of Adam.
ADAM = """g = f32[N] parameter(0) m = f32[N] parameter(1) v = f32[N] parameter(2) p = f32[N] parameter(3)
    c = f32[] constant(0.9) k = f32[N] broadcast(c), dimensions={}
    a = f32[N] multiply(m, k) n = f32[N] add(a, g)
    q = f32[N] multiply(g, g) b = f32[N] multiply(v, k) w = f32[N] add(b, q)
    r = f32[N] sqrt(w) d = f32[N] divide(n, r) o = f32[N] subtract(p, d)
    ROOT t = (f32[N], f32[N], f32[N]) tuple(o, n, w)"""


@pytest.mark.parametrize("size", [300, 1_000_000])
def test_a_step_of_adam_is_one_kernel(size: int) -> None:
    [fusion] = joined(ADAM.replace("N", str(size)))
    assert len(fusion.computation("calls").root.operands) == 3


def test_small_loops_of_any_sizes_share_a_kernel() -> None:
    entry = """x = f32[300] parameter(0) y = f32[7,5] parameter(1) a = f32[300] sine(x) b = f32[300] negate(a)
        c = f32[7,5] cosine(y) d = f32[7,5] negate(c) ROOT t = (f32[300], f32[7,5]) tuple(b, d)"""
    assert len(joined(entry)) == 1
    assert len(joined(entry.replace("300", "300000"))) == 2


def test_transpositions_of_much_keep_kernels_of_their_own() -> None:
    entry = """x = f32[600,500] parameter(0) a = f32[600,500] add(x, x) b = f32[600,500] sine(a)
        t = f32[500,600] transpose(b), dimensions={1,0} n = f32[500,600] negate(t)
        ROOT r = (f32[600,500], f32[500,600]) tuple(b, n)"""
    assert len(joined(entry)) == 2
    assert len(joined(entry.replace("600", "60"))) == 1


def test_what_is_computed_from_each_sum_goes_with_it() -> None:
    columns = """x = f32[400,6] parameter(0) s = f32[6] reduce(x, zero), dimensions={0}, to_apply=sum
        h = f32[] constant(0.0025) k = f32[6] broadcast(h), dimensions={} m = f32[6] multiply(s, k)
        e = f32[6] sqrt(m) ROOT t = (f32[6]) tuple(e)"""
    assert len(joined(columns)) == 1
    both = columns.replace("ROOT t = (f32[6]) tuple(e)", "ROOT t = (f32[6], f32[6]) tuple(e, s)")
    assert len(joined(both)) == 1


def test_a_root_may_be_computed_again_but_not_much_more() -> None:
    scaled = """x = f32[50,8] parameter(0) v = f32[8] parameter(1) r = f32[8] rsqrt(v)
        b = f32[50,8] broadcast(r), dimensions={1} ROOT y = f32[50,8] multiply(x, b)"""
    assert [i.name for i in joined(scaled)] == ["multi_output_fusion"]
    more = "p = f32[8] tanh(v) q = f32[8] exponential(p) r = f32[8] cbrt(q)"
    heavy = scaled.replace("r = f32[8] rsqrt(v)", more)
    assert len(joined(heavy)) == 2


def test_no_cycle_through_what_no_kernel_does() -> None:
    entry = """x = f32[6,40] parameter(0) a = f32[6,40] sine(x) n = f32[6,40] negate(a)
        m = f32[6,40] cosine(a) f = c64[6,21] fft(n), fft_type=RFFT, fft_length={40}
        i = f32[6,40] fft(f), fft_type=IRFFT, fft_length={40}
        d = f32[6,40] subtract(i, m) ROOT t = (f32[6,40], f32[6,40]) tuple(d, n)"""
    order = [i.opcode for i in joined(entry)]
    assert order == ["fusion", "fft", "fft", "fusion"]


def test_updates_in_place_stay_apart() -> None:
    entry = """x = f32[40] parameter(0) u = f32[4] parameter(1) at = s32[] parameter(2)
        y = f32[40] dynamic-update-slice(x, u, at) n = f32[40] negate(x) m = f32[40] sine(n)
        ROOT t = (f32[40], f32[40]) tuple(y, m)"""
    assert len(joined(entry)) == 2


def test_sums_over_nothing_are_loops() -> None:
    entry = """x = f32[1,40] parameter(0) y = f32[40] parameter(1)
        s = f32[40] reduce(x, zero), dimensions={0}, to_apply=sum a = f32[40] add(s, y)
        ROOT m = f32[40] multiply(a, a)"""
    [fusion] = joined(entry)
    assert fusion.attributes["kind"] == "kLoop"
