"""What a target may do to the operands of products: legal texts for TPUs are not wrong, faulty ones are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.tpu_programs import TPU_CASES

from hlotool.judge.rules.freedoms import ON_GPU, ON_TPU, STRICT, ProductFreedom, freedoms
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump

HEALTHY = {Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING}
FAULTS = [(name, fault) for name, case in TPU_CASES.items() for fault in case.faults]
MLP = TPU_CASES["mlp"]


def _dump(folder: Path, before: str, after: str, infix: str = ".cl_123456789", platform: str = "") -> Path:
    stages = {"before_optimizations": before, f"{platform}after_optimizations": after}
    for stage, text in stages.items():
        path = folder / f"module_0000.jit_f{infix}.{stage}.txt"
        path.write_text(f"HloModule jit_f\n\n{text}\n", encoding="utf-8")
    return folder


def _row(folder: Path, seed: int = 0) -> ModuleRecord:
    [module] = open_dump(str(folder)).modules
    [row] = replay_module(Task(module, ReplayOptions(seed=seed)))
    return row


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("name", TPU_CASES)
def test_operands_in_bf16_are_legal_on_a_tpu(name: str, seed: int, tmp_path: Path) -> None:
    case = TPU_CASES[name]
    assert _row(_dump(tmp_path, case.before, case.after), seed).verdict in HEALTHY


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_faults_of_a_text_for_a_tpu_are_found(name: str, fault: str, tmp_path: Path) -> None:
    case = TPU_CASES[name]
    assert _row(_dump(tmp_path, case.before, case.faulty(fault))).verdict is Verdict.WRONG


def _looked_up(kind: str, values: list[float]) -> str:
    """One row of a constant table, by a product."""
    listed = ", ".join(f"{{{v!r}, {v / 3!r}}}" for v in values)
    return f"""ENTRY e {{
  x = f32[3,4]{{1,0:T(4,128)}} parameter(0)
  t = {kind}[4,2]{{1,0:T(4,128)}} constant({{ {listed} }})
  ROOT d = f32[3,2]{{1,0:T(4,128)}} dot(x, t), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, Verdict.ROUNDING), (1.03, Verdict.WRONG)])
def test_a_constant_operand_is_folded_to_bf16(scale: float, verdict: Verdict, tmp_path: Path) -> None:
    """In f64, too, where the programs differ by its rounding; a factor beyond that is a fault."""
    table = [0.1234567, 1.2345678, 3.3333333, -2.7182818]
    after = _looked_up("bf16", [scale * value for value in table])
    assert _row(_dump(tmp_path, _looked_up("f32", table), after)).verdict is verdict


DOUBLED = "ENTRY e { x = f64[64] parameter(0) ROOT n = f64[64] add(x, x) }"
IN_PAIRS = """ENTRY e {
  x = f64[64]{0:T(128)} parameter(0)
  a = f32[64]{0:T(128)} custom-call(x), custom_call_target="X64SplitLow"
  b = f32[64]{0:T(128)} custom-call(x), custom_call_target="X64SplitHigh"
  c = f32[64]{0:T(128)} add(a, a)
  d = f32[64]{0:T(128)} add(b, b)
  ROOT n = f64[64]{0:T(128)} custom-call(c, d), custom_call_target="X64Combine"
}"""


def test_a_tpu_makes_f64_of_pairs(tmp_path: Path) -> None:
    """Of 48 bits, and not of 24: a lost second part is a fault."""
    assert _row(_dump(tmp_path, DOUBLED, IN_PAIRS)).verdict in HEALTHY
    lost = IN_PAIRS.replace("d = f32[64]{0:T(128)} add(b, b)", "d = f32[64]{0:T(128)} subtract(b, b)")
    assert _row(_dump(tmp_path, DOUBLED, lost)).verdict is Verdict.WRONG


#: What f32 cannot hold, what it holds with fewer digits than a pair has, and ordinary numbers.
BEYOND = [3e38, 1e300, -1e300, 1.23456789012345e-36, -1.1e-42, 1e-60, 0.0, np.inf]
ORDINARY = [1.1, -2.3e30, 7.7e-30, 1e38]
#: What a fault makes of the sum of the leading terms, and of the others.
PLANTED = {
    "sign": ("add(a, a)", "negate(a)"),
    "one term": ("add(a, a)", "maximum(a, a)"),
    "lost digits": ("add(b, b)", "subtract(b, b)"),
    "infinite": ("add(a, a)", "divide(a, b)"),
    "unknown": ("add(a, a)", "log(a)"),
    "zero": ("add(a, a)", "subtract(a, a)"),
}


def _on(folder: Path, after: str, values: list[float]) -> ModuleRecord:
    np.savez(folder / "in.npz", x=np.resize(np.array(values), 64))
    [module] = open_dump(str(_dump(folder, DOUBLED, after))).modules
    options = ReplayOptions(inputs=str(folder / "in.npz"))
    [row] = replay_module(Task(module, options))
    return row


def test_such_a_pair_has_the_range_of_f32(tmp_path: Path) -> None:
    row = _on(tmp_path, IN_PAIRS, BEYOND + ORDINARY)
    assert row.verdict is Verdict.SEMANTICS
    assert "f64 on a TPU is a pair of f32: range of f32" in row.reason


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_beside_numbers_beyond_that_range_is_found(fault: str, tmp_path: Path) -> None:
    assert _on(tmp_path, IN_PAIRS.replace(*PLANTED[fault]), BEYOND + ORDINARY).verdict is Verdict.WRONG


@pytest.mark.parametrize("fault", ["sign", "one term", "zero"])
def test_so_is_one_where_numbers_have_lost_digits(fault: str, tmp_path: Path) -> None:
    assert _on(tmp_path, IN_PAIRS.replace(*PLANTED[fault]), BEYOND[3:4]).verdict is Verdict.WRONG


def test_f64_of_a_pass_before_there_are_pairs_has_its_own_range(tmp_path: Path) -> None:
    """Infinity there is no pair's."""
    after = DOUBLED.replace("f64[64] add(x, x)", "f64[64] divide(x, z)").replace(
        "ROOT", "z = f64[64] subtract(x, x) ROOT"
    )
    assert _on(tmp_path, after, [1e300]).verdict is Verdict.WRONG


@pytest.mark.parametrize("platform", ["cpu_", "sm_9.0_gpu_"])
def test_the_same_text_is_wrong_elsewhere(platform: str, tmp_path: Path) -> None:
    row = _row(_dump(tmp_path, MLP.before, MLP.after, infix="", platform=platform))
    assert row.verdict is Verdict.WRONG


def test_the_reason_names_it(tmp_path: Path) -> None:
    row = _row(_dump(tmp_path, MLP.before, MLP.after))
    assert row.verdict is Verdict.ROUNDING
    assert ON_TPU.reason in row.leaves[0].reason


@pytest.mark.parametrize(
    ("infix", "platform", "after", "expected"),
    [
        (".cl_123456789", "", MLP.before, ON_TPU),
        ("", "tpu_", MLP.before, ON_TPU),
        ("", "", MLP.after, ON_TPU),
        ("", "", MLP.before, STRICT),
        ("", "cpu_", MLP.after, STRICT),
        ("", "sm_9.0_gpu_", MLP.after, STRICT),
    ],
)
def test_a_tpu_is_told_by_names_and_tiles(
    infix: str, platform: str, after: str, expected: ProductFreedom, tmp_path: Path
) -> None:
    [module] = open_dump(str(_dump(tmp_path, MLP.before, after, infix, platform))).modules
    assert freedoms(module, parse_module(MLP.before), parse_module(after)).product is expected


def test_only_open_products_are_free_and_gpus_in_hardware_alone(tmp_path: Path) -> None:
    highest = parse_module(TPU_CASES["highest"].before)
    [module] = open_dump(str(_dump(tmp_path, MLP.before, MLP.before, "", "gpu_"))).modules
    assert freedoms(module, parse_module(MLP.before), None).product is ON_GPU
    assert freedoms(module, highest, None).product is STRICT


FLAGS = """xla_cpu_enable_fast_math: true
xla_cpu_fast_math_honor_division: false
xla_allow_excess_precision: false
"""


def test_debug_options_say_what_else_is_allowed(tmp_path: Path) -> None:
    folder = _dump(tmp_path, MLP.before, MLP.before, "", "cpu_")
    (folder / "module_0000.jit_f.debug_options").write_text(FLAGS)
    row = _row(folder)
    assert row.freedoms is not None
    assert (row.freedoms.target, row.freedoms.excess_precision, row.freedoms.products) == ("cpu", False, "")
    assert row.freedoms.flags == ["xla_cpu_enable_fast_math=true", "xla_cpu_fast_math_honor_division=false"]


ERROR_OF_SUM = """ENTRY e {
  a = f32[64] parameter(0)
  b = f32[64] parameter(1)
  s = f32[64] add(a, b)
  t = f32[64] subtract(s, a)
  ROOT e = f32[64] subtract(b, t)
}"""
NO_ERROR = """ENTRY e {
  a = f32[64] parameter(0)
  b = f32[64] parameter(1)
  z = f32[] constant(0)
  ROOT e = f32[64] broadcast(z), dimensions={}
}"""


@pytest.mark.parametrize(("flags", "verdict"), [(FLAGS, Verdict.ROUNDING), ("", Verdict.WRONG)])
def test_fast_math_regroups_sums(flags: str, verdict: Verdict, tmp_path: Path) -> None:
    """LLVM's reassociation makes the error of a sum 0: legal with the flag alone."""
    folder = _dump(tmp_path, ERROR_OF_SUM, NO_ERROR, "", "cpu_")
    (folder / "module_0000.jit_f.debug_options").write_text(flags)
    row = _row(folder)
    assert row.verdict is verdict


def test_a_row_says_which_target_was_taken(tmp_path: Path) -> None:
    row = _row(_dump(tmp_path, MLP.before, MLP.after))
    assert row.freedoms is not None
    assert (row.freedoms.target, row.freedoms.told_by) == ("tpu", "names of files")
    assert row.freedoms.products == ON_TPU.reason
    assert row.freedoms.excess_precision


MEAN = """add {{
  p = {kind}[] parameter(0)
  q = {kind}[] parameter(1)
  ROOT s = {kind}[] add(p, q)
}}
ENTRY e {{
  x = bf16[64,64]{layout} parameter(0)
  {body}
  b = bf16[64,64]{layout} broadcast(n), dimensions={{}}
  {quotient}
}}"""
ROUNDED = "d = bf16[64,64] divide(x, b)\n  ROOT r = f32[64,64] convert(d)"
UNROUNDED = "f = f32[64,64] convert(b) g = f32[64,64] convert(x)\n  ROOT r = f32[64,64] divide(g, f)"
SUM_OF_F32 = MEAN.format(
    kind="f32",
    layout="",
    body="""w = f32[64,64] convert(x) z = f32[] constant(0)
  t = f32[] reduce(w, z), dimensions={0,1}, to_apply=add n = bf16[] convert(t)""",
    quotient=ROUNDED,
)
SUM_OF_BF16 = MEAN.format(
    kind="bf16",
    layout="{1,0:T(8,128)(2,1)}",
    body="z = bf16[] constant(0) n = bf16[] reduce(x, z), dimensions={0,1}, to_apply=add",
    quotient=UNROUNDED,
)


def test_sums_of_bf16_are_made_in_f32_on_a_tpu(tmp_path: Path) -> None:
    """The compiler makes one of a sum of f32 whose result is rounded to bf16 anyway."""
    row = _row(_dump(tmp_path, SUM_OF_F32, SUM_OF_BF16))
    assert row.verdict is Verdict.ROUNDING
    assert "excess precision: the rounding to bf16 at divide %d" in row.leaves[0].reason


def test_elsewhere_every_step_of_such_a_sum_is_rounded(tmp_path: Path) -> None:
    row = _row(_dump(tmp_path, SUM_OF_F32, SUM_OF_BF16, infix="", platform="cpu_"))
    assert row.verdict is Verdict.WRONG
    assert "adds up in bf16 at reduce %n" in row.leaves[0].reason


def test_a_sum_that_stays_f32_may_not_become_one_of_bf16_on_a_tpu(tmp_path: Path) -> None:
    before = """add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
ENTRY e {
  x = f32[64,64] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[64] reduce(x, z), dimensions={0}, to_apply=add
}"""
    after = before.replace("ROOT r = f32[64] reduce(x, z)", "n = bf16[64] reduce(h, z)").replace(
        "f32[]", "bf16[]"
    )
    after = after.replace("  z =", "  h = bf16[64,64]{1,0:T(8,128)} convert(x)\n  z =")
    after = after.replace("to_apply=add\n", "to_apply=add\n  ROOT r = f32[64] convert(n)\n")
    row = _row(_dump(tmp_path, before, after))
    assert row.verdict is Verdict.WRONG
    assert "what the reference has in f32" in row.leaves[0].reason
