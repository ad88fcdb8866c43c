"""Digests of what random fusions give: `python -m support.result_bits FIRST COUNT`."""

from __future__ import annotations

import hashlib
import sys

import numpy as np

from hlotool.parse.reader import parse_module
from support.kernels import on_kernels
from support.random_fusions import arguments_of, module_of, random_fusion


def main(first: int, count: int) -> None:
    """The digests, one a line."""
    fusions = [random_fusion(seed) for seed in range(first, first + count)]
    results = on_kernels(parse_module(module_of(fusions)), arguments_of(fusions, first))
    for result in results:
        print(hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
