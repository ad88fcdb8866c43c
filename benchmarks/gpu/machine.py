"""What a run was made on and with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from benchmarks.gpu.cases import ROOT
from hlotool import __version__

_PACKAGES = ("numpy", "jaxlib", "pycuda", "nvidia-cuda-nvrtc")


def describe() -> dict[str, str]:
    """By name; what cannot be found out is left out."""
    query = "--query-gpu=name,memory.total,driver_version"
    nvcc = re.search(r"release ([\d.]+)", _said(["nvcc", "--version"]))
    found = {
        "GPU": _said(["nvidia-smi", query, "--format=csv,noheader"]),
        "nvcc": nvcc[1] if nvcc else "",
        "Python": platform.python_version(),
        **{package: _version(package) for package in _PACKAGES},
        "kernel": platform.release(),
        "cores": str(os.cpu_count()),
        "hlotool": _said(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]) or __version__,
    }
    return {name: value for name, value in found.items() if value}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _said(command: Sequence[str]) -> str:
    """The output of a command, in one line; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else " ".join(done.stdout.split())
