"""Updates of updates within one fusion: each kernel starts from what the one before it left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import fake_driver

pytestmark = pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing())

_PROGRAM = """HloModule updates
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
fused {
  x = f32[8,3] parameter(0)
  i = s32[5,1] parameter(1)
  u = f32[5,3] parameter(2)
  j = s32[60,1] parameter(3)
  v = f32[60,3] parameter(4)
  once = f32[8,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  ROOT twice = f32[8,3] scatter(once, j, v), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}
ENTRY main {
  x = f32[8,3] parameter(0)
  i = s32[5,1] parameter(1)
  u = f32[5,3] parameter(2)
  j = s32[60,1] parameter(3)
  v = f32[60,3] parameter(4)
  ROOT r = f32[8,3] fusion(x, i, u, j, v), kind=kInput, calls=fused
}
"""

_SCRIPT = """
import numpy as np
from hlotool.backends.registry import get_backend
from hlotool.parser.reader import parse_module
x, u, v = (np.full((rows, 3), value, np.float32) for rows, value in ((8, 0), (5, 1), (60, 10)))
i, j = np.array([[1], [4], [1], [7], [0]], np.int32), np.arange(60, dtype=np.int32)[:, None] % 6
executable = get_backend("cuda:compiler=nvcc").compile(parse_module(PROGRAM))
assert executable.launches >= 2
result = executable.run([x, i, u, j, v])
assert result[:, 0].tolist() == [101, 102, 100, 100, 101, 100, 0, 1], result
assert not x.any()
"""


def test_a_scatter_into_the_result_of_a_scatter(tmp_path: Path) -> None:
    fake_driver.build(tmp_path)
    script = _SCRIPT.replace("PROGRAM", repr(_PROGRAM))
    environment = fake_driver.environment(tmp_path)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
