"""What XLA:GPU launches for a program: its own listing, `thunk_sequence.txt` of a dump.

A launch is what is queued on the stream: a kernel, a call of a library (cuBLAS, cuDNN, cuFFT, cuSOLVER), a
copy or a memset. Loops, branches and sequences only hold others; what they hold counts once. XLA:
thunk.cc, ThunkSequence::ToString.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

#: A line, or the start of a sequence behind its thunk: number, kind, neighbours.
_THUNK = re.compile(r"\b\d{3,}: k(\w+) +\[")

#: What runs other thunks, or waits for them.
_CONTAINERS = frozenset(
    {
        "AsyncDone", "AsyncStart", "CommandBuffer", "Conditional", "CopyDone", "DynamicSlice",
        "DynamicSliceFusion", "Sequential", "WaitForStreams", "While",
    }
)  # fmt: skip
_COPIES = ("Copy", "Memset", "Memzero")


@dataclass(frozen=True, slots=True)
class Launches:
    """By kind.

    Attributes:
        kernels: that XLA has written.
        calls: of libraries.
        copies: copies and memsets.
    """

    kernels: int
    calls: int
    copies: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.kernels + self.calls + self.copies


def read_thunks(text: str) -> Launches:
    """The launches of a `thunk_sequence.txt`."""
    kinds = Counter(_THUNK.findall(text))
    kernels = kinds["CustomKernel"] + kinds["Kernel"]
    copies = sum(
        count for kind, count in kinds.items() if kind.startswith(_COPIES) and kind not in _CONTAINERS
    )
    rest = sum(count for kind, count in kinds.items() if kind not in _CONTAINERS)
    return Launches(kernels, rest - kernels - copies, copies)
