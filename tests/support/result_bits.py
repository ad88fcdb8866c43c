"""Digests of what random fusions give: `python -m support.result_bits KIND FIRST COUNT`."""

from __future__ import annotations

import hashlib
import sys

import numpy as np

from support.kernel_fuzz import fuzz_program
from support.kernels import on_kernels


def main(kind: str, first: int, count: int) -> None:
    """The digests, one a line."""
    for result in on_kernels(*fuzz_program(kind, first, count)):
        print(hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
