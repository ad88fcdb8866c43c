"""Random fusions under the sanitizers: nothing is read or written out of place, nothing is undefined."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kernel_fuzz import KINDS
from support.kernels import needs_compiler
from support.sanitized import MARK, PLANTED, TESTS, is_installed, sanitized

pytestmark = needs_compiler

#: Fusions of one process.
_COUNT = 120


@pytest.fixture(autouse=True)
def _needs_sanitizers() -> None:
    if not is_installed():
        pytest.skip("g++ has no sanitizers here")


def test_planted_faults_are_noticed() -> None:
    _, *parts = sanitized("planted").stderr.split(MARK)
    assert len(parts) == len(PLANTED)
    for fault, said in zip(PLANTED, parts):
        assert fault.strip() in said
        assert "status 0\n" not in said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 6), *(pytest.param(n, _COUNT, marks=pytest.mark.slow) for n in range(6, 1400, _COUNT))],
)
def test_random_fusions(first: int, count: int, kind: str) -> None:
    done = sanitized("fuzz", kind, first, count)
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "count"), [(0, 6), *(pytest.param(n, _COUNT, marks=pytest.mark.slow) for n in (6, 126))]
)
def test_random_fusions_as_cuda_runs_them(first: int, count: int, kind: str) -> None:
    """Vectors that are read and written as one have to be aligned."""
    done = sanitized("fibers", kind, first, count)
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.mark.parametrize("selection", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_every_operation_at_corner_values(selection: str) -> None:
    path = TESTS / "backends" / "cuda" / "test_elementwise.py"
    done = sanitized("tests", path, "-m", selection, timeout=1200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["modules", "jax", "tf"])
def test_the_corpus(part: str, corpus: Path) -> None:
    done = sanitized("programs", corpus / part, timeout=1800)
    assert done.returncode == 0, done.stderr[-6000:]
