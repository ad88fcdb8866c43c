"""Programs as generated kernels: launches, resources, sources that can be read."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from hlotool.backends.cuda import toolchain
from hlotool.checks.inspect import kernels
from hlotool.checks.inspect.kernels import indented, kernels_of
from hlotool.checks.records import KernelsInfo
from hlotool.errors import BackendUnavailable
from hlotool.interface.report.console import html
from hlotool.interface.report.inspect import kernels_report
from hlotool.parser.reader import parse_module

SUM = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[300000] parameter(0)
  y = f32[300000] parameter(1)
  z = f32[] constant(0)
  m = f32[300000] multiply(x, y), metadata={op_name="jit(f)/mul" source_file="model.py" source_line=7}
  ROOT r = f32[] reduce(m, z), dimensions={0}, to_apply=add
}
"""
SORT = """HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[16] parameter(0)
  s = f32[16] sort(x), dimensions={0}, to_apply=less
  ROOT y = f32[16] negate(s)
}
"""
UPDATE = """HloModule m
ENTRY main {
  x = f32[1000] parameter(0)
  u = f32[10] parameter(1)
  i = s32[] parameter(2)
  ROOT y = f32[1000] dynamic-update-slice(x, u, i)
}
"""


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str = "", architecture: str = "") -> toolchain.Compiler:
        raise BackendUnavailable("backend cuda: no compiler here")

    monkeypatch.setattr(kernels, "find_compiler", missing)


def listed(text: str) -> KernelsInfo:
    return kernels_of(parse_module(text, "f.hlo"), "plain", "f.hlo", "sm_90")


def test_a_fused_sum_of_products_in_two_passes() -> None:
    found = listed(SUM)
    [launch] = found.launches
    assert launch.source.opcode == "fusion"
    assert launch.fused == ["multiply", "reduce"]
    first, second = found.kernels
    assert launch.kernels == [first.name, second.name]
    assert (first.schedule, second.schedule) == ("row reduction, first pass", "reduction, second pass")
    assert first.bytes_read == 2 * 4 * 300_000
    assert second.writes == ["f32[] %r"]
    assert second.bytes_written == 4
    assert first.blocks * 4 == first.bytes_written
    assert (found.fallbacks, found.error) == ([], None)


def test_sources_name_the_instructions() -> None:
    first = listed(SUM).kernels[0]
    assert re.search(r"^ +float v\d+ = \w+\(v\d+, v\d+\); +// %m\S* = multiply$", first.source, re.M)
    assert first.source.startswith(f"KERNEL({first.name},\n    const float* RESTRICT p0,\n")


def test_other_names_make_no_other_kernel() -> None:
    renamed = SUM.replace("m = f32[300000]", "product = f32[300000]").replace("reduce(m,", "reduce(product,")
    one, other = listed(SUM).kernels[0], listed(renamed).kernels[0]
    assert one.name == other.name
    assert "// %product" in other.source
    assert "// %product" not in one.source


def test_what_the_host_does() -> None:
    found = listed(SORT)
    [fallback] = found.fallbacks
    assert (fallback.source.instruction, fallback.computation, fallback.bytes) == ("s", "main", 128)
    assert [launch.source.instruction for launch in found.launches] == ["y"]


def test_an_update_writes_the_update() -> None:
    [kernel] = listed(UPDATE).kernels
    assert kernel.schedule == "update in place"
    assert (kernel.bytes_read, kernel.bytes_written) == (44, 40)


def test_large_products_are_a_librarys() -> None:
    dot = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for size, library in ((8, ""), (256, "cuBLAS")):
        shape = f"f32[{size},{size}]"
        text = f"x = {shape} parameter(0)\ny = {shape} parameter(1)\nROOT z = {shape} {dot}"
        [launch] = listed(f"HloModule m\nENTRY main {{\n{text}\n}}\n").launches
        assert launch.library == library
        assert launch.kernels


def test_without_a_compiler_there_is_a_note() -> None:
    found = listed(SUM)
    assert found.note == "not compiled: backend cuda: no compiler here"
    assert found.compiler == ""
    assert all(kernel.resources is None for kernel in found.kernels)


def test_in_a_notebook_names_in_sources_are_text() -> None:
    """Sources quote where operations come from, as programs name it."""
    named = SUM.replace("to_apply=add", 'to_apply=add, metadata={op_name="<script>1</script>"}')
    shown = html(kernels_report(listed(named)), 120)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "KERNEL(" in shown


def test_what_is_no_program_is_one_error() -> None:
    found = listed(SORT.replace("f32[16] negate", "f32[17] negate"))
    assert found.error is not None
    assert found.error.kind == "VerificationError"


def test_resources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if toolchain.find_nvcc() is None:
        pytest.skip("there is no nvcc")
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "find_compiler", partial(toolchain.find_compiler, "nvcc"))
    found = listed(SUM)
    assert found.compiler.startswith("nvcc ")
    assert found.note == ""
    for kernel in found.kernels:
        assert kernel.resources is not None
        assert kernel.resources.registers > 0
        assert kernel.resources.spill_stores == 0


def test_indentation() -> None:
    statement = "x([](int t) { return t; });  /* %x = add */  /* %y = reshape */"
    source = f"KERNEL(k, int a, int b) {{\nfor (;;) {{\n{statement}\n}}\n}}\n"
    assert indented(source) == (
        "KERNEL(k,\n"
        "    int a,\n"
        "    int b) {\n"
        "  for (;;) {\n"
        f"{'    x([](int t) { return t; });':<56}  // %x = add, %y = reshape\n"
        "  }\n"
        "}\n"
    )
