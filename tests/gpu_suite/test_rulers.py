"""What a device is measured with, on a stand-in that is taken for a GPU; how large cases have to be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import fake_driver

from benchmarks.gpu.rulers import COPY, Basic, case_size

#: Measures nothing, and a copy, and says how; memory of the device is set to make time for the host.
_SCRIPT = """
import json, time
import numpy as np
from benchmarks.gpu import cuda_ruler
cuda_ruler.STAND_IN = "another name"
ruler = cuda_ruler.CudaRuler("cuda:compiler=nvcc")
device = ruler._device
set_, copied = [], []
fill, copy = device.fill, device.copy
device.fill = lambda target, byte, size: (set_.append(size), fill(target, byte, size))
device.copy = lambda target, source, size: (copied.append((int(target), size)), copy(target, source, size))
begin = time.perf_counter()
seconds = ruler.seconds(lambda: None, 1)
wall = time.perf_counter() - begin
size = 3 * cuda_ruler._DRAWN + 5
ceiling = ruler.ceiling(size, 2)
target, _ = copied[-1]
found = np.empty(size, np.uint8)
device.download(found, target)
drawn = np.random.default_rng(0).integers(0, 256, cuda_ruler._DRAWN, np.uint8)
print(json.dumps({
    "hardware": ruler.is_hardware, "cache": ruler.cache, "seconds": seconds, "wall": wall, "set": set_[:4],
    "moved": ceiling.moved, "name": ceiling.name, "same": bool((found == np.resize(drawn, size)).all()),
}))
"""


@pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing())
def test_the_clock_sees_the_device_and_not_the_host(tmp_path: Path) -> None:
    """It starts behind memory that is set, which is less on a device that has little."""
    fake_driver.build(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=fake_driver.environment(tmp_path, FAKE_CUDA_MEMORY=str(1 << 30)),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hardware"] is True
    assert found["cache"] == 1 << 16
    assert found["set"] == [1 << 26] * 4
    assert found["seconds"] < found["wall"] / 2
    assert (found["name"], found["moved"]) == (COPY, 2 * (3 * (1 << 24) + 5))
    assert found["same"] is True


def test_cases_are_larger_than_caches_and_take_long_enough() -> None:
    # 4 TB/s for 100 us, and four times the cache where that is more.
    copied = Basic(COPY, 0.5e-3, 2_000_000_000)
    assert case_size(copied, 50 << 20) == 400_000_000
    assert case_size(copied, 126 << 20) == 4 * (126 << 20)
    assert case_size(copied, 0) == 400_000_000
