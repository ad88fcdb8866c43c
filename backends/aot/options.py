"""The options of the backend's spec, such as `aot:v5e,topology=2x4,disable=algsimp`, and the devices it
compiles for.

How the compilers want devices named is public: the table says where each fact stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hlotool.backends.aot.protocol import LIBRARY
from hlotool.backends.registry import Options, check_options, executes_code, parse_spec
from hlotool.backends.xla.options import DEFAULT_TIMEOUT, flag_value, interpreter, seconds
from hlotool.backends.xla.protocol import Flag
from hlotool.errors import UsageError

_GIB = 1 << 30
#: Bytes of the scalar memory of a TPU's core (jax/_src/pallas/mosaic/tpu_info.py), of old ones and of others.
_OLD_SMEM, _SMEM = 16 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of device.

    Attributes:
        device: its name.
        platform: `tpu` or `cuda`.
        topologies: as the compiler takes them, with their numbers of devices, the smallest first.
        memory: bytes of the device's memory.
        vmem: of a TPU, bytes of a core's vector memory.
        kind: of a TPU, what stands before the topology.
        facts: of a GPU, a text proto of `GpuTargetConfigProto`.
    """

    device: str
    platform: str
    topologies: tuple[tuple[int, str], ...]
    memory: int
    kind: str = ""
    facts: str = ""
    vmem: int = 0

    @property
    def capacities(self) -> dict[str, int]:
        """Bytes of each memory of the device, by the name that its compiler has for it."""
        if self.platform == "cuda":
            return {"hbm": self.memory}
        return {
            "hbm": self.memory,
            "vmem": self.vmem,
            "smem": _OLD_SMEM if self.kind in ("v2", "v3") else _SMEM,
        }

    def topology(self, devices: int) -> str:
        """One with so many devices; the largest that is known where none has as many."""
        if self.platform == "cuda":
            return f"1x1x{devices}"
        return next((name for count, name in self.topologies if count >= devices), self.topologies[-1][1])


def _tpu(device: str, kind: str, gigabytes: float, megabytes: int, *topologies: tuple[int, str]) -> Target:
    """`megabytes` of vector memory: jax/_src/pallas/mosaic/tpu_info.py; the rest as the compiler says it."""
    return Target(device, "tpu", topologies, int(gigabytes * _GIB), kind, vmem=megabytes << 20)


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
    "v2": _tpu("TPU v2", "v2", 8, 16, (8, "2x2")),
    "v3": _tpu("TPU v3", "v3", 16, 16, (8, "2x2")),
    "v4": _tpu("TPU v4", "v4", 32, 16, (8, "2x2x1")),
    "v5e": _tpu("TPU v5e", "v5e", 15.75, 128, (4, "2x2"), (8, "2x4"), (16, "4x4")),
    "v5p": _tpu("TPU v5p", "v5p", 95, 64, (4, "2x2x1"), (8, "2x2x2")),
    "v6e": _tpu("TPU v6e", "v6e", 31.25, 128, (4, "2x2"), (8, "2x4"), (16, "4x4")),
    "7x": _tpu("TPU7x", "TPU7x", 94.75, 64, (8, "2x2x1")),
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


def platform_of(backend: str) -> str:
    """`cpu`, `gpu` or `tpu`: what a backend compiles for, by the options of its spec."""
    spec = parse_spec(backend)
    for option in spec.options:
        if option in ("gpu", "tpu"):
            return option
        if (target := TARGETS.get(option)) is not None:
            return "tpu" if target.platform == "tpu" else "gpu"
    return "gpu" if executes_code(backend) else "cpu"


@dataclass(frozen=True, slots=True)
class AotOptions:
    """How programs are compiled.

    Attributes:
        target: for what; None where the user did not say.
        topology: as the compiler takes it; empty for the smallest.
        flags: debug options of XLA for every compilation.
        libtpu: path of a TPU compiler; empty for the installed one.
        python: path of the interpreter whose jaxlib is used; empty for this one's.
        timeout: seconds for each compilation.
    """

    target: Target | None = None
    topology: str = ""
    flags: tuple[Flag, ...] = ()
    libtpu: str = ""
    python: str = ""
    timeout: float = DEFAULT_TIMEOUT

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """Variables without which the compilers look for a device, or for a server that knows of one."""
        assert self.target is not None
        common = [("JAX_PLATFORMS", "cpu")]
        if self.target.platform == "cuda":
            # Without the second, LLVM names the functions of its own stack for each kernel: most of the time.
            return (*common, ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1"), ("LLVM_DISABLE_SYMBOLIZATION", "1"))
        # Without the second, two processes that compile at a time get in each other's way by a lock file.
        # The last two: its warnings are for the user.
        wanted = [("TPU_SKIP_MDS_QUERY", "1"), ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")]
        wanted += [("TPU_STDERR_LOG_LEVEL", "1"), ("TPU_MIN_LOG_LEVEL", "1")]
        library = [(LIBRARY, self.libtpu)] if self.libtpu else []
        return (*common, *wanted, *library)


def parse_options(options: Options, forms: Mapping[str, str], name: str = "aot") -> AotOptions:
    """The options of the spec of a backend called `name`, which knows those of `forms`.

    Raises:
        UsageError: unknown ones, values that make no sense, or several targets.
    """
    known = {key: value for key, value in options.items() if not key.startswith("xla_")}
    check_options(name, known, forms)
    named = [target for target in TARGETS if target in forms and target in known]
    if len(named) > 1:
        raise UsageError(f"backend {name}: {' and '.join(named)} exclude each other")
    target = TARGETS[named[0]] if named else None
    flags: list[Flag] = []
    if "disable" in known:
        flags.append(("xla_disable_hlo_passes", tuple(known["disable"].split("+"))))
    if "triton" in known:
        if known["triton"] != "off" or target is None or target.platform != "cuda":
            raise UsageError(
                f"backend {name}: triton=off is all that may be said of Triton, and of GPUs alone"
            )
        flags.append(("xla_gpu_enable_triton_gemm", False))
    flags += [(key, flag_value(key, value, name)) for key, value in options.items() if key.startswith("xla_")]
    return AotOptions(
        target=target,
        topology=known.get("topology", ""),
        flags=tuple(flags),
        libtpu=_library(known.get("libtpu", ""), target),
        python=interpreter(known.get("python", ""), name),
        timeout=seconds("timeout", known.get("timeout", str(DEFAULT_TIMEOUT)), name),
    )


def _library(path: str, target: Target | None) -> str:
    """The path of a TPU compiler; jaxlib takes the installed one, without a word, where there is none."""
    if not path:
        return ""
    if target is None or target.platform != "tpu":
        raise UsageError("backend aot: libtpu=PATH goes with a TPU")
    if not Path(path).is_file():
        raise UsageError(f"backend aot: libtpu={path} is not a file")
    return str(Path(path).resolve())
