"""Rules about layouts, which count from layout assignment on."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.ir.verifier import VerifyOptions, verify
from hlotool.parser.reader import parse_module

STRICT = VerifyOptions(layout_sensitive=True)


def findings(body: str, callees: str = "", header: str = "") -> list[str]:
    """Rules that only a judge of layouts finds broken."""
    module = parse_module(f"HloModule m{header}\n{callees}\nENTRY e {{\n{body}\n}}\n")
    assert verify(module) == []
    return [finding.rule for finding in verify(module, STRICT)]


A, B = "a = f32[2,3]{1,0} parameter(0)", "b = f32[2,3]{0,1} parameter(1)"


@pytest.mark.parametrize(
    "line",
    [
        "r = f32[2,3]{1,0} add(a, b)",
        "r = f32[2,3]{0,1} negate(a)",
        "r = f32[2,6]{1,0} concatenate(a, b), dimensions={1}",
        "r = f32[2,2]{0,1} slice(a), slice={[0:2],[0:2]}",
        "r = f32[2,3]{0,1} reverse(a), dimensions={0}",
        "r = pred[2,3]{0,1} compare(a, a), direction=LT",
        "r = f32[2,3]{1,0:E(16)} negate(a)",
        'r = f32[2,3]{0,1} custom-call(a), custom_call_target="LayoutConstraint"',
    ],
)
def test_most_operations_keep_the_layout(line: str) -> None:
    assert findings(f"{A}\n{B}\nROOT {line}") == ["layout-changed"]


@pytest.mark.parametrize(
    "line",
    [
        "r = f32[2,3]{0,1} copy(a)",
        "r = f32[3,2]{1,0} transpose(a), dimensions={1,0}",
        "r = f32[3,2]{0,1} reshape(a)",
        "r = f32[2,3]{1,0:T(8,128)S(1)} negate(a)",
        "r = s4[2,3]{1,0:E(4)} convert(a)",
        "r = f32[2,2]{0,1} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        'r = f32[2,3]{0,1} custom-call(a), custom_call_target="f"',
    ],
)
def test_others_may_change_it(line: str) -> None:
    assert findings(f"{A}\n{B}\nROOT {line}") == []


def test_an_array_without_layout_is_row_major() -> None:
    assert findings("a = f32[2,3] parameter(0)\nROOT r = f32[2,3]{1,0} negate(a)") == []
    assert findings("a = f32[2,3] parameter(0)\nROOT r = f32[2,3]{0,1} negate(a)") == ["layout-changed"]


def test_a_bitcast_keeps_all_bytes() -> None:
    assert findings(f"{A}\nROOT r = f32[3,2]{{0,1}} bitcast(a)") == []
    assert findings(f"{A}\nROOT r = f32[3]{{0}} bitcast(a)") == ["bitcast-size"]


MINUS = "f { p = f32[2,3]{0,1} parameter(0) ROOT n = f32[2,3]{0,1} negate(p) }"
TEST = "c { p = f32[2,3]{0,1} parameter(0) ROOT t = pred[] constant(true) }"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("ROOT r = f32[2,3]{1,0} call(a), to_apply=f", 2),
        ("ROOT r = f32[2,3]{0,1} call(b), to_apply=f", 0),
        ("ROOT r = f32[2,3]{1,0} fusion(b), kind=kLoop, calls=f", 1),
        ("ROOT r = f32[2,3]{0,1} while(b), condition=c, body=f", 0),
        ("ROOT r = f32[2,3]{1,0} while(a), condition=c, body=f", 3),
        ("ROOT r = (f32[2,3]{0,1}) tuple(a)", 1),
        ("t = (f32[2,3]{1,0}) tuple(a)\nROOT r = f32[2,3]{0,1} get-tuple-element(t), index=0", 1),
        ("p = pred[] constant(true)\nROOT r = f32[2,3]{0,1} conditional(p, a, b), "
         "true_computation=f, false_computation=f", 1),
        ("s = (f32[2,3]{1,0:S(1)}, f32[2,3]{1,0}, u32[]) copy-start(a)\n"
         "ROOT r = f32[2,3]{1,0:S(1)} copy-done(s)", 0),
        ("s = (f32[2,3]{0,1}, f32[2,3]{1,0}, u32[]) copy-start(a)\n"
         "ROOT r = f32[2,3]{1,0} copy-done(s)", 2),
        ("s = ((f32[2,3]{0,1}), f32[2,3]{0,1}, u32[]) async-start(a), calls=f\n"
         "ROOT r = f32[2,3]{1,0} async-done(s)", 2),
        ('ROOT r = f32[2,3]{0,1} custom-call(a), custom_call_target="f", '
         "output_to_operand_aliasing={{}: (0, {})}", 1),
    ],
)  # fmt: skip
def test_what_is_handed_on_stays_as_it_is(line: str, count: int) -> None:
    assert findings(f"{A}\n{B}\n{line}", f"{MINUS}\n{TEST}") == ["layout-mismatch"] * count


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("r = f32[2,3]{1,0} copy(h)", []),
        ("r = f32[2,3]{0,1} copy(h)", ["layout-mismatch"]),
        ("r = bf16[2,3]{1,0} copy(h)", ["layout-mismatch"]),
        ("r = f32[2,3]{0,1:S(5)} copy(d)", []),
        ("r = f32[1,3]{1,0} dynamic-slice(h, i, i), dynamic_slice_sizes={1,3}", []),
        ("r = f32[1,3]{1,0:S(5)} dynamic-slice(d, i, i), dynamic_slice_sizes={1,3}", ["memory-space"]),
        ("r = f32[2,3]{1,0} dynamic-update-slice(h, d, i, i)", ["memory-space"]),
        ("r = f32[2,3]{1,0} dynamic-update-slice(q, d, i, i)", ["memory-space"]),
        ("r = f32[2,3]{1,0:S(5)} dynamic-update-slice(d, d, i, i)", []),
    ],
)
def test_what_moves_between_host_and_device(line: str, rules: list[str]) -> None:
    body = """d = f32[2,3]{1,0} parameter(0)
    h = f32[2,3]{1,0:S(5)} parameter(1)
    q = f32[2,3]{1,0:S(1)} parameter(2)
    i = s32[] parameter(3)"""
    assert findings(f"{body}\nROOT {line}") == rules


@pytest.mark.parametrize(
    ("header", "rules"),
    [
        ("entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}", []),
        ("entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}", ["entry-layout"] * 2),
        ("entry_computation_layout={(f32[2,3]{1,0:S(1)})->f32[2,3]{1,0:T(8,128)}}", []),
        ("input_output_alias={{}: (0, {}, must-alias)}, "
         "entry_computation_layout={(f32[2,3]{1,0:S(1)})->f32[2,3]{1,0}}", ["entry-layout"]),
        ("input_output_alias={{}: (0, {}, may-alias)}, "
         "entry_computation_layout={(f32[2,3]{1,0:S(1)})->f32[2,3]{1,0}}", []),
    ],
)  # fmt: skip
def test_the_header(header: str, rules: list[str]) -> None:
    assert findings(f"{A}\nROOT r = f32[2,3]{{1,0}} negate(a)", header=f", {header}") == rules


PROGRAMS = ["collatz", "train_mnist_cnn", "cholesky_solve", "sharded_mlp", "int4", "donated_update"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_optimised_programs_break_none(corpus: Path, name: str) -> None:
    paths = list((corpus / "jax" / name).glob("*_after_optimizations.txt"))
    assert paths
    for path in paths:
        assert verify(parse_module(path.read_text(encoding="utf-8"), str(path)), STRICT) == []


@pytest.mark.slow
def test_no_optimised_program_breaks_any(corpus: Path) -> None:
    for path in corpus.rglob("*_after_optimizations.txt"):
        assert verify(parse_module(path.read_text(encoding="utf-8"), str(path)), STRICT) == []


@pytest.mark.parametrize("layout", ["{1,3}", "{1,1}"])
def test_a_transpose_of_what_has_no_valid_layout(layout: str) -> None:
    """Its shape follows from the layout; the fault is the operand's."""
    text = (
        f"HloModule m\n\nENTRY e {{\n  a = f32[2,3]{layout} parameter(0)\n"
        "  ROOT t = f32[3,2]{0,1} transpose(a), dimensions={1,0}\n}\n"
    )
    assert [finding.rule for finding in verify(parse_module(text))] == ["layout"]
