"""Each lint on a program that has what it looks for, and on one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.checks.catalogue import all_rules
from hlotool.checks.programs import findings_of
from hlotool.checks.records import Finding, Severity
from hlotool.checks.rules import RULES
from hlotool.parser.reader import parse_module

all_rules()


def lint(text: str, rule: str) -> list[Finding]:
    return list(findings_of(parse_module(text), [RULES[rule]]))


def entry(body: str, header: str = "") -> str:
    return f"HloModule m{header}\n{ADD}\nENTRY e {{\n{body}\n}}\n"


ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
"""

BIG = "f32[300000]"

FOUND = {
    "clamped-index": """x = f32[4] parameter(0)
  i = s32[] constant(3)
  ROOT y = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}""",
    "elided-constant": "ROOT c = f32[20] constant({...})",
    "dynamic-shape": """x = f32[4] parameter(0)
  n = s32[] parameter(1)
  ROOT y = f32[<=4] set-dimension-size(x, n), dimensions={0}""",
    "unbounded-shape": "ROOT x = f32[?,4] parameter(0)",
    "host-callback": """x = f32[4] parameter(0)
  ROOT y = f32[4] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback" """,
    "stateful-rng": """z = f32[] constant(0)
  o = f32[] constant(1)
  ROOT r = f32[4] rng(z, o), distribution=rng_uniform""",
    "nondeterministic-scatter": """x = f32[4] parameter(0)
  i = s32[2,1] parameter(1)
  u = f32[2] parameter(2)
  ROOT s = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
    "unused-parameter": """x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT r = f32[4] negate(x)""",
    "passed-through": f"""x = {BIG} parameter(0)
  y = {BIG} negate(x)
  ROOT r = ({BIG}, {BIG}) tuple(x, y)""",
    "donation-not-used": f"x = {BIG} parameter(0)\n  ROOT y = {BIG} negate(x)",
    "nan-source": "x = f32[4] parameter(0)\n  a = f32[4] abs(x)\n  ROOT y = f32[4] log(a)",
    "accidental-f64": """x = f32[4] parameter(0)
  w = f64[4] convert(x)
  y = f64[4] negate(w)
  ROOT r = f32[4] convert(y)""",
    "truncated-tensor-array": """x = f32[] parameter(0)
  ROOT w = f32[1] reshape(x), metadata={op_type="TensorListSetItem" op_name="Write_1/TensorListSetItem"}""",
}

CLEAN = {
    "clamped-index": """x = f32[4] parameter(0)
  i = s32[] constant(2)
  j = s32[] parameter(1)
  y = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}
  ROOT z = f32[1] dynamic-slice(y, j), dynamic_slice_sizes={1}""",
    "elided-constant": "ROOT c = f32[2] constant({1, 2})",
    "large-constant": "ROOT c = f32[2] constant({1, 2})",
    "dynamic-shape": "ROOT x = f32[4] parameter(0)",
    "unbounded-shape": "ROOT x = f32[4] parameter(0)",
    "host-callback": """x = f32[4] parameter(0)
  ROOT y = f32[4] custom-call(x), custom_call_target="lapack_sgetrf_ffi" """,
    "stateful-rng": """s = u64[2] parameter(0)
  ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry""",
    "nondeterministic-scatter": FOUND["nondeterministic-scatter"] + ", unique_indices=true",
    "unused-parameter": "x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)",
    "passed-through": f"x = {BIG} parameter(0)\n  ROOT y = {BIG} negate(x)",
    "donation-not-used": "x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)",
    "nan-source": """x = f32[4] parameter(0)
  a = f32[4] abs(x)
  s = f32[] constant(1e-6)
  e = f32[4] broadcast(s), dimensions={}
  p = f32[4] add(a, e)
  l = f32[4] log(p)
  d = f32[4] divide(l, p)
  ROOT y = f32[4] log(x)""",
    "accidental-f64": "x = f64[4] parameter(0)\n  ROOT r = f64[4] negate(x)",
    "truncated-tensor-array": """x = f32[] parameter(0)
  l = f32[3] parameter(1)
  i = s32[] parameter(2)
  w = f32[1] reshape(x), metadata={op_type="TensorListSetItem" op_name="Write_1/TensorListSetItem"}
  ROOT u = f32[3] dynamic-update-slice(l, w, i),
    metadata={op_type="TensorListSetItem" op_name="Write_1/TensorListSetItem"}""",
    "unrolled-loop": "x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)",
}


@pytest.mark.parametrize("rule", FOUND)
def test_it_is_found(rule: str) -> None:
    [finding] = lint(entry(FOUND[rule]), rule)
    assert finding.rule == rule
    assert finding.severity is RULES[rule].severity
    assert finding.remedy
    assert finding.severity is not Severity.ERROR


@pytest.mark.parametrize("rule", CLEAN)
def test_a_program_without_it_is_clean(rule: str) -> None:
    assert lint(entry(CLEAN[rule]), rule) == []


def test_every_lint_is_tested() -> None:
    lints = {
        rule.id
        for rule in RULES.values()
        if rule.check_module and rule.check_module.__module__.endswith("_lints")
    }
    assert lints
    assert lints <= FOUND.keys() | {"large-constant", "unrolled-loop"}
    assert lints <= CLEAN.keys()


def constant(values: list[float]) -> str:
    return f"ROOT c = f32[{len(values)}] constant({{{', '.join(map(str, values))}}})"


def test_large_constants_count_unless_their_elements_are_alike() -> None:
    [finding] = lint(entry(constant([float(i) for i in range(30_000)])), "large-constant")
    assert "117 KiB" in finding.message
    assert lint(entry(constant([1.0] * 30_000)), "large-constant") == []


def test_a_donating_program_is_left_alone() -> None:
    header = ", input_output_alias={ {}: (0, {}, may-alias) }"
    assert lint(entry(FOUND["donation-not-used"], header), "donation-not-used") == []


def test_what_is_certain_to_be_nan_is_a_warning() -> None:
    body = """x = f32[4] parameter(0)
  e = f32[4] exponential(x)
  n = f32[4] negate(e)
  ROOT y = f32[4] sqrt(n)"""
    [finding] = lint(entry(body), "nan-source")
    assert finding.severity is Severity.WARNING


def unrolled(steps: int, chained: bool) -> str:
    lines = ["x.0 = f32[4] parameter(0)"]
    for step in range(steps):
        operand = f"x.{step}" if chained else "x.0"
        place = 'metadata={op_name="jit(f)/sin" source_file="f.py" source_line=3}'
        lines.append(f"  x.{step + 1} = f32[4] sine({operand}), {place}")
    names = ", ".join(f"x.{step}" for step in range(steps + 1))
    shapes = ", ".join(["f32[4]"] * (steps + 1))
    return "\n".join([*lines, f"  ROOT t = ({shapes}) tuple({names})"])


@pytest.mark.parametrize(("steps", "severity"), [(8, Severity.NOTE), (64, Severity.WARNING)])
def test_steps_that_need_one_another_are_a_loop(steps: int, severity: Severity) -> None:
    [finding] = lint(entry(unrolled(steps, chained=True)), "unrolled-loop")
    assert finding.severity is severity
    assert finding.source is not None
    assert (finding.source.file, finding.source.file_line) == ("f.py", 3)


@pytest.mark.parametrize("text", [unrolled(7, True), unrolled(20, False)])
def test_few_steps_or_independent_ones_are_none(text: str) -> None:
    assert lint(entry(text), "unrolled-loop") == []


def test_copies_of_one_line_are_reported_once() -> None:
    place = 'metadata={op_name="jit(f)/log" source_file="f.py" source_line=3}'
    body = f"""x = f32[4] parameter(0)
  a = f32[4] abs(x)
  l = f32[4] log(a), {place}
  m = f32[4] log(a), {place}
  ROOT y = f32[4] add(l, m)"""
    [finding] = lint(entry(body), "nan-source")
    assert "and 1 more from this line" in finding.message


def test_a_tensor_array_that_should_have_grown() -> None:
    folder = Path(__file__).resolve().parents[2] / "corpus" / "tf" / "truncated_tensor_array"
    found = [
        finding.message
        for path in sorted(folder.glob("*before_optimizations.txt"))
        for finding in lint(path.read_text(encoding="utf-8"), "truncated-tensor-array")
    ]
    assert found == [
        "3 writes to a TensorArray had no room and left nothing",
        "2 writes to a TensorArray overwrote its last element",
    ]
