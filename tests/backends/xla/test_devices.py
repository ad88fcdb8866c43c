"""Programs for several devices on real XLA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.backends.xla.backend import XlaBackend
from hlotool.errors import InputDataError, Unsupported
from hlotool.ir.devices import DeviceGrid
from hlotool.judge.verdicts import AGREEING
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions

pytestmark = pytest.mark.xla

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

SUMS = """HloModule sums
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] all-reduce(x), to_apply=add, channel_id=1, use_global_device_ids=true,
    replica_groups={{0,1},{2,3}}
  d = u32[] partition-id()
  e = f32[] convert(d)
  f = f32[4] broadcast(e), dimensions={}
  ROOT r = f32[4] add(y, f)
}
"""

GLOBAL = """HloModule spread, num_partitions=4
ENTRY e {
  p = (f32[8,4], f32[4,8]) parameter(0), sharding={{devices=[4,1]<=[4]},{replicated}}
  x = f32[8,4] get-tuple-element(p), index=0
  y = f32[4,8] get-tuple-element(p), index=1
  d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4,8] slice(d), slice={[1:5], [0:8]}
  ROOT t = (f32[8,8], f32[4,8]) tuple(d, s), sharding={{devices=[2,2]<=[4]},{replicated}}
}
"""


def xla() -> XlaBackend:
    backend = get_backend("xla:opt=0")
    assert isinstance(backend, XlaBackend)
    return backend


@pytest.mark.parametrize("grid", [DeviceGrid(1, 4), DeviceGrid(2, 2), DeviceGrid(4, 1)], ids=str)
def test_devices_exchange_values(grid: DeviceGrid) -> None:
    module = parse_module(SUMS)
    arguments = [[np.float32([device, 1, 2, 3])] for device in range(4)]
    theirs = xla().compile_devices(module, grid).run_devices(arguments)
    ours = NumpyBackend().compile_devices(module, grid).run_devices(arguments)
    np.testing.assert_array_equal(np.stack(theirs), np.stack(ours))  # type: ignore[arg-type]


def test_a_program_on_global_arrays_is_partitioned() -> None:
    module = parse_module(GLOBAL)
    rng = np.random.default_rng(0)
    argument: Any = (
        rng.integers(-8, 8, (8, 4)).astype(np.float32),
        rng.integers(-8, 8, (4, 8)).astype(np.float32),
    )
    theirs: Any = xla().compile(module).run([argument])
    ours: Any = NumpyBackend().compile(module).run([argument])
    for their, our in zip(theirs, ours):
        np.testing.assert_array_equal(their, our)


def test_each_device_needs_its_arguments() -> None:
    executable = xla().compile_devices(parse_module(SUMS), DeviceGrid(1, 4))
    with pytest.raises(InputDataError, match="4 devices take as many lists of arguments, got 1"):
        executable.run_devices([[np.zeros(4, np.float32)]])


def test_nobody_can_watch_devices() -> None:
    executable = xla().compile_devices(parse_module(SUMS), DeviceGrid(1, 4))
    with pytest.raises(Unsupported, match="does not show"):
        executable.run_devices([[np.zeros(4, np.float32)]] * 4, [lambda i, v: None] * 4)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("sharded_mlp", "numpy"),
        ("collectives", "numpy"),
        ("pmap_step", "numpy"),
        ("sharded_train_step", "xla:opt=0"),
    ],
)
def test_dumps_for_eight_devices(name: str, reference: str) -> None:
    """Before optimisation on global arrays, afterwards on each device."""
    from hlotool.runs.run import replay_module
    from hlotool.runs.task import Task
    from hlotool.sources.directory import open_dump

    xla()
    options = ReplayOptions(reference=reference, backend="xla:opt=0")
    for module in open_dump(str(CORPUS / "jax" / name)).modules:
        rows = replay_module(Task(module, options))
        assert {row.verdict for row in rows} <= AGREEING, [row.reason for row in rows]
