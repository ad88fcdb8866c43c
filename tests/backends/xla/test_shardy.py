"""Programs that state their shardings twice, to Shardy and to GSPMD, as XLA's dumps do."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.xla

#: Two results are annotated for Shardy, the third is not; all three have a sharding in the root.
PROGRAM = """HloModule m, num_partitions=2, \
frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["rows"=2, "tensor"=1]>}}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[16,6]{1,0} parameter(0), \
frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"rows\\"}, {}]>"}
  y = f32[6]{0} parameter(1)
  zero = f32[] constant(0)
  r = f32[6]{0} reduce(x, zero), dimensions={0}, to_apply=sum
  s = f32[6]{0} add(r, y)
  t = f32[6]{0} custom-call(s), custom_call_target="xla.sdy.FuncResultSharding", \
frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\\"tensor\\"}]>]>"}
  one = s32[] constant(1)
  u = s32[] custom-call(one), custom_call_target="xla.sdy.FuncResultSharding", \
frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, []>]>"}
  v = f32[6]{0} negate(r)
  ROOT o = (f32[6]{0}, s32[], f32[6]{0}) tuple(t, u, v), sharding={{replicated}, {replicated}, OTHER}
}
"""


def test_a_result_that_only_gspmd_is_told_of_is_replicated() -> None:
    module = parse_module(PROGRAM.replace("OTHER", "{replicated}"))
    x, y = np.arange(96, dtype=np.float32).reshape(16, 6), np.full(6, 0.5, np.float32)
    added, one, negated = get_backend("xla").compile(module).run((x, y))
    assert np.array_equal(added, x.sum(0) + y)
    assert one == 1
    assert np.array_equal(negated, -x.sum(0))
    # What was given is as it was.
    assert "sharding={{replicated}" in module.to_text()


def test_a_result_that_only_gspmd_is_told_to_split_keeps_the_program_as_it_is() -> None:
    """The sharding would be lost; XLA dies of the mixture, which is its own answer."""
    module = parse_module(PROGRAM.replace("OTHER", "{devices=[2]<=[2]}"))
    with pytest.raises(HlotoolError, match=r"xla\.sdy"):
        get_backend("xla").compile(module)
