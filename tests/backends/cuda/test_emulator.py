"""The backend `cuda-emu`: control flow, the host's share, memory updated in place, races, errors."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cuda_programs import PROGRAMS
from support.kernels import emulator, needs_compiler, on_kernels, on_numpy

from hlotool.backends.base import Probe
from hlotool.backends.cuda_emu import backend
from hlotool.backends.cuda_emu.backend import Builder, EmulatorBackend
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendCrashed, BackendUnavailable, UsageError
from hlotool.interface.cli.main import main
from hlotool.ir.devices import DeviceGrid
from hlotool.parser.reader import parse_module

_FUSIBLE = """HloModule fusible
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[40,50] parameter(0)
  y = f32[40,50] parameter(1)
  z = f32[40,50] parameter(2)
  m = f32[40,50] multiply(y, z)
  s = f32[40,50] add(x, m)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(s, zero), dimensions={0,1}, to_apply=add
}
"""


@needs_compiler
def test_a_sum_of_products_is_one_kernel() -> None:
    module, rng = parse_module(_FUSIBLE), np.random.default_rng(0)
    executable = emulator().compile(module)
    assert executable.launches == 1
    assert executable.notes == ()
    assert emulator(fuses=False).compile(module).launches == 3
    arguments = [rng.standard_normal((40, 50)).astype(np.float32) for _ in range(3)]
    np.testing.assert_allclose(executable.run(arguments), on_numpy(module, arguments)[0], rtol=1e-4)


@needs_compiler
def test_a_probe_sees_every_instruction() -> None:
    module = parse_module(_FUSIBLE)
    seen: list[str] = []
    probe: Probe = lambda instruction, value: seen.append(instruction.name)  # noqa: E731
    emulator().compile(module).run([np.ones((40, 50), np.float32)] * 3, probe)
    assert seen == ["m", "s", "r"]


_FUSED = """HloModule fused
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
inner {
  x = f32[40,50] parameter(0)
  y = f32[40,50] negate(x)
  zero = f32[] constant(0)
  s = f32[40] reduce(y, zero), dimensions={1}, to_apply=add
  b = f32[40,50] broadcast(s), dimensions={0}
  ROOT d = f32[40,50] divide(y, b)
}
ENTRY main {
  p = f32[40,50] parameter(0)
  ROOT f = f32[40,50] fusion(p), kind=kLoop, calls=inner
}
"""


@needs_compiler
def test_a_probe_sees_the_inside_of_a_kernel() -> None:
    module = parse_module(_FUSED)
    argument = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    seen: dict[str, np.ndarray[Any, Any]] = {}
    expected: dict[str, np.ndarray[Any, Any]] = {}
    executable = emulator().compile(module)
    probed = executable.run([argument], lambda i, value: seen.update({i.name: np.array(value)}))
    NumpyBackend().compile(module).run(
        [argument], lambda i, value: expected.update({i.name: np.array(value)})
    )
    assert list(seen) == ["y", "s", "b", "d", "f"]
    for name, value in seen.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-3, err_msg=name)
    np.testing.assert_array_equal(probed, executable.run([argument]))


@needs_compiler
def test_loops_updates_and_the_share_of_the_host() -> None:
    last = "y = f32[8] get-tuple-element(w), index=1\n"
    then_sorted = f"{last}  ROOT f = f32[8] sort(y), dimensions={{0}}, to_apply=less\n"
    module = parse_module(PROGRAMS["loop"].replace(f"ROOT {last}", then_sorted))
    x = np.arange(8, 0, -1).astype(np.float32)
    executable = emulator().compile(module)
    assert executable.notes == ("host fallbacks: sort x1, 64 B moved",)
    np.testing.assert_array_equal(executable.run([x]), on_numpy(module, [x])[0])
    np.testing.assert_array_equal(on_kernels(module, [x], backward=True)[0], on_numpy(module, [x])[0])
    np.testing.assert_array_equal(x, np.arange(8, 0, -1))


#: The barrier between writing shared memory and reading it is missing: both happen in one phase.
_RACE = """
KERNEL(race, const float* p0, float* out0) {
  SHARED(float, shared, NT);
  phase([&](int t) { shared[t] = p0[t]; out0[t] = shared[NT - 1 - t]; });
}
extern "C" void run_race(void** pointers, i64 grid) { race((const float*)pointers[0], (float*)pointers[1]); }
"""


@needs_compiler
def test_a_missing_barrier_shows(tmp_path: Path) -> None:
    results = []
    for backward in (False, True):
        library = ctypes.CDLL(str(Builder(backward, folder=tmp_path).compile([_RACE], ["race"])))
        given, result = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
        library.run_race((ctypes.c_void_p * 2)(given.ctypes.data, result.ctypes.data), ctypes.c_longlong(1))
        results.append(result)
    assert np.isnan(results[0]).any()
    assert not np.array_equal(results[0], results[1], equal_nan=True)


@needs_compiler
def test_kernels_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    module = parse_module(_FUSIBLE)
    EmulatorBackend().compile(module)
    made = sorted(p.name for p in (tmp_path / "kernels").rglob("*.so"))
    assert len(made) == 1
    monkeypatch.setattr(Builder, "compile", lambda *_: pytest.fail("compiled again"))
    EmulatorBackend().compile(module)


@needs_compiler
def test_a_refused_kernel_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BackendCrashed, match="refused") as caught:
        Builder(folder=tmp_path).compile(["int f( {"], ["f"])
    assert "error" in caught.value.log


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    backend.compiler.cache_clear()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BackendUnavailable, match="there is none on the PATH"):
        get_backend("cuda-emu")
    backend.compiler.cache_clear()


@needs_compiler
def test_manual_regions_run_on_all_partitions() -> None:
    module = parse_module(
        """HloModule regions, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] add(x, x)
  split = f32[4] custom-call(y), custom_call_target="Sharding", sharding={devices=[2]<=[2]}
  part = f32[2] custom-call(split), custom_call_target="SPMDFullToShardShape", sharding={manual}
  number = u32[] partition-id()
  added = f32[] convert(number)
  spread = f32[2] broadcast(added), dimensions={}
  sum = f32[2] add(part, spread)
  keep = f32[2] custom-call(sum), custom_call_target="Sharding", sharding={manual}
  ROOT whole = f32[4] custom-call(keep), custom_call_target="SPMDShardToFullShape",
    sharding={devices=[2]<=[2]}
}
"""
    )
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(on_kernels(module, [x])[0], on_numpy(module, [x])[0])


def test_unknown_options() -> None:
    with pytest.raises(
        UsageError, match="it knows: backward, generated, march=ARCH, precision=NAME, unfused"
    ):
        get_backend("cuda-emu:fast")


_SEVERAL = """HloModule several, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] multiply(x, x)
  ROOT s = f32[3] all-reduce(y), replica_groups={{0,1},{2,3}}, channel_id=1,
    use_global_device_ids=true, to_apply=add
}
"""


@needs_compiler
def test_several_devices() -> None:
    module, grid = parse_module(_SEVERAL), DeviceGrid(partitions=4)
    arguments = [[np.full(3, device, np.float32)] for device in range(4)]
    executable = emulator().compile_devices(module, grid)
    assert executable.notes == ("host fallbacks: all-reduce x1, 24 B moved",)
    results = executable.run_devices(arguments)
    assert [float(np.asarray(r)[0]) for r in results] == [1, 1, 13, 13]
    seen: list[str] = []
    executable.run_devices(arguments, [lambda i, value: seen.append(i.name), None, None, None])
    assert seen == ["y", "s"]


_CORPUS = ("conditional.branches", "gather.batching", "reduce.argmax", "sort.stable_pairs", "while.nested")


@needs_compiler
@pytest.mark.parametrize("name", _CORPUS)
def test_programs_of_the_corpus(name: str, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", str(corpus / "modules" / f"{name}.hlo"), "--test", "cuda-emu", "--json"])
    [row] = json.loads(capsys.readouterr().out)["modules"]
    assert row["verdict"] in ("identical", "agree", "rounding")
