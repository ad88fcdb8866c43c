"""Devices that programs are compiled for without one: how the compilers want them named, public facts.

TPUs: topologies that libtpu 0.0.42 and 0.0.52 accept; the smallest of each kind. GPUs: what XLA's compiler
asks of a device, from NVIDIA's data sheets and tables of compute capabilities; autotuning needs a device and
is not done.
"""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of device.

    Attributes:
        device: its name.
        platform: `tpu` or `cuda`.
        topologies: as the compiler takes them, with their numbers of devices, the smallest first.
        memory: bytes of the device's memory.
        kind: of a TPU, what stands before the topology.
        facts: of a GPU, a text proto of `GpuTargetConfigProto`.
    """

    device: str
    platform: str
    topologies: tuple[tuple[int, str], ...]
    memory: int
    kind: str = ""
    facts: str = ""

    def topology(self, devices: int) -> str:
        """One with so many devices; the largest that is known where none has as many."""
        if self.platform == "cuda":
            return f"1x1x{devices}"
        return next((name for count, name in self.topologies if count >= devices), self.topologies[-1][1])


def _tpu(device: str, kind: str, gigabytes: float, *topologies: tuple[int, str]) -> Target:
    return Target(device, "tpu", topologies, int(gigabytes * _GIB), kind)


@dataclass(frozen=True, slots=True)
class _Gpu:
    """What tells one GPU from another: counts, bytes, bytes per second, GHz."""

    device: str
    capability: tuple[int, int]
    cores: int
    units: int
    memory: int
    bandwidth: int
    cache: int
    clock: float
    shared_per_core: int
    shared_per_block: int
    threads_per_core: int = 2048

    def target(self) -> Target:
        """The device as XLA's compiler wants it described."""
        major, minor = self.capability
        extension = "ACCELERATED_FEATURES" if major >= 9 else "NONE"
        facts = f"""gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: {self.shared_per_core} threads_per_core_limit: {self.threads_per_core}
  core_count: {self.cores} fpus_per_core: {self.units}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {self.bandwidth} l2_cache_size: {self.cache} clock_rate_ghz: {self.clock}
  device_memory_size: {self.memory} shared_memory_per_block_optin: {self.shared_per_block}
  cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {extension} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 8 minor: 9 patch: 4 }}
device_description_str: "{self.device}"
"""
        return Target(self.device, "cuda", ((1, "1x1x1"),), self.memory, facts=facts)


#: By the word that `aot:` takes.
TARGETS: dict[str, Target] = {
    "v2": _tpu("TPU v2", "v2", 8, (8, "2x2")),
    "v3": _tpu("TPU v3", "v3", 16, (8, "2x2")),
    "v4": _tpu("TPU v4", "v4", 32, (8, "2x2x1")),
    "v5e": _tpu("TPU v5e", "v5e", 15.75, (4, "2x2"), (8, "2x4"), (16, "4x4")),
    "v5p": _tpu("TPU v5p", "v5p", 95, (4, "2x2x1"), (8, "2x2x2")),
    "v6e": _tpu("TPU v6e", "v6e", 31.25, (4, "2x2"), (8, "2x4"), (16, "4x4")),
    "7x": _tpu("TPU7x", "TPU7x", 94.75, (8, "2x2x1")),
    "p100": _Gpu(
        "Tesla P100-SXM2-16GB", (6, 0), 56, 64, 17066622976, 732160000000, 4194304, 1.4805, 65536, 49152
    ).target(),
    "v100": _Gpu(
        "Tesla V100-SXM2-16GB", (7, 0), 80, 64, 16935419904, 898048000000, 6291456, 1.53, 98304, 98304
    ).target(),
    "a100": _Gpu(
        "NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 85100068864, 2039040000000, 41943040, 1.41, 167936, 166912
    ).target(),
    "a6000": _Gpu(
        "NVIDIA RTX A6000", (8, 6), 84, 128, 51041271808, 768096000000, 6291456, 1.8, 102400, 101376, 1536
    ).target(),
    "h100": _Gpu(
        "NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 84978434048, 3352320000000, 52428800, 1.98, 233472, 232448
    ).target(),
    "b200": _Gpu(
        "NVIDIA B200", (10, 0), 148, 128, 191514673152, 7672320000000, 132644864, 1.965, 233472, 232448
    ).target(),
}
