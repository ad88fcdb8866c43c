"""Functions of JAX that stand for programs: `SCRIPT.py:FUNCTION`.

The script runs in a process of its own, with JAX on the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hlotool.backends.aot.protocol import LowerRequest
from hlotool.backends.xla.options import DEFAULT_TIMEOUT
from hlotool.backends.xla.process import ProcessKey, XlaProcess
from hlotool.errors import BackendFailed, DumpError, UsageError


def scripts_among(paths: Sequence[str], shapes: str | None) -> list[str]:
    """Those of `paths` that name a function; `shapes` are what the user said of their arguments.

    Raises:
        DumpError: a script is not there.
        UsageError: there are shapes, and no function.
    """
    scripts = [path for path in paths if _is_script(path)]
    for script in scripts:
        if not os.path.isfile(file := script.rpartition(":")[0]):
            raise DumpError(f"{file}: no such file")
    if shapes is not None and not scripts:
        raise UsageError("--args are of a function: give SCRIPT.py:FUNCTION")
    return scripts


def _is_script(path: str) -> bool:
    file, colon, function = path.rpartition(":")
    return bool(colon) and file.endswith(".py") and function.isidentifier()


def lower(
    name: str,
    shapes: tuple[str, ...] | None,
    file: Path,
    platform: str = "cpu",
    devices: int = 1,
    python: str = "",
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Write a function as StableHLO.

    Args:
        name: `SCRIPT.py:FUNCTION`.
        shapes: of its arguments; None where the script says which they are.
        file: gets it, as bytecode.
        platform: that it is lowered for: `cpu`, `tpu` or `cuda`.
        devices: how many it sees, all of them on the CPU.
        python: path of the interpreter that runs the script, empty for this one.
        timeout: seconds.

    Raises:
        UsageError: it fails, there is no such function, or its arguments are not known.
        BackendUnavailable: there is no JAX.
    """
    script, _, function = name.rpartition(":")
    own = [(variable, value) for variable, value in os.environ.items() if variable.startswith("JAX_")]
    own += [("JAX_PLATFORMS", "cpu")]
    own += [("XLA_FLAGS", f"--xla_force_host_platform_device_count={devices}")]
    process = XlaProcess(ProcessKey("script", python, 1, timeout, tuple(own)))
    request = LowerRequest(script, function, shapes, platform, str(file))
    try:
        process.call("hlotool.backends.aot.script:lower", request, str)
    except BackendFailed as error:
        raise UsageError(f"{script}: {error.message}") from error
    finally:
        process.close()
