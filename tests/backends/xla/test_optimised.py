"""Programs of every stage of a compilation: as they are after the scheduler, or as StableHLO again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.base import notes_of
from hlotool.backends.registry import get_backend
from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.programs import unknown_field, without_field
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.xla

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

#: A loop, a fusion, a transposed product: something for every pass.
PROGRAM = """HloModule program
below {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT t = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4,6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[4,6] tanh(v)
  u = f32[4,6] add(v, w)
  ROOT t = (s32[], f32[4,6]) tuple(j, u)
}
ENTRY e {
  x = f32[4,6] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[4,6]) tuple(z, x)
  r = (s32[], f32[4,6]) while(s), condition=below, body=step
  y = f32[4,6] get-tuple-element(r), index=1
  c = f32[20] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20})
  d = f32[5,4] reshape(c)
  e = f32[5,6] dot(d, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[6,5] transpose(e), dimensions={1,0}
  g = f32[6,5] exponential(f)
  h = f32[6,5] add(g, g)
  ROOT o = (f32[6,5], f32[4,6]) tuple(h, y)
}
"""


def xla(options: str = "") -> XlaBackend:
    backend = get_backend(f"xla:opt=0{options}")
    assert isinstance(backend, XlaBackend)
    if backend.version_number < (0, 10, 2):
        pytest.skip("this jaxlib takes no optimised programs")
    return backend


def stages(folder: Path) -> list[Path]:
    """The texts of a dump in order."""
    found = folder.glob("*.txt")
    return sorted(f for f in found if re.search(r"\.\d{4}\.|\.(before|cpu_after)_optimizations\.txt", f.name))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """A dump of all passes, the argument and the result."""
    folder = tmp_path_factory.mktemp("dump")
    executable = xla().dumping(folder).compile(parse_module(PROGRAM))
    argument = np.linspace(-0.1, 0.1, 24, dtype=np.float32).reshape(4, 6)
    return folder, argument, executable.run([argument])


def test_a_dump_holds_every_pass_and_every_constant(dump: tuple[Path, Any, Any]) -> None:
    names = [path.name for path in stages(dump[0])]
    assert len(names) > 20
    assert any("layout-assignment" in name for name in names)
    assert names[-1].endswith("cpu_after_optimizations.txt")
    assert not any("constant({...})" in path.read_text(encoding="utf-8") for path in stages(dump[0]))


def test_only_some_passes(tmp_path: Path) -> None:
    xla().dumping(tmp_path, "cse").compile(parse_module(PROGRAM))
    passes = [p.name for p in stages(tmp_path) if re.search(r"\.\d{4}\.", p.name)]
    assert passes
    assert all("cse" in name for name in passes)


def test_every_stage_gives_the_same_bits(dump: tuple[Path, Any, Any]) -> None:
    folder, argument, (expected, loop) = dump
    texts = {path.read_text(encoding="utf-8"): path for path in stages(folder)}
    for text, path in texts.items():
        result, carried = xla().compile(parse_module(text, str(path))).run([argument])
        assert result.tobytes() == expected.tobytes(), path.name
        assert carried.tobytes() == loop.tobytes(), path.name


def test_the_last_stage_runs_as_it_is(dump: tuple[Path, Any, Any]) -> None:
    folder, argument, (expected, _) = dump
    final = parse_module(stages(folder)[-1].read_text(encoding="utf-8"))
    assert final.is_scheduled
    for options in ("", ",route=pre", ",route=post", ",route=mlir"):
        executable = xla(options).compile(final)
        assert executable.run([argument])[0].tobytes() == expected.tobytes()
        notes = notes_of(executable)
        assert any("written as StableHLO" in note for note in notes) == (options == ",route=mlir")


def wrong_exponential(module: Module) -> Module:
    """The program with another function in its place."""
    for instruction in module.instructions():
        if instruction.opcode == "exponential":
            instruction.opcode = "cosine"
    return module


def test_it_is_this_program_that_runs(dump: tuple[Path, Any, Any]) -> None:
    """Not the trivial one whose place it takes, nor the one it was dumped from."""
    folder, argument, (expected, _) = dump
    changed = wrong_exponential(parse_module(stages(folder)[-1].read_text(encoding="utf-8")))
    result, _ = xla().compile(changed).run([argument])
    np.testing.assert_allclose(result, 2 * np.cos(np.log(expected / 2)), rtol=1e-5)


def test_results_that_jaxlib_does_not_know_as_such() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  x = f8e8m0fnu[4]{0} parameter(0)
  a = f8e8m0fnu[4]{0} copy(x)
  b = f8e8m0fnu[4]{0} copy(x)
  y = (f8e8m0fnu[4]{0}) tuple(a)
  ROOT z = ((f8e8m0fnu[4]{0}), f8e8m0fnu[4]{0}) tuple(y, b)
}"""
    import ml_dtypes

    value = np.array([1, 2, 4, 8]).astype(ml_dtypes.float8_e8m0fnu)
    [[one], two] = xla().compile(parse_module(text)).run([value])
    assert one.tobytes() == two.tobytes() == value.tobytes()


def test_layouts_of_an_optimised_entry() -> None:
    text = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{0,1})->f32[6]{0}}
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  ROOT y = f32[6]{0} bitcast(x)
}"""
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    for options in ("", ",route=mlir"):
        result = xla(options).compile(parse_module(text)).run([value])
        np.testing.assert_array_equal(result, value.T.ravel())


def test_a_config_of_another_version_is_taken_without_its_unknown_field() -> None:
    paths = CORPUS.glob("tf/dynamic_rnn/*gradient*cpu_after_optimizations.txt")
    module = parse_module(next(paths).read_text())
    notes = notes_of(xla().compile(module))
    assert notes == (
        "without the field dynamic_variable_tuple_indices of backend configs, which this XLA does not know",
    )


def test_a_field_is_dropped_wherever_it_is() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[] parameter(0)
  ROOT y = f32[] negate(x), backend_config={"a":{"b":1,"c":[{"b":2,"d":"3"}]},"e":4}
}"""
    module = parse_module(text)
    assert 'backend_config={"a": {"c": [{"d": "3"}]}, "e": 4}' in without_field(module, "b").to_text()
    assert '"b":1' in module.to_text()
    assert unknown_field("invalid JSON in xla.Config, near 1:2: no such field: 'b'") == "b"
    assert unknown_field("something else") is None


def test_an_older_jaxlib_gets_it_as_stablehlo(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = xla()
    monkeypatch.setattr(XlaBackend, "version_number", (0, 9, 2))
    text = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[2]{0} parameter(0)
  ROOT y = f32[2]{0} negate(x)
}"""
    executable = backend.compile(parse_module(text))
    assert "written as StableHLO" in notes_of(executable)[0]
    np.testing.assert_array_equal(executable.run([np.float32([1, 2])]), np.float32([-1, -2]))
