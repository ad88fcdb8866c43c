"""The recompilation report is exact on the corpus programs that were written for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.checks.compile_lints import recompilation
from hlotool.checks.facts import program_facts
from hlotool.checks.program_records import ProgramFacts
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.stages import read_stage

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


def test_files_side_by_side_are_no_compilations_of_one_function(tmp_path: Path) -> None:
    text = "HloModule f\nENTRY e {{ p = f32[{0}] parameter(0) ROOT n = f32[{0}] negate(p) }}\n"
    facts = []
    for number, name in enumerate(("a.hlo", "b.hlo", "log.txt#1", "log.txt#2")):
        module = parse_module(text.format(number + 1))
        facts.append(program_facts(module, name, str(tmp_path / name)))
    [finding] = recompilation(facts)
    assert finding.message.startswith("f was compiled 2 times")
    assert finding.file.endswith("log.txt#1")


#: For each dump: message and details of each finding.
EXPECTED: dict[str, list[tuple[str, list[str]]]] = {
    "jax/recompiled_on_launch": [
        (
            "recompiled_on_launch was compiled 3 times: the shapes of its arguments changed",
            [
                "module_0000 → module_0002: argument 0 (a): f32[1,10] → f32[1,100]",
                "module_0000 → module_0002: argument 1 (b): f32[1,10] → f32[1,100]",
                "module_0002 → module_0004: argument 0 (a): f32[1,100] → f32[1,1000]",
                "module_0002 → module_0004: argument 1 (b): f32[1,100] → f32[1,1000]",
            ],
        )
    ],
    "jax/unrolled": [
        (
            "unrolled was compiled 3 times: the program itself changed",
            [
                "module_0000 → module_0002: 12 → 33 instructions",
                "module_0002 → module_0004: 33 → 93 instructions",
            ],
        ),
        (
            "rolled was compiled 3 times: values that are compiled in changed",
            [
                "module_0006 → module_0008: constants s32[] 3 → s32[] 10",
                "module_0008 → module_0010: constants s32[] 10 → s32[] 30",
            ],
        ),
    ],
    "jax/collatz": [],
    "jax/model_fn": [],
    "tf/model_fn": [],
    "tf/recompiled_on_launch": [
        (
            "recompiled_on_launch was compiled 3 times, traced 3 times: the shapes of its arguments changed",
            [
                "module_0000 → module_0001: argument 0 (arg0.1): f32[1,10] → f32[1,100]",
                "module_0000 → module_0001: argument 1 (arg1.1): f32[1,10] → f32[1,100]",
                "module_0001 → module_0002: argument 0 (arg0.1): f32[1,100] → f32[1,1000]",
                "module_0001 → module_0002: argument 1 (arg1.1): f32[1,100] → f32[1,1000]",
            ],
        )
    ],
    "tf/collatz": [
        (
            "next_collatz was compiled 3 times from one trace: the shapes of its arguments changed",
            [
                "module_0000 → module_0001: argument 0 (arg0.1): s32[1] → s32[2]",
                "module_0001 → module_0002: argument 0 (arg0.1): s32[2] → s32[3]",
            ],
        )
    ],
    "tf/keras_fit": [
        (
            "one_step_on_data was compiled 2 times from one trace: the last batch is smaller",
            [
                "module_0000 → module_0001: argument 0 (arg0.1): f32[8,5] → f32[4,5]",
                "module_0000 → module_0001: argument 1 (arg1.1): s32[8] → s32[4]",
            ],
        )
    ],
    "tf/loops": [
        (
            "unrolled was compiled 2 times, traced 2 times: the program itself changed",
            ["module_0000 → module_0001: 20 → 55 instructions"],
        ),
        (
            "rolled was compiled 2 times from one trace: values that are compiled in changed",
            ["module_0002 → module_0031: constants s32[] 3 → s32[] 10"],
        ),
    ],
    "tf/value_constants": [
        (
            "reshaped was compiled 2 times from one trace: values that are compiled in changed",
            ["module_0000 → module_0001: results f32[3,2] → f32[1,6]"],
        )
    ],
}


def programs(path: Path) -> list[ProgramFacts]:
    return [
        program_facts(read_stage(module.stages[0]), module.title, str(module.stages[0].source))
        for module in open_dump(path).modules
    ]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_corpus_dump(name: str) -> None:
    found = [(finding.message, finding.details) for finding in recompilation(programs(CORPUS / name))]
    assert found == EXPECTED[name]


def test_torch_training_steps(shared: Path) -> None:
    found = [finding.details for finding in recompilation(programs(shared / "dumps" / "torch_xla_train"))]
    assert found == [
        ["module_0007 → module_0011: constants s32[] 16 → s32[] 8"],
        ["module_0017 → module_0019: results f32[10] → f32[3]"],
    ]


def facts(body: str, number: int = 0, name: str = "jit_f") -> ProgramFacts:
    module = parse_module(f"HloModule {name}\nENTRY e {{\n{body}\n}}")
    return program_facts(module, f"module_{number:04d}.{name}", "f.txt")


def test_the_same_program_again() -> None:
    body = "x = f32[4] parameter(0) ROOT y = f32[4] negate(x)"
    [finding] = recompilation([facts(body, 0), facts(body, 2)])
    assert finding.message == "f was compiled 2 times: the same program again"


def test_other_types() -> None:
    [finding] = recompilation(
        [
            facts("x = f32[] parameter(0) ROOT y = f32[] negate(x)", 0),
            facts("x = s32[] parameter(0) ROOT y = s32[] negate(x)", 2),
        ]
    )
    assert finding.message == "f was compiled 2 times: the element types of its arguments changed"


def test_a_function_and_its_gradient_are_two() -> None:
    """JAX calls both `loss`."""
    loss = "x = f32[] parameter(0) ROOT y = f32[] multiply(x, x)"
    both = loss.replace("ROOT ", "") + " z = f32[] add(x, x) ROOT t = (f32[], f32[]) tuple(y, z)"
    assert list(recompilation([facts(loss, 0, "jit_loss"), facts(both, 2, "jit_loss")])) == []


def test_different_folders_are_different_runs() -> None:
    one, other = facts("ROOT x = f32[4] parameter(0)"), facts("ROOT x = f32[4] parameter(0)")
    apart = [
        ProgramFacts(**{**fields(p), "module": f"{d}/{p.module}"}) for d, p in (("a", one), ("b", other))
    ]
    assert list(recompilation(apart)) == []


#: As JAX 0.10.2 dumps `x + x` outside of any jitted function, and `@jit def add(a): return helper(a)`.
EAGER = """HloModule jit_add
FileNames
1 "model.py"
FunctionNames
1 "<module>"
FileLocations
1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=0 end_column=5}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
ENTRY e {
  x = f32[SIZE] parameter(0)
  y = f32[SIZE] parameter(1)
  ROOT r = f32[SIZE] add(x, y), metadata={op_name="jit(add)/add" stack_frame_id=1}
}"""
OWN = EAGER.replace('1 "<module>"', '1 "helper"\n2 "Model.add"')
#: As JAX 0.10.2 dumps `jnp.var(x)` outside of any jitted function, here with two instructions of it.
SEVERAL = EAGER.replace("add(x, y)", "multiply(d, d)").replace(
    "  ROOT", '  d = f32[SIZE] subtract(x, y), metadata={op_name="jit(add)/sub" stack_frame_id=1}\n  ROOT'
)
#: The same by a lambda of the user's, which JAX calls `_lambda`.
LAMBDA = SEVERAL.replace('"<module>"', '"<module>"\n2 "body.<locals>.<lambda>"').replace(
    "jit_add", "jit__lambda"
)
#: From two lines: no single call.
TWO_LINES = SEVERAL.replace('sub" stack_frame_id=1', 'sub" stack_frame_id=2')
#: A conversion to the type that it has, as JAX dumps it.
NOTHING = "HloModule jit_convert_element_type\nENTRY e {\n  ROOT x = f32[SIZE] parameter(0)\n}"
#: Of versions that do not tell functions.
EARLY = """HloModule jit_add
ENTRY e {
  x = f32[SIZE] parameter(0)
  ROOT r = f32[SIZE] add(x, x), metadata={op_name="jit(add)/jit(main)/add" source_file="m.py" source_line=3}
}"""
EARLY_OWN = EARLY.replace('/add"', '/mul"')


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        pytest.param(EAGER, 0, id="one operation"),
        pytest.param(OWN, 1, id="a method"),
        pytest.param(SEVERAL, 0, id="several operations"),
        pytest.param(LAMBDA, 1, id="a lambda"),
        pytest.param(TWO_LINES, 1, id="two lines"),
        pytest.param(NOTHING, 0, id="nothing"),
        pytest.param(EARLY, 0, id="early"),
        pytest.param(EARLY_OWN, 1, id="early, of the user's"),
    ],
)
def test_operations_that_run_one_by_one_are_no_functions(text: str, findings: int) -> None:
    found = [
        program_facts(parse_module(text.replace("SIZE", str(size))), f"module_{size:04d}.jit_add", "f.txt")
        for size in (3, 4)
    ]
    assert len(list(recompilation(found))) == findings


def fields(program: ProgramFacts) -> dict[str, object]:
    return {name: getattr(program, name) for name in program.__struct_fields__}
