"""Reductions of rows and what is computed along the rows from their results, as one kernel."""

from __future__ import annotations

import pytest
from support.rewrites import Program, check, rewrite

from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"


def fused(entry: str, pipeline: str = "fuse,fuse{kind=rows}") -> Module:
    """The module after fusion, whose results are the same."""
    module = parse_module(f"HloModule m\n{SUM}ENTRY e {{ zero = f32[] constant(0) {entry} }}")
    check(Program(module), pipeline)
    return rewrite(module, pipeline)[0]


def kernels(module: Module) -> list[Instruction]:
    return [i for i in module.entry.instructions if i.opcode in ("fusion", "reduce")]


SOFTMAX = """x = f32[6,40] parameter(0) e = f32[6,40] exponential(x)
    s = f32[6] reduce(e, zero), dimensions={1}, to_apply=sum
    b = f32[6,40] broadcast(s), dimensions={0} d = f32[6,40] divide(e, b) """


def test_a_softmax_is_one_kernel() -> None:
    [kernel] = kernels(fused(SOFTMAX.replace(" d =", " ROOT d =")))
    assert kernel.operands[0].opcode == "parameter"


def test_what_others_read_is_another_output() -> None:
    [kernel] = kernels(fused(SOFTMAX + "ROOT t = (f32[6,40], f32[6]) tuple(d, s)"))
    assert str(kernel.shape) == "(f32[6], f32[6,40])"


def test_several_reductions_in_a_row() -> None:
    module = fused(
        """x = f32[6,40] parameter(0)
        s = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum b = f32[6,40] broadcast(s), dimensions={0}
        c = f32[6,40] subtract(x, b) q = f32[6,40] multiply(c, c)
        v = f32[6] reduce(q, zero), dimensions={1}, to_apply=sum r = f32[6] sqrt(v)
        w = f32[6,40] broadcast(r), dimensions={0} ROOT d = f32[6,40] divide(c, w)"""
    )
    assert len(kernels(module)) == 1


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(SOFTMAX.replace("40", "20").replace(" d =", " ROOT d ="), id="short rows"),
        pytest.param(
            """x = f32[40,6] parameter(0) s = f32[6] reduce(x, zero), dimensions={0}, to_apply=sum
            b = f32[40,6] broadcast(s), dimensions={1} ROOT d = f32[40,6] divide(x, b)""",
            id="columns",
        ),
        pytest.param(
            """x = f32[6,40] parameter(0) s = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum
            ROOT b = f32[6,7] broadcast(s), dimensions={0}""",
            id="other sizes",
        ),
    ],
)
def test_what_stays_apart(entry: str) -> None:
    module = parse_module(f"HloModule m\n{SUM}ENTRY e {{ zero = f32[] constant(0) {entry} }}")
    before = rewrite(module, "fuse")[0]
    after = rewrite(module, "fuse,fuse{kind=rows}")[0]
    assert [i.opcode for i in after.entry.instructions] == [i.opcode for i in before.entry.instructions]


def test_no_cycle_through_what_no_kernel_does() -> None:
    module = fused(
        """x = f32[6,40] parameter(0) s = f32[6] reduce(x, zero), dimensions={1}, to_apply=sum
        b = f32[6,40] broadcast(s), dimensions={0} n = f32[6,40] negate(b)
        r = f32[6,40] reduce-window(n, zero), window={size=6x3 pad=5_0x1_1}, to_apply=sum
        f = c64[6,21] fft(r), fft_type=RFFT, fft_length={40}
        i = f32[6,40] fft(f), fft_type=IRFFT, fft_length={40}
        ROOT d = f32[6,40] subtract(i, b)"""
    )
    order = [i.opcode for i in module.entry.instructions if i.opcode in ("fusion", "fft")]
    assert order == ["fusion", "fft", "fft", "fusion"]


def test_few_long_rows_stay_apart() -> None:
    text = SOFTMAX.replace("40", "70000").replace(" d =", " ROOT d =")
    module = parse_module(f"HloModule m\n{SUM}ENTRY e {{ zero = f32[] constant(0) {text} }}")
    assert len(kernels(rewrite(module, "fuse,fuse{kind=rows}")[0])) > 1


def test_sizes_are_limited() -> None:
    module = fused(SOFTMAX.replace(" d =", " ROOT d ="), "fuse,fuse{kind=rows,max_instructions=3}")
    assert len(kernels(module)) > 1
