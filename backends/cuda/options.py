"""What all compilers of kernels for a GPU are told, and what is said when they refuse one."""

from __future__ import annotations

from typing import Final

from hlotool.errors import BackendCrashed

#: No contraction of a * b + c, denormals kept, division and roots rounded: as HLO says, and as on the CPU.
OPTIONS: Final = ("-std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")

#: Of the compiler's messages, how many characters an error keeps.
_KEPT = 4000


def refusal(version: str, log: str) -> BackendCrashed:
    """The error for a source that a compiler does not take, with the first reason of its log."""
    said = next((line for line in log.splitlines() if "error" in line), "no reason given")
    return BackendCrashed("cuda", f"{version} refused a generated kernel: {said}", log[:_KEPT])
