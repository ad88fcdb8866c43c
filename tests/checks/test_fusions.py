"""Fusions: those that XLA made are legal; broken ones are found, whatever is broken."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hlotool.checks.catalogue import all_rules
from hlotool.checks.programs import findings_of
from hlotool.checks.records import Severity
from hlotool.interface.cli.main import main
from hlotool.ir.arrays import Literal
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
RULES = [rule for rule in all_rules().values() if rule.id.startswith("fusion-") or rule.id == "invalid-hlo"]
OPTIMIZED = sorted(
    path for name in ("jax", "tf") for path in (CORPUS / name).glob("*/*after_optimizations.txt")
)

S32 = ArrayShape(ElementType.S32, ())
F32 = ArrayShape(ElementType.F32, ())


def found(module: Module) -> set[str]:
    return {finding.rule for finding in findings_of(module, RULES)}


def fusions(module: Module) -> list[tuple[Instruction, Computation]]:
    return [
        (i, body)
        for i in module.instructions()
        if i.opcode == "fusion" and isinstance(body := i.attributes.get("calls"), Computation)
    ]


@pytest.mark.parametrize("path", OPTIMIZED, ids=lambda path: path.parent.name)
def test_what_xla_fused_is_legal(path: Path) -> None:
    assert found(parse_module(path.read_text(encoding="utf-8"), str(path))) == set()


def test_the_real_in_place_fault_is_found() -> None:
    folder = CORPUS / "miscompiles" / "shifted_update_in_place"
    [path] = folder.glob("*after_optimizations.txt")
    [finding] = findings_of(parse_module(path.read_text(encoding="utf-8")), RULES)
    assert (finding.rule, finding.severity) == ("fusion-in-place", Severity.WARNING)
    assert [step.opcode for step in finding.path] == ["parameter", "slice", "dynamic-update-slice"]


@pytest.mark.parametrize(("read", "expected"), [("[3:4]", set()), ("[2:3]", {"fusion-in-place"})])
def test_what_is_overwritten_itself_may_be_read(read: str, expected: set[str]) -> None:
    """An element of which something is computed that replaces it, by constant positions."""
    text = f"""HloModule m, is_scheduled=true
f {{
  x = f32[6] parameter(0)
  s = f32[1] slice(x), slice={{{read}}}
  t = f32[1] add(s, s)
  c = s32[] constant(3)
  ROOT u = f32[6] dynamic-update-slice(x, t, c)
}}
ENTRY e {{
  x = f32[6] parameter(0)
  ROOT r = f32[6] fusion(x), kind=kLoop, calls=f
}}"""
    assert found(parse_module(text)) == expected


HEROES = {"reduce", "transpose", "copy", "scatter", "reduce-window", "dynamic-slice", "concatenate"}

# Ways to break a fusion; each returns False where it does not apply.

Breakage = Callable[[Module, Instruction, Computation, random.Random], bool]


def scalar(name: str, value: float, shape: ArrayShape = F32) -> Instruction:
    dtype = np.float32 if shape is F32 else np.int32
    return Instruction(name, "constant", shape, literal=Literal(shape, np.array(value, dtype)))


def first(body: Computation, *made: Instruction) -> None:
    body.instructions[:0] = made


def other_kind(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    opcodes = {i.opcode for i in body.instructions}
    kinds = [kind for kind, ok in (("kOutput", not opcodes & {"dot", "convolution"}),) if ok]
    if not opcodes & {
        "reduce",
        "transpose",
        "copy",
        "scatter",
        "reduce-window",
        "dynamic-slice",
        "concatenate",
    }:
        kinds.append("kInput")
    if "backend_config" not in fusion.attributes:
        kinds.append("kCustom")
    if not kinds:
        return False
    fusion.attributes = {**fusion.attributes, "kind": rng.choice(kinds)}
    return True


def random_numbers_inside(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    low, high = scalar("low.x", 0), scalar("high.x", 1)
    drawn = Instruction("drawn.x", "rng", F32, (low, high), {"distribution": "rng_uniform"})
    first(body, low, high, drawn)
    return True


def side_effect_inside(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    attributes = {"custom_call_target": "print", "custom_call_has_side_effect": True}
    value = scalar("value.x", 0)
    first(body, value, Instruction("print.x", "custom-call", F32, (value,), attributes))
    return fusion.attributes.get("kind") != "kCustom"


def library_call_inside(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    target = body.root if body.root.opcode != "tuple" else body.root.operands[0]
    if fusion.attributes.get("kind") == "kCustom" or body.root is not target:
        return False
    call = Instruction("call.x", "custom-call", target.shape, (target,), {"custom_call_target": "library"})
    body.instructions.append(call)
    body.root = call
    return True


def control_inside(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    if len(body.instructions) < 3:
        return False
    later = rng.randrange(1, len(body.instructions))
    body.instructions[later].control_predecessors = (body.instructions[rng.randrange(later)],)
    return True


def cycle(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    for computation in module.computations:
        readers = [i for i in computation.instructions if fusion in i.operands]
        if readers:
            fusion.control_predecessors = (rng.choice(readers),)
            return True
    return False


def other_shape(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    shape = fusion.shape
    if not isinstance(shape, ArrayShape) or not shape.dims:
        return False
    fusion.shape = ArrayShape(shape.element_type, (*shape.dims[:-1], shape.dims[-1] + 1))
    return True


def operand_missing(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    if not body.parameters:
        return False
    fusion.operands = fusion.operands[:-1]
    return True


def parameter_twice(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    if len(body.parameters) < 2:
        return False
    body.parameters[-1].parameter_number = 0
    return True


def unread_inside(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    first(body, scalar("unread.x", 0))
    return True


def root_read(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    root = body.root
    if not isinstance(root.shape, ArrayShape) or not root.shape.element_type.is_floating:
        return False
    body.instructions.append(Instruction("after.x", "negate", root.shape, (root,)))
    return True


def shifted_in_place(module: Module, fusion: Instruction, body: Computation, rng: random.Random) -> bool:
    """The fusion becomes an update of its first operand by a shifted part of the same."""
    parameter = next((p for p in body.parameters if p.shape == body.root.shape), None)
    shape = body.root.shape
    if parameter is None or not isinstance(shape, ArrayShape) or not shape.dims or shape.dims[0] < 2:
        return False
    part = ArrayShape(shape.element_type, (shape.dims[0] - 1, *shape.dims[1:]))
    start = [scalar(f"start.x{i}", int(i == 0), S32) for i in range(shape.rank)]
    zero = [scalar(f"zero.x{i}", 0, S32) for i in range(shape.rank)]
    taken = Instruction(
        "taken.x", "dynamic-slice", part, (parameter, *zero), {"dynamic_slice_sizes": part.dims}
    )
    written = Instruction("written.x", "dynamic-update-slice", shape, (parameter, taken, *start))
    body.instructions = [*body.parameters, *start, *zero, taken, written]
    body.root = written
    return True


BREAKAGES: list[Breakage] = [
    other_kind,
    random_numbers_inside,
    side_effect_inside,
    library_call_inside,
    control_inside,
    cycle,
    other_shape,
    operand_missing,
    parameter_twice,
    unread_inside,
    root_read,
    shifted_in_place,
]


def test_three_hundred_broken_fusions_are_all_found() -> None:
    rng = random.Random(0)
    modules = [
        parse_module(path.read_text(encoding="utf-8"), str(path)) for path in rng.sample(OPTIMIZED, 40)
    ]
    modules = [module for module in modules if fusions(module)]
    seen: dict[str, int] = {}
    missed: list[str] = []
    while sum(seen.values()) < 300:
        module = clone_module(rng.choice(modules)).module
        breakage = BREAKAGES[sum(seen.values()) % len(BREAKAGES)]
        fusion, body = rng.choice(fusions(module))
        if not breakage(module, fusion, body, rng):
            continue
        seen[breakage.__name__] = seen.get(breakage.__name__, 0) + 1
        if not found(module):
            missed.append(f"{breakage.__name__} in %{fusion.name} of {module.path}")
    assert missed == []
    assert min(seen.values()) == max(seen.values()) == 25


PROGRAM = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = f32[64,64] parameter(0)
  t = f32[64,64] tanh(x)
  n = f32[64,64] negate(t)
  m = f32[64,64] multiply(t, n)
  z = f32[] constant(0)
  s = f32[64] reduce(m, z), dimensions={1}, to_apply=add
  r = f32[32,128] reshape(x)
  u = f32[32,128] negate(r)
  ROOT o = (f32[64,64], f32[64], f32[32,128]) tuple(n, s, u)
}
"""


@pytest.mark.parametrize(
    ("producer", "consumer", "answers", "code"),
    [
        ("m", "s", ["producer-consumer: yes", "multi-output: yes"], 0),
        ("t", "n", ["producer-consumer: expensive producer would be duplicated"], 0),
        ("x", "t", ["producer-consumer: the producer is not fusible"], 1),
        ("n", "u", ["producer-consumer: u does not read n", "multi-output: different loop shapes"], 1),
        ("t", "s", ["producer-consumer: s does not read t", "multi-output: multi-output fusion creates"], 1),
    ],
)
def test_a_pair_is_explained(
    producer: str,
    consumer: str,
    answers: list[str],
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(PROGRAM, encoding="utf-8")
    assert main(["check", str(file), "--explain-fusion", producer, consumer]) == code
    shown = capsys.readouterr().out
    assert all(answer.split(": ", 1)[1] in shown for answer in answers), shown


def test_a_pair_needs_two_known_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(PROGRAM, encoding="utf-8")
    assert main(["check", str(file), "--explain-fusion", "m", "nobody"]) == 2
    assert "no instruction is called 'nobody'" in capsys.readouterr().err


def reductions(count: int, element_type: str) -> Module:
    """A fusion of `count` column reductions."""
    lines = "\n".join(
        f"  r{i} = {element_type}[64] reduce(x, z), dimensions={{0}}, to_apply=add" for i in range(count)
    )
    shapes = ", ".join([f"{element_type}[64]"] * count)
    names = ", ".join(f"r{i}" for i in range(count))
    return parse_module(f"""HloModule m
add {{
  a = {element_type}[] parameter(0)
  b = {element_type}[] parameter(1)
  ROOT r = {element_type}[] add(a, b)
}}
fused {{
  x = {element_type}[64,64] parameter(0)
  z = {element_type}[] constant(0)
{lines}
  ROOT t = ({shapes}) tuple({names})
}}
ENTRY e {{
  x = {element_type}[64,64] parameter(0)
  ROOT f = ({shapes}) fusion(x), kind=kInput, calls=fused
}}""")


@pytest.mark.parametrize(
    ("count", "element_type", "gpu", "messages"),
    [
        (2, "f32", "h100", []),
        (3, "f32", "h100", ["shared memory usage would be over the budget of 49152B: 49536B on h100"]),
        (3, "f32", "mi200", []),
        (3, "f32", None, []),
        (9, "s8", None, ["over 8 unnested reductions in fusion: 9"]),
        (9, "s8", "h100", ["over 8 unnested reductions in fusion: 9"]),
    ],
)
def test_budgets_are_those_of_the_gpu(
    count: int, element_type: str, gpu: str | None, messages: list[str]
) -> None:
    module = reductions(count, element_type)
    found = findings_of(module, [rule for rule in RULES if rule.id == "fusion-budget"], gpu=gpu)
    assert [finding.message for finding in found] == messages


@pytest.mark.parametrize(
    ("other", "messages"),
    [("[64]", []), ("[64,32]", ["different loop shapes: outputs of 64, 2048 elements"])],
)
def test_a_loop_counts_what_a_reduction_gives(other: str, messages: list[str]) -> None:
    operand = "x" if other == "[64,32]" else "y"
    module = parse_module(f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}}
fused {{
  x = f32[64,32] parameter(0)
  y = f32[64] parameter(1)
  z = f32[] constant(0)
  sum = f32[64] reduce(x, z), dimensions={{1}}, to_apply=add
  other = f32{other} negate({operand})
  w = f32[64] abs(y)
  ROOT t = (f32[64], f32{other}, f32[64]) tuple(sum, other, w)
}}
ENTRY e {{
  x = f32[64,32] parameter(0)
  y = f32[64] parameter(1)
  ROOT f = (f32[64], f32{other}, f32[64]) fusion(x, y), kind=kLoop, calls=fused
}}""")
    found = findings_of(module, [rule for rule in RULES if rule.id == "fusion-outputs"])
    assert [finding.message for finding in found] == messages


SORTED = """HloModule m, is_scheduled=true
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
f {
  p = f32[4,300]{1,0} parameter(0)
  i = s32[4,300]{1,0} iota(), iota_dimension=1
  ROOT s = (f32[4,300]{1,0}, s32[4,300]{1,0}) sort(p, i), dimensions={1}, to_apply=less
}
ENTRY e {
  x = f32[4,300]{1,0} parameter(0)
  ROOT s = (f32[4,300]{1,0}, s32[4,300]{1,0}) fusion(x), kind=kCustom, calls=f
}"""


def test_a_sort_needs_no_configuration() -> None:
    """XLA:GPU writes it so; of what else is kCustom a configuration says what it is."""
    assert found(parse_module(SORTED)) == set()
    of_a_negation = SORTED.replace(
        "ROOT s = (f32[4,300]{1,0}, s32[4,300]{1,0}) sort(p, i), dimensions={1}, to_apply=less",
        "n = f32[4,300]{1,0} negate(p)\n  ROOT s = (f32[4,300]{1,0}, s32[4,300]{1,0}) tuple(n, i)",
    )
    assert found(parse_module(of_a_negation)) == {"fusion-kind"}


ON_TPU = """HloModule m, is_scheduled=true
f {
  p = f32[8,128]{1,0:T(8,128)} parameter(0)
  s = f32[1,128]{1,0:T(1,128)} slice(p), slice={[0:1], [0:128]}
  d = f32[4,128]{1,0:T(8,128)} slice(p), slice={[4:8], [0:128]}
  ROOT t = (f32[1,128]{1,0:T(1,128)}, f32[4,128]{1,0:T(8,128)}) tuple(s, d)
}
ENTRY e {
  x = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT r = (f32[1,128]{1,0:T(1,128)}, f32[4,128]{1,0:T(8,128)}) fusion(x), kind=kLoop, calls=f
}"""


def test_a_tpu_has_fusions_of_its_own() -> None:
    """Its compiler puts outputs of unequal sizes into one loop; XLA's own emitters could not compute it."""
    assert found(parse_module(ON_TPU)) == set()
    without_tiles = re.sub(r":T\([0-9,]*\)", "", ON_TPU)
    assert found(parse_module(without_tiles)) == {"fusion-outputs"}
