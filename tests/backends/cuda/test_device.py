"""The backend `cuda` on a stand-in for the driver: the real pycuda, kernels that g++ compiled."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import fake_driver
from support.cuda_programs import PROGRAMS

pytestmark = pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing() or "all is here")


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu")
    fake_driver.build(folder)
    return folder


@pytest.fixture(scope="module")
def case(stand_in: Path) -> Any:
    """Runs a case of `support.cuda_cases`."""
    return partial(fake_driver.run_case, stand_in)


def test_programs_give_the_bits_of_the_reference(case: Any) -> None:
    found = case("programs")
    assert {name: wrong for name, (wrong, _, _) in found.items()} == dict.fromkeys(found, 0)
    notes = {name: said for name, (_, _, said) in found.items() if said}
    assert notes.pop("sort") == ["host fallbacks: sort x1, 7.81 KiB moved"]
    # The sort goes to the host, not the fusion that holds it; and there the result stays.
    assert notes.pop("sort in a fusion") == ["host fallbacks: sort x1, 160 B moved"]
    assert notes.pop("dynamic")[0].endswith(" 0 B moved")
    assert notes == {}
    launches = {name: count for name, (_, count, _) in found.items()}
    assert (launches["chain"], launches["many alive"], launches["same data"]) == (1, 1, 0)


def test_values_move_when_they_are_read_and_not_before(case: Any) -> None:
    found = case("traffic")
    size = 4
    # Bytes up, down, and copied on the device; constants went up with the first run.
    assert found["chain"] == [100 * size, 100 * size, 0]
    assert found["same data"] == [0, 0, 0]
    assert found["async"] == [8 * size, 8 * size, 0]
    assert found["many alive"] == [2048 * size, 12 * 2048 * size, 0]
    # One predicate of a byte for each iteration and the last; the update happens in place.
    assert found["loop"] == [8 * size, 8 * size + 6, 0]
    # The sorted array comes down, goes up again, and the result comes down.
    assert found["sort"] == [2 * 1000 * size, 2 * 1000 * size, 0]
    # The branch's number and the predicate come down.
    assert found["branches"] == [8 * size + 4, 2 * 8 * size + 4 + 1, 0]
    assert found["constants"] == [8 * size, 8 * size, 0]


def test_random_fusions(case: Any) -> None:
    found = case("fusions")
    assert len(found) >= 12
    assert not any(found)


def test_results_repeat_over_poisoned_memory_and_nothing_leaks(case: Any) -> None:
    assert case("repeats") == [True, 0]


def test_prepared_programs_keep_their_arguments(case: Any) -> None:
    assert case("timing") == [[0, 0], 3, True, 0]


def test_a_probe_sees_what_is_inside_a_fusion(case: Any) -> None:
    assert case("probed") == ["y", "m", "r", "f"]


def test_other_threads_may_run_programs(case: Any) -> None:
    assert case("elsewhere") == [0]


def test_programs_for_several_devices(case: Any) -> None:
    wrong, seen, notes = case("devices")
    assert wrong == [0, 0, 0, 0]
    assert seen == ["n", "f", "b", "y", "r", "z", "t"]
    assert notes == ["host fallbacks: all-reduce x1, partition-id x1, 1.01 KiB moved"]


def test_a_full_device(case: Any) -> None:
    wrong, notes, failure = case("full", FAKE_CUDA_MEMORY="60000")
    assert wrong == 0
    assert [
        note for note in notes if re.fullmatch(r"the device was full: [0-9.]+ KiB moved to the host", note)
    ]
    kind, message, is_fatal, _ = failure
    assert (kind, is_fatal) == ("BackendOutOfMemory", False)
    assert "a buffer of 61 MiB does not fit" in message
    assert message.endswith("at broadcast %b f32[4000,4000] (line 5)")


def test_large_products_by_the_library(case: Any) -> None:
    found = case("products")
    launches = {name: count for name, (count, _, _) in found.items()}
    # Kernels only transpose what the library cannot read as it lies.
    assert launches == {name: int(name in ("batched", "moved")) for name in found}
    assert all(generated for _, generated, _ in found.values())
    tolerances = {"f64": 1e-14, "c128": 1e-14, "bf16": 1e-2, "f16": 1e-3}
    far = {name: d for name, (_, _, d) in found.items() if d > tolerances.get(name, 2e-6)}
    assert far == {}


def test_a_product_that_the_library_cannot_do(case: Any) -> None:
    said = case("failing_product", FAKE_CUBLAS_FAIL="1")
    assert said == ("cuda: cublasGemmStridedBatchedEx_64 failed: status 13, at dot %z f32[128,136] (line 5)")


_FATAL = "BackendCrashed", True, "BackendCrashed"


@pytest.mark.parametrize(
    ("planned", "kind", "is_fatal", "next_run", "message"),
    [
        ("launch:1:700", *_FATAL, "an illegal memory access was encountered, at fusion %"),
        ("synchronize:1:719", "nothing", False, 0, ""),
        (
            "download:1:719",
            *_FATAL,
            "copying from the device: cuMemcpyDtoH failed: unspecified launch failure",
        ),
        ("upload:1:702", "BackendTimeout", True, "BackendTimeout", "the launch timed out and was terminated"),
        ("launch:1:1", "BackendCrashed", False, 0, "launching a kernel: cuLaunchKernel failed"),
    ],
)
def test_errors_of_the_device(
    case: Any, planned: str, kind: str, is_fatal: bool, next_run: Any, message: str
) -> None:
    found = case("failure", FAKE_CUDA_FAIL=planned)
    assert (found[0], found[2], found[3]) == (kind, is_fatal, next_run)
    assert message in found[1]


def test_kernels_that_are_not_for_this_device(case: Any) -> None:
    kind, message = case("refused", FAKE_CUDA_FAIL="load:1:209")
    assert kind == "BackendUnavailable"
    assert message.startswith("stand-in (sm_90, pycuda ")
    assert (
        "driver for CUDA 13.0) refuses kernels compiled by nvcc 13.0: cuModuleLoadDataEx failed: " in message
    )
    assert "no kernel image is available for execution on the device" in message
    assert message.endswith("; they are made for another architecture")
    assert case("refused", FAKE_CUDA_FAIL="load:1:700")[0] == "BackendCrashed"


@pytest.mark.parametrize(
    ("status", "said"),
    [(200, "device kernel image is invalid"), (222, "compiled with an unsupported toolchain")],
)
def test_kernels_that_are_too_new_for_the_driver(case: Any, status: int, said: str) -> None:
    kind, message = case("refused", FAKE_CUDA_FAIL=f"load:1:{status}")
    assert kind == "BackendUnavailable"
    assert said in message
    assert message.endswith(
        "a driver of the compiler's version of CUDA takes them; this one takes an older compiler's"
    )


@pytest.mark.parametrize(
    ("version", "capability", "said"),
    [
        (
            "12040",
            "90",
            "nvcc 13.0 compiles for drivers of CUDA 13 (version 580) and newer, "
            "not for this one of CUDA 12.4: update the driver, or pip install 'hlotool[cuda12]' for NVRTC 12",
        ),
        (
            "11080",
            "90",
            "nvcc 13.0 compiles for drivers of CUDA 13 (version 580) and newer, "
            "not for this one of CUDA 11.8: update the driver",
        ),
        (
            "13000",
            "70",
            "nvcc 13.0 compiles for sm_75, sm_90, sm_100, not for sm_70: an older version does "
            "(pip install 'hlotool[cuda12]')",
        ),
        ("13000", "103", "nvcc 13.0 compiles for sm_75, sm_90, sm_100, not for sm_103: a newer version does"),
    ],
)
def test_a_driver_or_device_that_the_compiler_does_not_serve(
    case: Any, version: str, capability: str, said: str
) -> None:
    found = case("unavailable", FAKE_CUDA_VERSION=version, FAKE_CUDA_CAPABILITY=capability)
    assert found == ["BackendUnavailable", f"backend cuda: {said}"]


def test_a_newer_driver_takes_what_older_compilers_make(case: Any) -> None:
    version, _ = case("unavailable", FAKE_CUDA_VERSION="14010")
    assert version.endswith("driver for CUDA 14.1, nvcc 13.0)")


def test_nvrtc_comes_before_nvcc(stand_in: Path) -> None:
    listed = {backend["name"]: backend for backend in _command(stand_in, "backends")["backends"]}
    assert listed["cuda"]["version"].endswith("NVRTC 13.0)")
    module = str(Path(__file__).resolve().parents[3] / "corpus" / "modules" / "while.nested.hlo")
    [row] = _command(stand_in, "run", module, "--test", "cuda")["modules"]
    assert row["verdict"] in ("identical", "agree", "rounding")


def test_what_is_missing(case: Any) -> None:
    assert case("unavailable")[1] == "stand-in"
    for settings, message in (
        (
            {"FAKE_CUDA_DEVICES": "0"},
            "finds no CUDA device that works: cuInit failed: no CUDA-capable device is detected",
        ),
        ({"LD_LIBRARY_PATH": ""}, "needs NVIDIA's driver, and there is none here (libcuda.so.1: cannot open"),
    ):
        kind, said = case("unavailable", **settings)
        assert kind == "BackendUnavailable"
        assert message in said


def test_a_device_that_is_not_there(case: Any) -> None:
    assert case("another_device") == "backend cuda finds no CUDA device 7: there are 1"


def _command(folder: Path, *arguments: str, **settings: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "hlotool", *arguments, "--json"],
        env=fake_driver.environment(folder, **settings),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def test_the_commands(stand_in: Path, corpus: Path) -> None:
    listed = {backend["name"]: backend for backend in _command(stand_in, "backends")["backends"]}
    assert (listed["cuda"]["available"], listed["cuda"]["device"]) == (True, "stand-in")
    module = str(corpus / "modules" / "while.nested.hlo")
    [row] = _command(stand_in, "run", module, "--test", "cuda:compiler=nvcc")["modules"]
    assert row["verdict"] in ("identical", "agree", "rounding")
    failing = _command(stand_in, "run", module, "--test", "cuda:compiler=nvcc", FAKE_CUDA_FAIL="launch:1:700")
    assert "an illegal memory access was encountered" in failing["modules"][0]["reason"]


def test_a_broken_context_costs_one_row(stand_in: Path, tmp_path: Path) -> None:
    for size, name in enumerate("abc", 100):
        # Equal programs are replayed once.
        text = PROGRAMS["chain"].replace("[100]", f"[{size}]")
        (tmp_path / f"{name}.hlo").write_text(text, encoding="utf-8")
    arguments = ("run", str(tmp_path), "--test", "cuda:compiler=nvcc", "--jobs", "1", "--no-further-sets")
    # The second kernel of a process fails for good: the third program needs another process.
    rows = _command(stand_in, *arguments, FAKE_CUDA_FAIL="launch:2:700")["modules"]
    assert [row["verdict"] for row in rows] == ["identical", "crashed", "identical"]
    assert "an illegal memory access was encountered" in rows[1]["reason"]


@pytest.mark.slow
def test_the_tests_for_a_gpu(stand_in: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/gpu"],
        cwd=Path(__file__).resolve().parents[3],
        env=fake_driver.environment(stand_in),
        capture_output=True,
        encoding="utf-8",
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    # What needs a real device is the only thing left out.
    assert " 1 skipped" in done.stdout
