"""The options of the backend's spec, such as `aot:v5e,topology=2x4,disable=algsimp`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hlotool.backends.aot.targets import TARGETS, Target
from hlotool.backends.spec import Options, check_options
from hlotool.backends.xla.options import DEFAULT_TIMEOUT, flag_value, interpreter, seconds
from hlotool.backends.xla.protocol import Flag
from hlotool.errors import UsageError


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
            return (*common, ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1"))
        # Without the second, two processes that compile at a time get in each other's way by a lock file.
        wanted = [("TPU_SKIP_MDS_QUERY", "1"), ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")]
        library = [("TPU_LIBRARY_PATH", self.libtpu)] if self.libtpu else []
        return (*common, *wanted, *library)


def parse_options(options: Options, forms: Mapping[str, str]) -> AotOptions:
    """The options of a spec.

    Raises:
        UsageError: unknown ones, values that make no sense, or several targets.
    """
    known = {key: value for key, value in options.items() if not key.startswith("xla_")}
    check_options("aot", known, forms)
    named = [name for name in TARGETS if name in known]
    if len(named) > 1:
        raise UsageError(f"backend aot: {' and '.join(named)} exclude each other")
    target = TARGETS[named[0]] if named else None
    flags: list[Flag] = []
    if "disable" in known:
        flags.append(("xla_disable_hlo_passes", tuple(known["disable"].split("+"))))
    if "triton" in known:
        if known["triton"] != "off" or target is None or target.platform != "cuda":
            raise UsageError("backend aot: triton=off is all that may be said of Triton, and of GPUs alone")
        flags.append(("xla_gpu_enable_triton_gemm", False))
    flags += [
        (key, flag_value(key, value, "aot")) for key, value in options.items() if key.startswith("xla_")
    ]
    return AotOptions(
        target=target,
        topology=known.get("topology", ""),
        flags=tuple(flags),
        libtpu=_library(known.get("libtpu", ""), target),
        python=interpreter(known.get("python", ""), "aot"),
        timeout=seconds("timeout", known.get("timeout", str(DEFAULT_TIMEOUT)), "aot"),
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
