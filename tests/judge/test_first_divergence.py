"""The first diverging instruction is the planted one, wherever it was planted."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.edits import Edit, edited

from hlotool.inputs.captured import load_inputs
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.recorded_values import Budget, OutOfTime
from hlotool.ir.arrays import flatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ShapeIndex, leaves
from hlotool.ir.walk import reachable
from hlotool.judge.locate.locator import NotFound
from hlotool.judge.locate.recording import execute, on_one_device
from hlotool.judge.locate.report import first_divergence
from hlotool.judge.records import DivergenceRecord
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
MANIFEST = tomllib.loads((CORPUS / "MANIFEST.toml").read_text(encoding="utf-8"))
PLANTED = [d for d in MANIFEST["directory"] if d["path"].startswith("planted/")]


def differing(
    reference: Module, tested: Module, arguments: Sequence[Any], budget: Budget | None = None
) -> list[ShapeIndex]:
    """Outputs that are not nearly equal."""
    results = [execute(on_one_device(m, arguments), budget or Budget()).result for m in (reference, tested)]
    arrays = [[np.asarray(leaf) for _, _, leaf in flatten(reference.entry.root.shape, r)] for r in results]
    indices = [index for index, _ in leaves(reference.entry.root.shape)]
    return [i for i, a, b in zip(indices, *arrays) if not _near(a, b)]


def _near(a: Any, b: Any) -> bool:
    if a.shape != b.shape or a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    scale = np.abs(a[np.isfinite(a)]).max(initial=0)
    return np.allclose(a, b, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)


#: What runs step by step; others apply what they call to scalars.
_STEPWISE = ("while", "conditional", "call", "fusion")


def _executed(module: Module) -> set[Instruction]:
    """Instructions of computations that run step by step."""
    embedded = (c for i in module.instructions() if i.opcode not in _STEPWISE for c in i.called)
    inside = {c for callee in embedded for c in reachable(callee)}
    return {i for c in reachable(module.entry) if c not in inside for i in c.instructions}


def visible_fault(module: Module, arguments: Sequence[Any], seed: int) -> tuple[Edit, list[ShapeIndex]]:
    """The program with one changed instruction that shows in its results and lets it end."""
    steps = _executed(module)
    for attempt in range(seed, seed + 20):
        edit = edited(module, attempt, lambda instruction: instruction in steps)
        assert edit is not None
        with contextlib.suppress(OutOfTime):
            if outputs := differing(module, edit.module, arguments, Budget(seconds=1)):
                return edit, outputs
    raise AssertionError("no visible fault")


def located(
    reference: Module,
    tested: Module,
    arguments: Sequence[Any],
    outputs: Sequence[ShapeIndex],
    budget: Budget | None = None,
    wide: bool = False,
) -> DivergenceRecord:
    """Where two programs part, looked for as `run` does."""
    sides = (
        on_one_device(module, arguments, lambda seed: generate_inputs(reference, seed).values)
        for module in (reference, tested)
    )
    return first_divergence(*sides, outputs, budget or Budget(), wide)


def found(
    reference: str, tested: str, *arguments: Any, budget: Budget | None = None, wide: bool = False
) -> DivergenceRecord:
    modules = parse_module(reference), parse_module(tested)
    outputs = differing(*modules, arguments)
    assert outputs
    return located(*modules, arguments, outputs, budget, wide)


def planted_instruction(case: dict[str, Any], stage: str) -> str:
    """Name of the instruction whose line differs between the planted file and its source; a loop whose trip
    count follows from it states that.
    """
    texts = [
        (CORPUS / case[where] / stage).read_text(encoding="utf-8").splitlines()
        for where in ("source", "path")
    ]
    line, *others = [b for a, b in zip(*texts) if a != b]
    assert all("known_trip_count" in other for other in others)
    name = re.match(r"\s*(?:ROOT )?%([\w.-]+) =", line)
    assert name is not None
    return name[1]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("case", PLANTED, ids=lambda case: str(case["path"].partition("/")[2]))
def test_planted_faults(case: dict[str, Any], final: bool, wide: bool) -> None:
    """In the first wrong stage and in the last one, in the declared types and in f64."""
    folder = CORPUS / case["path"]
    [before] = folder.glob("*.before_optimizations.txt")
    [after] = folder.glob("*after_optimizations.txt")
    stage = after if final else folder / case["first_wrong"]
    modules = [parse_module(path.read_text(encoding="utf-8"), str(path)) for path in (before, stage)]
    inputs = folder / "inputs.npz"
    arguments = (
        load_inputs(str(inputs), modules[0]) if inputs.exists() else generate_inputs(modules[0], 0).values
    )
    outputs = differing(modules[0], modules[1], arguments)
    record = located(modules[0], modules[1], arguments, outputs, None, wide)
    assert record.source.instruction == planted_instruction(case, stage.name)
    assert record.finding == "wrong"
    assert record.repaired >= 1
    assert record.source.file.endswith(".py") or record.source.opcode == "constant"


PROGRAMS = (
    "jax/cumulative/module_0000.jit_cumulative",
    "jax/dynamic_rnn/module_0000.jit_dynamic_rnn",
    "jax/nested_loops/module_0000.jit_nested_loops",
    "jax/special_functions/module_0000.jit_special_functions",
    "jax/train_mnist_cnn/module_0000.jit_train_mnist_cnn",
    "jax/transformer/module_0000.jit_transformer",
)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", range(2))
def test_a_random_fault_is_found(program: str, seed: int) -> None:
    """One instruction of an optimised program is changed: in a fusion, a loop, a branch, anywhere."""
    path = CORPUS / f"{program}.cpu_after_optimizations.txt"
    module = parse_module(path.read_text(encoding="utf-8"), str(path))
    inputs = path.parent / "inputs.npz"
    arguments = load_inputs(str(inputs), module) if inputs.exists() else generate_inputs(module, 0).values
    edit, outputs = visible_fault(module, arguments, 100 * seed)
    record = located(module, edit.module, arguments, outputs)
    assert record.source.instruction == edit.instruction.name
    assert record.source.line == edit.instruction.line


def test_a_real_miscompile() -> None:
    """XLA simplified two nested dynamic slices to one and clamped in the wrong place."""
    folder = CORPUS / "miscompiles" / "nested_dynamic_slice"
    [before] = folder.glob("*.before_optimizations.txt")
    [after] = folder.glob("*after_optimizations.txt")
    modules = [parse_module(path.read_text(encoding="utf-8"), str(path)) for path in (before, after)]
    arguments = load_inputs(str(folder / "inputs.npz"), modules[0])
    outputs = differing(modules[0], modules[1], arguments)
    record = located(modules[0], modules[1], arguments, outputs)
    assert record.source.opcode == "dynamic-slice"
    assert any(name.startswith(("add ", "clamp ")) for name in record.unaligned)


LOOP = """HloModule m
cond {{
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT less = pred[] compare(i, n), direction=LT
}}
step {{
  p = f32[3] parameter(0)
  q = f32[3] parameter(1)
  ROOT bounded = f32[3] {opcode}(p, q),
    metadata={{op_name="jit(f)/while/body/bound" source_file="m.py" source_line=9}}
}}
body {{
  t = (s32[], f32[3]) parameter(0)
  j = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  k = s32[] add(j, one)
  x = f32[3] get-tuple-element(t), index=1
  ones = f32[3] constant({{1, 1, 1}})
  y = f32[3] add(x, ones), metadata={{op_name="jit(f)/while/body/add"}}
  fives = f32[3] constant({{5, 5, 5}})
  z = f32[3] fusion(y, fives), kind=kLoop, calls=step
  ROOT u = (s32[], f32[3]) tuple(k, z)
}}
ENTRY e {{
  v = f32[3] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[3]) tuple(zero, v)
  w = (s32[], f32[3]) while(init), condition=cond, body=body
  ROOT r = f32[3] get-tuple-element(w), index=1
}}"""


def test_the_iteration_and_the_fusion_around_it() -> None:
    """Below 5 the remainder by 5 and the minimum with 5 are the same: the fifth iteration is wrong."""
    record = found(LOOP.format(opcode="remainder"), LOOP.format(opcode="minimum"), np.zeros(3, np.float32))
    assert record.source.instruction == "bounded"
    assert record.around == ["fusion %z", "while %w, iteration 5"]
    assert (record.source.file, record.source.file_line) == ("m.py", 9)
    assert record.accumulated is not None
    assert record.accumulated.worst is not None
    assert (record.accumulated.worst.expected, record.accumulated.worst.actual) == ("0", "5")
    assert record.local is not None
    assert record.local.mismatched == 3
    assert record.repair == "the reference's remainder"


#: A loop of eight iterations, and one of seven.
EARLY = LOOP.format(opcode="add"), LOOP.format(opcode="add").replace("constant(8)", "constant(7)")


def test_a_loop_that_ends_early() -> None:
    record = found(*EARLY, np.zeros(3, np.float32))
    assert (record.source.instruction, record.around) == ("n", ["while %w"])


REDUCE = """HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {opcode}(a, b)
}}
ENTRY e {{
  x = f32[4,5] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[4] reduce(x, zero), dimensions={{1}}, to_apply=f, metadata={{op_name="jit(f)/reduce_sum"}}
}}"""


def test_inside_of_a_reduction() -> None:
    values = np.arange(20, dtype=np.float32).reshape(4, 5)
    record = found(REDUCE.format(opcode="add"), REDUCE.format(opcode="maximum"), values)
    assert record.source.instruction == "s"
    assert "add(" in record.inside_expected
    assert "maximum(" in record.inside


CHAIN = """HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[4] multiply(x, x)
  {first}
  l = f32[4] log(d), metadata={{op_name="jit(f)/log" source_file="m.py" source_line=3}}
  m = f32[4] multiply(l, y)
  ROOT r = f32[4] add(m, x)
}}"""


def test_where_a_nan_comes_from() -> None:
    values = np.float32([1, 2, -3, 4])
    record = found(
        CHAIN.format(first="d = f32[4] abs(x)"), CHAIN.format(first="d = f32[4] negate(x)"), values
    )
    assert record.source.instruction == "d"
    [made] = record.not_finite
    assert (made.kind, made.source.instruction, made.source.file_line) == ("NaN", "l", 3)
    assert made.index == [0]
    assert made.operands[0].value == "-1.0"


def test_where_an_infinity_comes_from() -> None:
    text = CHAIN.format(first="d = f32[4] abs(x)")
    record = found(text, text.replace("abs(x)", "subtract(x, x)"), np.float32([1, 2, 3, 4]))
    assert [(made.kind, made.source.instruction) for made in record.not_finite] == [("infinity", "l")]


QUOTIENT = """HloModule m
ENTRY e {{
  x = f32[3] parameter(0)
  c = f32[] constant({constant})
  b = f32[3] broadcast(c), dimensions={{}}
  q = f32[3] {opcode}(x, b), metadata={{op_name="jit(f)/div"}}
  ROOT f = f32[3] floor(q), metadata={{op_name="jit(f)/floor"}}
}}"""


def test_what_amplifies_rounding_is_not_called_wrong() -> None:
    """A division by 41 became a multiplication: at exact multiples one ulp decides about the floor."""
    record = found(
        QUOTIENT.format(constant="41", opcode="divide"),
        QUOTIENT.format(constant="0.024390243", opcode="multiply"),
        np.float32([41 * 3, 41 * 7, 41 * 13]),
    )
    assert (record.finding, record.source.instruction) == ("amplifies", "f")
    assert record.local is not None
    assert record.local.mismatched == 0
    assert record.accumulated is not None
    assert record.accumulated.mismatched > 0


TWO = """HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  a = f32[4] {first}(x), metadata={{op_name="jit(f)/first"}}
  b = f32[4] {second}(x), metadata={{op_name="jit(f)/second"}}
  ROOT r = (f32[4], f32[4]) tuple(a, b)
}}"""


def test_two_faults() -> None:
    record = found(
        TWO.format(first="sine", second="abs"),
        TWO.format(first="cosine", second="negate"),
        np.float32([1, 2, 3, 4]),
    )
    assert record.source.instruction == "a"
    assert (record.repaired, record.outputs) == (1, 2)


def test_a_fault_smaller_than_the_rounding_of_bf16() -> None:
    """Only in f64 it stands out."""
    text = """HloModule m
ENTRY e {{
  x = bf16[64] parameter(0)
  c = bf16[] constant({constant})
  b = bf16[64] broadcast(c), dimensions={{}}
  s = bf16[64] multiply(x, b), metadata={{op_name="jit(f)/scale"}}
  ROOT t = bf16[64] add(s, x), metadata={{op_name="jit(f)/add"}}
}}"""
    import ml_dtypes

    values = np.linspace(-2, 2, 64).astype(ml_dtypes.bfloat16)
    record = found(text.format(constant="0.25"), text.format(constant="0.252"), values, wide=True)
    assert (record.source.instruction, record.finding) == ("c", "wrong")
    assert record.notes == ["located in double precision"]


def test_values_on_disk_serve_as_well() -> None:
    texts = LOOP.format(opcode="remainder"), LOOP.format(opcode="minimum")
    in_memory = found(*texts, np.zeros(3, np.float32))
    assert found(*texts, np.zeros(3, np.float32), budget=Budget(memory=0)) == in_memory


def test_values_that_find_no_room_are_reported() -> None:
    """Nothing was kept: nobody can be accused. Where the scalars found room, the report says what did not."""
    texts = LOOP.format(opcode="remainder"), LOOP.format(opcode="minimum")
    with pytest.raises(
        NotFound, match=r"no instruction is known to differ; reference: \d+ values found no room"
    ):
        found(*texts, np.zeros(3, np.float32), budget=Budget(memory=0, disk=0))
    record = found(*EARLY, np.zeros(3, np.float32), budget=Budget(memory=0, disk=0))
    assert record.source.instruction == "n"
    assert any("found no room" in note for note in record.notes)


def test_iterations_beyond_the_limit_are_reported() -> None:
    """What the loop comes to is not known then; that its limits differ is."""
    record = found(*EARLY, np.zeros(3, np.float32), budget=Budget(samples=20))
    assert record.source.instruction == "n"
    assert "tested: only the first 20 values were looked at" in record.notes


def test_a_search_has_a_time_limit() -> None:
    texts = LOOP.format(opcode="remainder"), LOOP.format(opcode="minimum")
    with pytest.raises(OutOfTime, match="stopped after 0 s"):
        found(*texts, np.zeros(3, np.float32), budget=Budget(seconds=0))
