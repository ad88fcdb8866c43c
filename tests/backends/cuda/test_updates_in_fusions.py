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
  once = f32[8,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
  ROOT twice = f32[8,3] scatter(once, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}
ENTRY main {
  x = f32[8,3] parameter(0)
  i = s32[5,1] parameter(1)
  u = f32[5,3] parameter(2)
  ROOT r = f32[8,3] fusion(x, i, u), kind=kInput, calls=fused
}
"""

_SCRIPT = """
import numpy as np
from hlotool.backends.registry import get_backend
from hlotool.parse.reader import parse_module
x, u = np.zeros((8, 3), np.float32), np.ones((5, 3), np.float32)
i = np.array([[1], [4], [1], [7], [0]], np.int32)
executable = get_backend("cuda:compiler=nvcc").compile(parse_module(PROGRAM))
assert executable.launches >= 2
result = executable.run([x, i, u])
assert result[:, 0].tolist() == [2, 4, 0, 0, 2, 0, 0, 2], result
assert not x.any()
"""


def test_a_scatter_into_the_result_of_a_scatter(tmp_path: Path) -> None:
    fake_driver.build(tmp_path)
    script = _SCRIPT.replace("PROGRAM", repr(_PROGRAM))
    environment = fake_driver.environment(tmp_path)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
