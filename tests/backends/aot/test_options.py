"""What `aot:…` may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.backends.aot import OPTIONS
from hlotool.backends.aot.options import TARGETS, AotOptions, parse_options
from hlotool.backends.registry import get_backend, parse_spec
from hlotool.errors import UsageError


def parsed(text: str) -> AotOptions:
    return parse_options(parse_spec(f"aot:{text}").options, OPTIONS)


def test_flags() -> None:
    options = parsed("h100,triton=off,disable=algsimp+cse,xla_gpu_autotune_level=0")
    assert options.target is TARGETS["h100"]
    assert options.flags == (
        ("xla_disable_hlo_passes", ("algsimp", "cse")),
        ("xla_gpu_enable_triton_gemm", False),
        ("xla_gpu_autotune_level", 0),
    )
    assert ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1") in options.environment


def test_another_compiler(tmp_path: Path) -> None:
    library = tmp_path / "libtpu.so"
    library.touch()
    options = parsed(f"v5e,topology=2x4,libtpu={library}")
    assert options.topology == "2x4"
    assert ("TPU_LIBRARY_PATH", str(library)) in options.environment
    # Else a process that another one killed, or that compiles meanwhile, keeps this one out by a lock file.
    assert ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1") in options.environment


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v5e,h100", "exclude each other"),
        ("v5", "it knows: v2, v3"),
        ("v5e,triton=off", "of GPUs alone"),
        ("h100,triton=on", "triton=off is all"),
        ("h100,libtpu=/x", "goes with a TPU"),
        ("v5e,libtpu=/nowhere/libtpu.so", "is not a file"),
        ("v5e,python=/nowhere/python", "is not a program"),
        ("v5e,timeout=-1", "backend aot: timeout=-1"),
        ("v5e,xla_flag", "is written xla_flag=VALUE"),
    ],
)
def test_wrong_options(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parsed(text)


def test_a_target_must_be_named() -> None:
    with pytest.raises(UsageError, match="say for what, as in aot:v5e"):
        _ = get_backend("aot").version


@pytest.mark.parametrize("name", TARGETS)
def test_targets_say_what_compilers_ask(name: str) -> None:
    target = TARGETS[name]
    assert (target.platform == "tpu") == bool(target.kind) == (not target.facts)
    assert target.memory > 1 << 32
    if target.facts:
        assert f"device_memory_size: {target.memory}" in target.facts
        assert target.facts.count("{") == target.facts.count("}")


@pytest.mark.parametrize(
    ("name", "devices", "topology"),
    [("v5e", 1, "2x2"), ("v5e", 5, "2x4"), ("v5e", 99, "4x4"), ("h100", 6, "1x1x6"), ("v4", 8, "2x2x1")],
)
def test_a_topology_has_enough_devices(name: str, devices: int, topology: str) -> None:
    assert TARGETS[name].topology(devices) == topology
