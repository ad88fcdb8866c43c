"""Costs by hand, and as XLA itself counts them on the whole corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.xla import JAXLIB, XlaError, oracle

from hlotool.checks.inspect.costs import Cost, CostAnalysis
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

ROOT = Path(__file__).resolve().parents[2]

ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""
MIXED = """both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  e = f32[] exponential(b)
  ROOT s = f32[] add(a, e)
}
"""


def cost(body: str, before: str = "") -> Cost:
    return total(parse_module(f"HloModule m\n{before}ENTRY main {{\n{body}\n}}\n"))


def total(module: Module) -> Cost:
    return CostAnalysis().of_computation(module.entry)


CASES: dict[str, tuple[str, str, Cost]] = {
    "elementwise": ("x = f32[4,8] parameter(0)\nROOT y = f32[4,8] negate(x)", "", Cost(32, 0, 256)),
    "transcendental": ("x = f32[4,8] parameter(0)\nROOT y = f32[4,8] tanh(x)", "", Cost(0, 32, 256)),
    "integers count": ("x = s8[4] parameter(0)\nROOT y = s8[4] add(x, x)", "", Cost(4, 0, 12)),
    "packed": ("x = s4[7]{0:E(4)} parameter(0)\nROOT y = s4[7]{0:E(4)} negate(x)", "", Cost(7, 0, 8)),
    # Whole tiles, of the physical order of dimensions: as jaxlib 0.12 counts them.
    "tiles": (
        "x = f32[2,3,5]{0,2,1:T(8,128)} parameter(0)\nROOT y = f32[2,3,5]{0,2,1:T(8,128)} negate(x)",
        "",
        Cost(30, 0, 24576),
    ),
    "packed tiles": (
        "x = s4[3,5]{1,0:T(8,128)E(4)} parameter(0)\nROOT y = s4[3,5]{1,0:T(8,128)E(4)} negate(x)",
        "",
        Cost(15, 0, 1024),
    ),
    "tiles of more dimensions": (
        "x = f32[]{:T(128)} parameter(0)\nROOT y = f32[]{:T(128)} negate(x)", "", Cost(1, 0, 1024)
    ),
    "free": ("x = f32[4,8] parameter(0)\nROOT y = f32[8,4] bitcast(x)", "", Cost()),
    "transposed": (
        "x = f32[4,8] parameter(0)\nROOT y = f32[8,4] transpose(x), dimensions={1,0}", "", Cost(0, 0, 256)
    ),
    "transposed in name": (
        "x = f32[4,8]{1,0} parameter(0)\nROOT y = f32[8,4]{0,1} transpose(x), dimensions={1,0}", "", Cost()
    ),
    "tuple": ("x = f32[4] parameter(0)\nROOT y = (f32[4], f32[4]) tuple(x, x)", "", Cost(0, 0, 16)),
    "slice": ("x = f32[100] parameter(0)\nROOT y = f32[10] slice(x), slice={[0:10]}", "", Cost(0, 0, 80)),
    "update in place": (
        "x = f32[100] parameter(0)\nu = f32[10] parameter(1)\ni = s32[] parameter(2)\n"
        "ROOT y = f32[100] dynamic-update-slice(x, u, i)",
        "",
        Cost(0, 0, 84),
    ),
    "reduce": (
        "x = f32[4,8] parameter(0)\nz = f32[] constant(0)\n"
        "ROOT y = f32[4] reduce(x, z), dimensions={1}, to_apply=both",
        MIXED,
        Cost(28, 28, 128 + 4 + 16),
    ),
    "nothing to reduce": (
        "x = f32[0,3] parameter(0)\nz = f32[] constant(0)\n"
        "ROOT y = f32[3] reduce(x, z), dimensions={0}, to_apply=add",
        ADD,
        Cost(0, 0, 16),
    ),
    "dot": (
        "x = f32[2,3] parameter(0)\ny = f32[3,5] parameter(1)\n"
        "ROOT z = f32[2,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "",
        Cost(60, 0, 24 + 60 + 40),
    ),
    "convolution with padding": (
        "x = f32[1,4,1] parameter(0)\nk = f32[3,1,2] parameter(1)\n"
        "ROOT z = f32[1,4,2] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
        "",
        Cost(2 * 2 * 10, 0, 16 + 24 + 32),
    ),
    "scan": (
        "x = f32[6] parameter(0)\ni = f32[] parameter(1)\n"
        "ROOT y = (f32[6], f32[]) scan(x, i), dimensions={0}, num_carries=1, to_apply=step",
        ADD.replace("add {", "step {").replace("ROOT s", "s").replace(
            "}", "  ROOT t = (f32[], f32[]) tuple(s, s)\n}"
        ),
        Cost(6, 0, 24 + 4 + 28),
    ),
    "nobody knows": (
        'x = f32[4] parameter(0)\nROOT y = f32[4] custom-call(x), custom_call_target="f"', "", Cost(unknown=1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str) -> None:
    body, before, expected = CASES[name]
    assert cost(body, before) == expected


FUSED = """fused {
  p = f32[100] parameter(0)
  q = f32[10] parameter(1)
  s = f32[10] slice(p), slice={[0:10]}
  c = f32[2] constant({1, 2})
  m = f32[10] multiply(s, q)
  n = f32[10] sine(m)
  ROOT t = (f32[10], f32[10]) tuple(m, n)
}
"""


def test_a_fusion_reads_and_writes_what_passes_its_border() -> None:
    fusion = (
        "x = f32[100] parameter(0)\ny = f32[10] parameter(1)\n"
        "ROOT z = (f32[10], f32[10]) fusion(x, y), kind=kLoop, calls=fused"
    )
    # Ten elements of p, all of q, the constant, two results.
    assert cost(fusion, FUSED) == Cost(10, 10, 40 + 40 + 8 + 80)


LOOP = """body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] multiply(x, x)
  ROOT t = (s32[], f32[8]) tuple(j, y)
}
condition {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
"""
ENTERED = """zero = s32[] constant(0)
x = f32[8] parameter(0)
t = (s32[], f32[8]) tuple(zero, x)
ROOT w = (s32[], f32[8]) while(t), condition=condition, body=body"""


def test_loops_count_once_or_as_often_as_told() -> None:
    module = parse_module(f"HloModule m\n{LOOP}ENTRY main {{\n{ENTERED}\n}}\n")
    [loop] = [i for i in module.instructions() if i.opcode == "while"]
    once, five = CostAnalysis(), CostAnalysis(lambda loop: 5)
    assert once.of_instruction(loop).flops == 8 + 1 + 1
    assert five.of_instruction(loop) == once.of_instruction(loop).times(5)


def test_a_conditional_is_its_most_expensive_branch() -> None:
    cheap = "cheap {\n  v = f32[4] parameter(0)\n  ROOT r = f32[4] copy(v)\n}\n"
    dear = "dear {\n  v = f32[4] parameter(0)\n  ROOT r = f32[4] sine(v)\n}\n"
    body = (
        "i = s32[] parameter(0)\nx = f32[4] parameter(1)\n"
        "ROOT y = f32[4] conditional(i, x, x), branch_computations={cheap, dear}"
    )
    assert cost(body, cheap + dear) == Cost(0, 4, 32)


#: XLA multiplies the cost of a step by the size of what is carried; empty reductions get negative flops.
ON_PURPOSE = {"scan.reverse.hlo", "scan.running_sum.hlo", "reduce.empty.hlo"}
#: Before, XLA counted no tiles.
TILES = {"syntax.layouts.hlo"} if JAXLIB < (0, 12, 0) else set()
FOLDERS = ("modules", "jax", "tf", "miscompiles")


@pytest.fixture
def pointers_of_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pointers of as many bytes as XLA's analysis of costs has."""
    monkeypatch.setattr("hlotool.facts.buffers.POINTER", 4 if JAXLIB >= (0, 12, 0) else 8)


@pytest.mark.xla
@pytest.mark.usefixtures("pointers_of_xla")
@pytest.mark.parametrize("folder", FOLDERS)
def test_costs_are_those_of_xla(folder: str) -> None:
    checked = 0
    for path in sorted((ROOT / "corpus" / folder).rglob("*")):
        is_stage = path.name.endswith("_optimizations.txt") or path.suffix == ".hlo"
        if is_stage and path.name not in ON_PURPOSE | TILES:
            checked += _agrees(path)
    assert checked >= 3


@pytest.mark.xla
@pytest.mark.usefixtures("pointers_of_xla")
def test_costs_of_programs_for_gpus_are_those_of_xla(shared: Path) -> None:
    """Fusions of all kinds, nested ones too."""
    files = sorted((shared / "hlo" / "xla").rglob("*.hlo"))
    assert sum(_agrees(path) for path in files if path.stat().st_size < 100_000) >= 20


def _agrees(path: Path) -> int:
    text = path.read_text(errors="replace", encoding="utf-8")
    try:
        module = parse_module(text, str(path))
        expected = oracle().costs(text)
    except (HlotoolError, XlaError):
        return 0
    found = total(module)
    # Of a custom call XLA counts -1.
    counted = {
        "flops": found.flops - found.unknown,
        "transcendentals": found.transcendentals,
        "bytes accessed": found.bytes_accessed - found.unknown,
    }
    for name, value in counted.items():
        # XLA sums in f32.
        assert value == pytest.approx(expected.get(name, 0.0), rel=1e-4), f"{path}: {name}"
    return 1


@pytest.mark.xla
def test_where_xla_counts_something_else() -> None:
    """The exceptions are still ones."""
    for name in ON_PURPOSE:
        text = (ROOT / "corpus" / "modules" / name).read_text(encoding="utf-8")
        assert total(parse_module(text)).flops != oracle().costs(text)["flops"]
