"""Our passes as a backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlotool.backends.base import DumpingBackend
from hlotool.backends.registry import get_backend
from hlotool.blame.bisection.compiler import passes_that_changed
from hlotool.errors import UsageError
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump

TEXT = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  a = f32[2] negate(x)
  b = f32[2] negate(x)
  n = f32[2] negate(a)
  ROOT s = f32[2] add(n, b)
}"""


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ("opt:passes=simplify+cse+dce", ["simplify", "cse"]),
        ("opt:passes=simplify+cse,disable=simplify", ["cse"]),
        ("opt:passes=cse,disable=cse", []),
    ],
)
def test_passes_run_and_are_shown(tmp_path: Path, spec: str, changed: list[str]) -> None:
    backend = get_backend(spec)
    assert isinstance(backend, DumpingBackend)
    module = parse_module(TEXT)
    x = np.array([1, -3], np.float32)
    # -(-x) - x
    np.testing.assert_array_equal(backend.dumping(tmp_path).compile(module).run([x]), [0, 0])
    assert module.to_text() == parse_module(TEXT).to_text()
    [dumped] = open_dump(tmp_path).modules
    assert set(passes_that_changed(dumped)) <= set(changed)
    assert bool(passes_that_changed(dumped)) == bool(changed)


def test_without_passes_it_is_there_and_compiles_nothing() -> None:
    backend = get_backend("opt")
    assert backend.version.startswith("hlotool ")
    with pytest.raises(UsageError, match="say which passes"):
        backend.compile(parse_module(TEXT))
    with pytest.raises(UsageError, match="no pass 'simplfy'"):
        get_backend("opt:passes=simplfy")
