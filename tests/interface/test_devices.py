"""`hlotool.run` on several devices."""

from __future__ import annotations

import numpy as np
import pytest

import hlotool
from hlotool.errors import InputDataError, Unsupported, UsageError

SUM = hlotool.parse("""HloModule m, replica_count=2
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
ENTRY e {
  x = s32[2] parameter(0)
  t = s32[2] all-reduce(x), replica_groups={}, to_apply=add
  ROOT r = (s32[2], s32[2]) tuple(t, x)
}""")


def test_one_list_of_results_per_device() -> None:
    results = hlotool.run(SUM, [[[1, 2]], [[10, 20]]], replicas=2)
    assert [[leaf.tolist() for leaf in device] for device in results] == [
        [[11, 22], [1, 2]],
        [[11, 22], [10, 20]],
    ]


def test_one_device_of_several_is_refused() -> None:
    with pytest.raises(Unsupported, match="2 replicas of 1 partitions: say replicas="):
        hlotool.run(SUM, [[1, 2]])


def test_global_programs_run_on_one_device() -> None:
    module = hlotool.parse("""HloModule m, num_partitions=4
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[4]<=[4]}
  ROOT r = f32[4] add(x, x)
}""")
    (result,) = hlotool.run(module, [np.float32([1, 2, 3, 4])])
    assert result.tolist() == [2, 4, 6, 8]


def test_bad_calls() -> None:
    with pytest.raises(InputDataError, match="3 replicas of 1 partitions take 3 lists of inputs, got 2"):
        hlotool.run(SUM, [[[1, 2]], [[10, 20]]], replicas=3)
    with pytest.raises(UsageError, match="no devices"):
        hlotool.run(SUM, [], partitions=0)
