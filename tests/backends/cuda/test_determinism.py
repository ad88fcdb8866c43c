"""Results of kernels repeat to the bit: in other processes, with other threads, over other memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.kernel_fuzz import KINDS
from support.kernels import needs_compiler
from support.sanitized import TESTS

pytestmark = needs_compiler

#: Every block of memory comes from the heap, filled with a byte that depends on the number.
_ON_THE_HEAP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 26)}

_ENVIRONMENTS = (
    {"HLOTOOL_THREADS": "1"},
    {"HLOTOOL_THREADS": "3"},
    {**_ON_THE_HEAP, "MALLOC_PERTURB_": "1"},
    {**_ON_THE_HEAP, "MALLOC_PERTURB_": "165"},
)


def _digests(kind: str, first: int, count: int, environment: dict[str, str]) -> list[str]:
    command = [sys.executable, "-m", "support.result_bits", kind, str(first), str(count)]
    path = os.pathsep.join(map(str, (TESTS.parent, TESTS)))
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "count"), [(0, 12), pytest.param(12, 240, marks=pytest.mark.slow)])
def test_results_repeat(first: int, count: int, kind: str) -> None:
    expected, *others = (_digests(kind, first, count, environment) for environment in _ENVIRONMENTS)
    assert len(expected) >= count
    assert all(digests == expected for digests in others)
