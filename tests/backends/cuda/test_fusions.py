"""Random fusions: equal to the numpy reference, functions apart to the bit, in whatever order threads run."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.kernels import differing, emulator, needs_compiler, on_kernels, on_numpy
from support.random_fusions import arguments_of, mismatches, module_of, random_fusion

from hlotool.backends.cuda.codegen.rules import OPCODES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

#: Fusions of one compilation.
_BATCH = 12


@pytest.mark.parametrize("functions", [False, True], ids=["exact", "functions"])
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(_BATCH, 5000, _BATCH))]
)
def test_random_fusions(first: int, functions: bool) -> None:
    fusions = [random_fusion(seed, functions) for seed in range(first, first + _BATCH)]
    module, arguments = parse_module(module_of(fusions)), arguments_of(fusions, first)
    executable = emulator().compile(module)
    assert executable.notes == ()
    ours, backward = (on_kernels(module, arguments, order) for order in (False, True))
    assert mismatches(fusions, ours, on_numpy(module, arguments)) == {}
    assert [differing(a, b) for a, b in zip(ours, backward)] == [0] * len(ours)


def test_random_fusions_have_all_operations_and_types() -> None:
    fusions = [random_fusion(seed, functions) for seed in range(600) for functions in (False, True)]
    texts = "\n".join("\n".join([*fusion.lines, *fusion.helpers]) for fusion in fusions)
    opcodes = set(re.findall(r"[\])}] ([a-z][a-z0-9-]*)\(", texts))
    assert opcodes >= OPCODES
    assert {value.kind for fusion in fusions for value in fusion.parameters} == set(ELEMENT_TYPES)


def test_an_integer_on_the_way_has_no_negative_zero() -> None:
    module = parse_module(
        """HloModule zeros
ENTRY main {
  x = f32[64] parameter(0)
  i = u32[64] convert(x)
  ROOT y = f32[64] convert(i)
}
"""
    )
    result = on_kernels(module, [np.full(64, -0.25, np.float32)])[0]
    assert not np.signbit(result).any()


_SUMS = """HloModule sums
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
wide {
  x = f32[20,70000] parameter(0)
  y = f32[70000] parameter(1)
  yy = f32[20,70000] broadcast(y), dimensions={1}
  m = f32[20,70000] multiply(x, yy)
  zero = f32[] constant(0)
  ROOT r = f32[20] reduce(m, zero), dimensions={1}, to_apply=add
}
tall {
  x = f32[20,70000] parameter(0)
  t = f32[70000,20] transpose(x), dimensions={1,0}
  two = f32[] constant(2)
  ROOT r = f32[20] reduce(t, two), dimensions={0}, to_apply=add
}
softmax {
  x = f32[20,70] parameter(0)
  e = f32[20,70] exponential(x)
  zero = f32[] constant(0)
  s = f32[20] reduce(e, zero), dimensions={1}, to_apply=add
  ss = f32[20,70] broadcast(s), dimensions={0}
  ROOT r = f32[20,70] divide(e, ss)
}
ENTRY main {
  x = f32[20,70000] parameter(0)
  y = f32[70000] parameter(1)
  z = f32[20,70] parameter(2)
  a = f32[20] fusion(x, y), kind=kInput, calls=wide
  b = f32[20] fusion(x), kind=kInput, calls=tall
  c = f32[20,70] fusion(z), kind=kInput, calls=softmax
  ROOT r = (f32[20], f32[20], f32[20,70]) tuple(a, b, c)
}
"""


def test_sums_in_one_pass_and_in_two() -> None:
    module, rng = parse_module(_SUMS), np.random.default_rng(0)
    arguments = [rng.standard_normal(dims).astype(np.float32) for dims in ((20, 70000), 70000, (20, 70))]
    assert emulator().compile(module).launches == 5
    ours, backward = (on_kernels(module, arguments, order) for order in (False, True))
    for a, b, c in zip(ours, on_numpy(module, arguments), backward):
        assert differing(a, c) == 0
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-3)
