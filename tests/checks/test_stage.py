"""What is counted in a program besides costs and memory, and how modules are put together."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hlotool.checks.inspect.programs import inspect_module, stage_info
from hlotool.checks.inspect.run import find_tasks, functions_of
from hlotool.checks.records import ModuleInfo, StageInfo
from hlotool.errors import UsageError
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump

ALIAS = "input_output_alias={ {0}: (1, {}, may-alias) }"
PROGRAM = (
    f"HloModule jit_step, is_scheduled=true, {ALIAS}, num_partitions=2"
    + """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[4,8]{1,0} parameter(0), metadata={op_name="batch"}
  w = f32[4,8]{1,0} parameter(1), metadata={op_name="state[0]"}
  far = f32[4,8]{1,0:S(5)} copy(x)
  back = f32[4,8]{1,0} custom-call(far), custom_call_target="MoveToDevice"
  call = f32[4,8]{1,0} custom-call(back), custom_call_target="my_kernel"
  other = f32[4,8]{1,0} custom-call(call), custom_call_target="my_kernel"
  start = f32[4,8]{1,0} all-reduce-start(other), replica_groups={{0,1}}, channel_id=1, to_apply=add
  sum = f32[4,8]{1,0} all-reduce-done(start)
  y = f32[4,8]{1,0} add(sum, w), metadata={op_name="jit(step)/add" source_file="model.py" source_line=7}
  n = s32[] constant(7)
  ROOT r = (f32[4,8]{1,0}, s32[]) tuple(y, n)
}
"""
)


@pytest.fixture
def stage() -> StageInfo:
    return stage_info(parse_module(PROGRAM), "after", "f.txt", allocated=(1000, {}))


def test_counts(stage: StageInfo) -> None:
    assert (stage.instructions, stage.computations, stage.fusions) == (14, 2, 0)
    assert (stage.scheduled, stage.replicas, stage.partitions) == (True, 1, 2)
    assert next(iter(stage.opcodes.items())) == ("parameter", 4)
    assert sum(stage.opcodes.values()) == stage.instructions


def test_signature(stage: StageInfo) -> None:
    assert [(p.number, p.name, p.shape, p.bytes, p.donated) for p in stage.parameters] == [
        (0, "batch", "f32[4,8]{1,0}", 128, False),
        (1, "state[0]", "f32[4,8]{1,0}", 128, True),
    ]
    assert [(r.index, r.shape, r.bytes) for r in stage.results] == [
        ([0], "f32[4,8]{1,0}", 128),
        ([1], "s32[]", 4),
    ]
    assert (stage.results[0].source.file, stage.results[0].source.file_line) == ("model.py", 7)


def test_what_leaves_the_device(stage: StageInfo) -> None:
    assert [(t.name, t.count, t.bytes) for t in stage.collectives] == [("all-reduce-start", 1, 256)]
    assert [(t.name, t.count) for t in stage.host_transfers] == [("copy", 1), ("MoveToDevice", 1)]
    assert {t.name: (t.count, t.bytes) for t in stage.custom_calls} == {
        "my_kernel": (2, 512),
        "MoveToDevice": (1, 256),
    }
    assert stage.costs.unknown == 3


def test_memory_and_work(stage: StageInfo) -> None:
    assert (stage.memory.arguments, stage.memory.results, stage.memory.constants) == (256, 132, 4)
    assert stage.memory.allocated == 1000
    assert [b.source.instruction for b in stage.busiest][:2] == ["y", "start"]


@pytest.mark.parametrize(
    ("config", "bound", "iterations"),
    [
        ("", "constant(5)", 5),
        (', backend_config={"known_trip_count":{"n":"9"}}', "constant(5)", 9),
        ("", "copy(i)", 0),
        ("", 'custom-call(i), custom_call_target="f"', None),
    ],
)
def test_loops(config: str, bound: str, iterations: int | None) -> None:
    text = f"""HloModule m
body {{
  p = (s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[]) tuple(j)
}}
condition {{
  p = (s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] {bound}
  ROOT c = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  zero = s32[] constant(0)
  t = (s32[]) tuple(zero)
  ROOT w = (s32[]) while(t), condition=condition, body=body{config}
}}
"""
    stage = stage_info(parse_module(text), "", "")
    [loop] = stage.loops
    assert (loop.source.instruction, loop.iterations) == ("w", iterations)
    assert stage.costs.flops == 2
    assert stage.costs_with_loops.flops == 2 * (1 if iterations is None else iterations)


def test_a_dump_with_every_stage(corpus: Path) -> None:
    [task] = find_tasks([open_dump(corpus / "jax" / "model_fn")], None)
    module = inspect_module(task)
    assert (module.function, module.frontend, module.passes, len(module.labels)) == (
        "model_fn",
        "jax",
        20,
        22,
    )
    before, after = module.stages
    assert (before.label, after.label) == ("before_optimizations", "cpu_after_optimizations")
    assert (before.fusions, after.fusions) == (0, 1)
    assert before.memory.allocated is None
    assert after.memory.allocated == after.memory.peak == 1540
    assert module.kernels is None


def test_stages_by_pattern(corpus: Path) -> None:
    dump = open_dump(corpus / "jax" / "model_fn")
    [task] = find_tasks([dump], "model", ["*copy-insertion*"])
    labels = [stage.label for stage in inspect_module(task).stages]
    assert labels
    assert all("copy-insertion" in label for label in labels)
    with pytest.raises(UsageError, match=r"no stage matches --stages 'nothing'; there are: before"):
        find_tasks([dump], None, ["nothing"])
    with pytest.raises(UsageError, match=r"no module matches --only 'nothing'; there are: module_0000"):
        find_tasks([dump], "nothing")


def test_a_stage_that_cannot_be_read_costs_itself_only(tmp_path: Path) -> None:
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(
        PROGRAM.replace("ROOT r", "ROOT !"), encoding="utf-8"
    )
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(PROGRAM, encoding="utf-8")
    [task] = find_tasks([open_dump(tmp_path)], None)
    module = inspect_module(task)
    assert [stage.label for stage in module.stages] == ["cpu_after_optimizations"]
    [failure] = module.failures
    assert failure.file.endswith("before_optimizations.txt")
    assert failure.error.kind == "HloSyntaxError"
    assert module.program == ""


@pytest.mark.parametrize("name", ["unoptimized_snapshots", "unoptimized_snapshots_text"])
def test_captured_executions_hold_a_program(corpus: Path, name: str) -> None:
    [task] = find_tasks([open_dump(corpus / "jax" / name)], None, (), "sm_1")
    module = inspect_module(task)
    [stage] = module.stages
    assert stage.label == "unoptimized snapshot"
    assert stage.opcodes["multiply"] == 1
    assert (module.function, module.labels, module.failures) == ("model_fn", [], [])
    assert module.kernels is not None
    assert module.kernels.launches


def info(name: str, **fields: str) -> ModuleInfo:
    known = ModuleInfo(dump="d", name=name, function="f", frontend="jax", program="p", structure="s")
    return msgspec.structs.replace(known, **fields)


def test_compilations_of_a_function_are_counted_by_folder() -> None:
    modules = [
        info("one/module_0000.jit_f"),
        info("one/module_0001.jit_g", function="g"),
        info("one/module_0002.jit_f", program="q"),
        info("one/module_0003.jit_f"),
        info("two/module_0000.jit_f"),
        info("one/module_0000.jit_f", dump="e"),
    ]
    found = functions_of(modules)
    assert [(f.function, f.folder, f.compilations, f.programs, f.modules) for f in found] == [
        ("f", "d/one", 3, 2, [0, 2, 3]),
        ("g", "d/one", 1, 1, [1]),
        ("f", "d/two", 1, 1, [4]),
        ("f", "e/one", 1, 1, [5]),
    ]


def test_pytorch_calls_all_programs_alike() -> None:
    modules = [info("a", frontend="torch"), info("b", frontend="torch", structure="t")]
    assert [f.modules for f in functions_of(modules)] == [[0], [1]]


def test_real_recompilations(corpus: Path) -> None:
    tasks = find_tasks([open_dump(corpus / "tf" / "keras_fit")], None)
    [function] = functions_of([inspect_module(task) for task in tasks])
    assert (function.function, function.compilations, function.programs) == ("one_step_on_data", 2, 2)
