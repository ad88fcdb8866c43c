"""Where two programs part as functions: what was changed, however little its value changes."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import hlotool
from hlotool.errors import Unsupported
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.module import Module
from hlotool.judge.locate.report import divergence_record
from hlotool.judge.records import DivergenceRecord
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.parting import open_search
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.task import compare_modules, programs

#: A normalisation of each row; what XLA fuses, and calls of one function.
NORMALISED = """
HloModule normalised

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }

rows {
  x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  total = f32[4] reduce(x, zero), dimensions={1}, to_apply=sum
  eighth = f32[] constant(0.125)
  eighths = f32[4] broadcast(eighth), dimensions={}
  mean = f32[4] multiply(total, eighths)
  means = f32[4,8] broadcast(mean), dimensions={0}
  centred = f32[4,8] subtract(x, means)
  square = f32[4,8] multiply(centred, centred)
  squares = f32[4] reduce(square, zero), dimensions={1}, to_apply=sum
  variance = f32[4] multiply(squares, eighths)
  epsilon = f32[] constant(1e-5)
  epsilons = f32[4] broadcast(epsilon), dimensions={}
  above = f32[4] add(variance, epsilons)
  scale = f32[4] rsqrt(above)
  scales = f32[4,8] broadcast(scale), dimensions={0}
  ROOT y = f32[4,8] multiply(centred, scales)
}

ENTRY e {
  x = f32[4,8] parameter(0)
  w = f32[8,8] parameter(1)
  first = f32[4,8] call(x), to_apply=rows
  product = f32[4,8] dot(first, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT second = f32[4,8] call(product), to_apply=rows
}
"""

#: A loop with a learning rate, of which another program has two iterations more of nothing.
DESCENT = """
HloModule descent

body {
  state = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[3] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  rate = f32[] constant(0.01)
  rates = f32[3] broadcast(rate), dimensions={}
  step = f32[3] multiply(x, rates)
  stepped = f32[3] subtract(x, step)
  ROOT result = (s32[], f32[3]) tuple(next, stepped)
}

goes-on {
  state = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(i, limit), direction=LT
}

ENTRY e {
  zero = s32[] constant(0)
  x = f32[3] parameter(0)
  start = (s32[], f32[3]) tuple(zero, x)
  loop = (s32[], f32[3]) while(start), condition=goes-on, body=body
  ROOT y = f32[3] get-tuple-element(loop), index=1
}
"""


def parsed(text: str, *changes: tuple[str, str]) -> Module:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return hlotool.parse(text)


def parted(reference: Module, tested: Module) -> DivergenceRecord:
    sides, options = programs(reference, tested), Options()
    outputs = [leaf.index for leaf in compare(*sides, options).leaves]
    search, differing = open_search(*sides, outputs, options, Budget())
    with closing(search):
        return divergence_record(search, search.first(differing), differing)


@pytest.mark.parametrize(
    ("change", "instruction"),
    [
        (("constant(1e-5)", "constant(0)"), "epsilon"),
        (("constant(1e-5)", "constant(1.1e-5)"), "epsilon"),
        (("rsqrt(above)", "rsqrt(variance)"), "scale"),
    ],
    ids=lambda change: str(change),
)
def test_what_no_tolerance_sees_is_named(change: tuple[str, str], instruction: str) -> None:
    reference, tested = parsed(NORMALISED), parsed(NORMALISED, change)
    x = [np.ones((4, 8), np.float32) * np.arange(8, dtype=np.float32), np.eye(8, dtype=np.float32)]
    (expected,), (actual,) = (hlotool.run(module, x) for module in (reference, tested))
    assert np.allclose(expected, actual, rtol=1e-4)
    record = parted(reference, tested)
    assert record.source.instruction == instruction
    assert record.instructions[-1] == instruction
    assert "call %" in record.around[0]


def test_the_names_and_the_order_of_the_other_program_do_not_count() -> None:
    """Means of rows by division, a root and a division in place of a product: rewrites; 0.011: a fault."""
    rewritten = parsed(
        NORMALISED.replace("centred", "c").replace("squares", "q").replace("means", "m"),
        ("constant(0.125)", "constant(8)"),
        ("mean = f32[4] multiply(total, eighths)", "mean = f32[4] divide(total, eighths)"),
        ("variance = f32[4] multiply(q, eighths)", "variance = f32[4] divide(q, eighths)"),
        ("rsqrt(above)", "sqrt(above)"),
        ("multiply(c, scales)", "divide(c, scales)"),
    )
    assert compare_modules(parsed(NORMALISED), rewritten).relation.value == "equal"
    text = rewritten.to_text()
    assert text.count("1e-05") == 1
    record = parted(parsed(NORMALISED), hlotool.parse(text.replace("1e-05", "1.01e-05")))
    assert {"epsilon", "above"} & {record.source.instruction, *record.instructions}


def test_the_iteration_in_which_a_loop_parts() -> None:
    record = parted(parsed(DESCENT), parsed(DESCENT, ("constant(0.01)", "constant(0.010001)")))
    assert record.source.instruction == "rate"
    assert record.accumulated is not None
    assert record.accumulated.worst is not None
    assert record.accumulated.worst.expected.startswith("0.00999")


def test_values_are_shown_in_numbers() -> None:
    """An addition of 1 in a square: the expected value of the sum is known where its operand is."""
    one = parsed("HloModule m\nENTRY e {\nx = f32[2] parameter(0)\nROOT y = f32[2] multiply(x, x)\n}")
    other = parsed("HloModule m\nENTRY e {\nx = f32[2] parameter(0)\nROOT y = f32[2] add(x, x)\n}")
    record = parted(one, other)
    assert record.source.opcode == "add"
    assert record.accumulated is not None
    assert record.accumulated.worst is not None
    expected, actual = (float(record.accumulated.worst.__getattribute__(n)) for n in ("expected", "actual"))
    # x² and 2x of one x.
    assert expected == pytest.approx((actual / 2) ** 2, rel=1e-5)
    assert "exact arithmetic" in " ".join(record.notes)


def test_equal_programs_do_not_part() -> None:
    sides = programs(parsed(NORMALISED), parsed(NORMALISED))
    with pytest.raises(Unsupported, match="not known to be different"):
        open_search(*sides, [()], Options(), Budget())
