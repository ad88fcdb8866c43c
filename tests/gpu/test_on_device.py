"""The backend `cuda` on a GPU: what no stand-in can show, and that the rest holds there, too.

Whatever rounds correctly gives the bits of the numpy reference; sums give those of the same kernels on the
CPU.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cuda_programs import DOTS, PROGRAMS, arguments_for
from support.differential import leaves
from support.kernels import differing, emulator, needs_compiler, on_numpy
from support.random_fusions import arguments_of, module_of, random_fusion

from hlotool.backends.cuda.backend import CudaBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendOutOfMemory, BackendUnavailable
from hlotool.interface.cli.main import main
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.gpu

#: Random fusions of one compilation, and compilations.
_BATCH, _BATCHES = 12, 10

#: Modules of the corpus that one command runs, in so many processes: most of the time is the compiler's. The
#: suite runs several commands at the same time.
_MODULES = 50
_JOBS = max(2, (os.cpu_count() or 1) // 4)

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus" / "modules"


@pytest.fixture(scope="session")
def gpu() -> CudaBackend:
    try:
        found = get_backend("cuda:generated")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert isinstance(found, CudaBackend)
    return found


def _wrong(ours: Any, theirs: Any) -> int:
    """Elements that are not equal to the bit."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(leaves(ours), leaves(theirs), strict=True)]
    assert all(a.shape == b.shape for a, b in pairs)
    return sum(differing(a, b) for a, b in pairs if a.size and a.dtype != object)


@pytest.mark.parametrize("name", PROGRAMS)
def test_small_programs_give_the_bits_of_the_reference(gpu: CudaBackend, name: str) -> None:
    module = parse_module(PROGRAMS[name])
    arguments = arguments_for(module)
    assert _wrong(gpu.compile(module).run(arguments), tuple(on_numpy(module, arguments))) == 0


@pytest.mark.parametrize("first", range(0, _BATCH * _BATCHES, _BATCH))
def test_small_random_fusions_give_the_bits_of_the_reference(gpu: CudaBackend, first: int) -> None:
    fusions = [random_fusion(seed) for seed in range(first, first + _BATCH)]
    module, arguments = parse_module(module_of(fusions)), arguments_of(fusions, first)
    ours, theirs = leaves(gpu.compile(module).run(arguments)), on_numpy(module, arguments)
    wrong = {seed: differing(a, b) for seed, (a, b) in enumerate(zip(ours, theirs), first)}
    assert {seed: count for seed, count in wrong.items() if count} == {}


_SUMS = """HloModule sums
add {
  a = KIND[] parameter(0)
  b = KIND[] parameter(1)
  ROOT r = KIND[] add(a, b)
}
larger {
  v = KIND[] parameter(0)
  i = s32[] parameter(1)
  w = KIND[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = KIND[] select(p, v, w)
  k = s32[] select(p, i, j)
  ROOT r = (KIND[], s32[]) tuple(x, k)
}
ENTRY main {
  x = KIND[DIMS] parameter(0)
  zero = KIND[] constant(0)
  none = s32[] constant(-1)
  n = s32[DIMS] iota(), iota_dimension=1
  rows = KIND[ROWS] reduce(x, zero), dimensions={1}, to_apply=add
  columns = KIND[COLUMNS] reduce(x, zero), dimensions={0}, to_apply=add
  all = KIND[] reduce(x, zero), dimensions={0,1}, to_apply=add
  top = (KIND[ROWS], s32[ROWS]) reduce(x, n, zero, none), dimensions={1}, to_apply=larger
  y = KIND[DIMS] multiply(x, x)
  squares = KIND[ROWS] reduce(y, zero), dimensions={1}, to_apply=add
  spread = KIND[DIMS] broadcast(squares), dimensions={0}
  scaled = KIND[DIMS] divide(y, spread)
  sums = (KIND[ROWS], KIND[COLUMNS], KIND[]) tuple(rows, columns, all)
  t = ((KIND[ROWS], KIND[COLUMNS], KIND[]), (KIND[ROWS], s32[ROWS])) tuple(sums, top)
  ROOT r = (((KIND[ROWS], KIND[COLUMNS], KIND[]), (KIND[ROWS], s32[ROWS])), KIND[DIMS]) tuple(t, scaled)
}
"""


def _sums(kind: str, rows: int, columns: int) -> tuple[Module, list[Array]]:
    sizes = {"KIND": kind, "DIMS": f"{rows},{columns}", "ROWS": str(rows), "COLUMNS": str(columns)}
    module = parse_module(re.sub("KIND|DIMS|ROWS|COLUMNS", lambda found: sizes[found[0]], _SUMS))
    return module, arguments_for(module)


@needs_compiler
@pytest.mark.parametrize("kind", ["f32", "bf16", "f64"])
@pytest.mark.parametrize(("rows", "columns"), [(700, 33), (3, 200_000), (20_000, 40), (1, 1_000_000)])
def test_sums_have_the_bits_of_the_same_kernels_on_the_cpu(
    gpu: CudaBackend, kind: str, rows: int, columns: int
) -> None:
    module, arguments = _sums(kind, rows, columns)
    assert _wrong(gpu.compile(module).run(arguments), emulator().compile(module).run(arguments)) == 0


def _poisoned(gpu: CudaBackend) -> Iterator[int]:
    """Each time, what the memory pool will hand out next has other content."""
    device = gpu.memory.device
    for byte in (0x00, 0xFF, 0x5A):
        blocks = [(device.allocate(1 << size), 1 << size) for size in range(8, 24) for _ in range(4)]
        for block, size in blocks:
            device.fill(block, byte, size)
        del blocks
        yield byte


@pytest.mark.parametrize("name", [*PROGRAMS, "sums"])
def test_small_results_repeat_over_poisoned_memory(gpu: CudaBackend, name: str) -> None:
    if name == "sums":
        module, arguments = _sums("f32", 300, 1000)
    else:
        module = parse_module(PROGRAMS[name])
        arguments = arguments_for(module)
    executable = gpu.compile(module)
    first, *others = [executable.run(arguments) for _ in _poisoned(gpu)]
    assert [_wrong(first, other) for other in others] == [0, 0]


@pytest.mark.parametrize("name", DOTS)
def test_products_by_the_library(gpu: CudaBackend, name: str) -> None:
    module = parse_module(DOTS[name])
    arguments = arguments_for(module)
    backend = get_backend("cuda")
    assert isinstance(backend, CudaBackend)
    if not backend.has_library:
        pytest.skip("cuBLAS is not installed")
    executable = backend.compile(module)
    ours, again, [theirs] = executable.run(arguments), executable.run(arguments), on_numpy(module, arguments)
    assert _wrong(ours, again) == 0
    wide = [np.asarray(a).astype(np.complex128) for a in (ours, theirs)]
    tolerance = {"f64": 1e-14, "c128": 1e-14, "bf16": 1e-2, "f16": 1e-3}.get(name, 5e-6)
    np.testing.assert_allclose(wide[0], wide[1], rtol=0, atol=tolerance * np.abs(wide[1]).max())


_UPDATES = """HloModule updates
condition {
  s = (s32[], f32[SIZE]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(50)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[SIZE]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[SIZE] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[100] slice(x), slice={[0:100]}
  v = f32[100] add(u, u)
  y = f32[SIZE] dynamic-update-slice(x, v, j)
  ROOT r = (s32[], f32[SIZE]) tuple(j, y)
}
ENTRY main {
  x = f32[SIZE] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[SIZE]) tuple(zero, x)
  ROOT w = (s32[], f32[SIZE]) while(t), condition=condition, body=body
}
"""


@pytest.mark.alone
def test_updates_in_a_loop_happen_in_place(gpu: CudaBackend) -> None:
    module = parse_module(_UPDATES.replace("SIZE", str(1 << 26)))
    arguments = [np.ones(1 << 26, np.float32)]
    executable, device = gpu.compile(module), gpu.memory.device
    executable.run(arguments)
    device.release()
    before = device.free_memory()
    result = executable.run(arguments)
    # One buffer of 256 MB was enough: the pool holds no second one.
    assert before - device.free_memory() < (2 << 28)
    assert _wrong(result, tuple(on_numpy(module, arguments))) == 0


@pytest.mark.alone
def test_what_does_not_fit_is_one_error_and_the_device_goes_on(gpu: CudaBackend) -> None:
    size = gpu.memory.device.memory // 4 * 2
    module = parse_module(
        f"HloModule large\nENTRY main {{\n  x = f32[] parameter(0)\n"
        f"  ROOT b = f32[{size}] broadcast(x), dimensions={{}}\n}}\n"
    )
    with pytest.raises(
        BackendOutOfMemory, match=r"a buffer of .* [MGT]iB does not fit .* at broadcast %b"
    ) as caught:
        gpu.compile(module).run([np.float32(1)])
    assert not caught.value.here
    test_small_programs_give_the_bits_of_the_reference(gpu, "chain")


#: Launches a kernel on addresses that are none, then waits for it.
_ILLEGAL = """
from support.cuda_programs import PROGRAMS, arguments_for
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendCrashed
from hlotool.parser.reader import parse_module
backend = get_backend("cuda:synchronous")
executable = backend.compile(parse_module(PROGRAMS["chain"]))
device = backend.memory.device
[function] = executable._loading._functions.values()
try:
    device.launch(function, 1, 256, [0, 0])
    device.synchronize()
except BackendCrashed as error:
    print(error, error.here)
"""


def test_an_illegal_address_is_an_error_and_no_abort(gpu: CudaBackend) -> None:
    if gpu.device == "stand-in":
        pytest.skip("the stand-in for the driver would crash as any program does")
    search = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", _ILLEGAL],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "an illegal memory access was encountered True" in done.stdout


def test_clock(gpu: CudaBackend) -> None:
    module, arguments = _sums("f32", 2000, 2000)
    times = gpu.compile(module).prepare(arguments).time(5, inner=3)
    assert len(times) == 5
    assert 0 < min(times) < 1000


@pytest.mark.parametrize("start", range(0, len(list(CORPUS.glob("*.hlo"))), _MODULES))
def test_programs_of_the_corpus(
    gpu: CudaBackend, start: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(CORPUS.glob("*.hlo"))[start : start + _MODULES]
    for file in files:
        (tmp_path / file.name).symlink_to(file)
    main(["run", str(tmp_path), "--test", "cuda", "--json", "--jobs", str(_JOBS)])
    rows = json.loads(capsys.readouterr().out)["modules"]
    bad = {
        row["name"]: row["reason"]
        for row in rows
        if row["verdict"] not in ("identical", "agree", "rounding", "unsupported")
    }
    assert bad == {}
