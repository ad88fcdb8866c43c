"""One program under two numbers, as libtpu dumps it: file names and texts of libtpu 0.0.42, shortened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.dumps import Write

from hlotool.blame.bisection.directory import _gaps
from hlotool.judge.verdicts import Verdict
from hlotool.parser.proto.module import write_module_proto
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task, select_stages
from hlotool.sources.directory import open_dump, open_dumps
from hlotool.sources.records import Dump, DumpModule

CL = "cl_932483720"
BEFORE = """HloModule jit_f, entry_computation_layout={(c64[4]{0:T(128)})->c64[4]{0:T(128)}}

ENTRY %main.1 (x.1: c64[4]) -> c64[4] {
  %x.1 = c64[4]{0} parameter(0)
  %real.1 = f32[4]{0} real(%x.1)
  %imag.1 = f32[4]{0} imag(%x.1)
  %neg.1 = f32[4]{0} negate(%imag.1)
  ROOT %complex.1 = c64[4]{0} complex(%real.1, %neg.1)
}
"""
AFTER = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(c64[4]{0:T(128)})->c64[4]{0:T(128)}}

ENTRY %main.1 (x.1: c64[4]) -> c64[4] {
  %x.1 = c64[4]{0:T(128)} parameter(0)
  %custom-call.1 = f32[4]{0:T(128)S(1)} custom-call(%x.1), custom_call_target="X64SplitHigh"
  %neg.1 = f32[4]{0:T(128)S(1)} negate(%custom-call.1)
  %custom-call = f32[4]{0:T(128)S(1)} custom-call(%x.1), custom_call_target="X64SplitLow"
  ROOT %custom-call.2 = c64[4]{0:T(128)} custom-call(%custom-call, %neg.1), custom_call_target="X64Combine"
}
"""
WRONG = AFTER.replace("negate(%custom", "copy(%custom")
FIRST_PASSES = (
    "0000.hlo_device_type_async_wrapper.after_pipeline-start.before_add-random-host-offloading",
    "0001.Before_X64_rewriter.after_pipeline-start.before_topk-decomposer",
    "0002.X64_elimination.after_pipeline-start.before_bitcast_dtypes_expander",
)
LATER_PASSES = (
    "0000.X64_elimination.after_xprecision-rewriter.before_comparison-expander",
    "0001.Phase_1_pre-layout_assignment_passes.after_pipeline-start.before_tpu-embedding-thread-annotator",
)
LAST = (
    "after_optimizations_before_buffer_assignment",
    "after_optimizations",
    "after_optimizations_after_buffer_assignment",
    "after_codegen",
)


def first(
    number: int, text: str = BEFORE, passes: Sequence[str] = (), name: str = f"jit_f.{CL}"
) -> list[tuple[str, str]]:
    return [(f"module_{number:04d}.{name}.{stage}.txt", text) for stage in ("before_optimizations", *passes)]


def second(
    number: int, text: str = AFTER, passes: Sequence[str] = (), name: str = f"jit_f.{CL}"
) -> list[tuple[str, str]]:
    return [(f"module_{number:04d}.{name}.{stage}.txt", text) for stage in (*passes, *LAST)]


def rows(dump: Dump) -> list[tuple[str, Verdict, str]]:
    found = [(m, replay_module(Task(m, ReplayOptions()))) for m in dump.modules]
    return [(m.title, row.verdict, row.stage_tested) for m, [row] in found]


def test_before_optimizations_is_compared_with_the_last_stage(write: Write) -> None:
    dump = open_dump(write(*first(0), *second(3)))
    assert rows(dump) == [("module_0000.jit_f", Verdict.IDENTICAL, "after_codegen")]
    assert dump.notes == ()


def test_what_is_wrong_after_the_number_changed_shows(write: Write) -> None:
    root = write(*first(0, passes=FIRST_PASSES), *second(3, WRONG, LATER_PASSES))
    assert rows(open_dump(root)) == [("module_0000.jit_f", Verdict.WRONG, "after_codegen")]


def test_stages_keep_the_order_of_compilation(write: Write) -> None:
    [module] = open_dump(write(*first(0, passes=FIRST_PASSES), *second(3, passes=LATER_PASSES))).modules
    assert [stage.sequence for stage in module.stages] == [None, 0, 1, 2, 0, 1, *[None] * 4]
    assert [stage.pipeline for stage in module.passes][2:4] == ["X64_elimination"] * 2
    assert module.stages[-1].label == "after_codegen"


def test_programs_of_one_name_one_after_the_other(write: Write) -> None:
    """The second one triples: to exchange the two would be wrong twice."""
    tripled = BEFORE.replace("complex(%real.1, %neg.1)", "complex(%neg.1, %real.1)")
    after = AFTER.replace("(%custom-call, %neg.1)", "(%neg.1, %custom-call)")
    dump = open_dump(write(*first(0), *second(3), *first(12, tripled), *second(15, after)))
    assert [row[:2] for row in rows(dump)] == [
        ("module_0000.jit_f", Verdict.IDENTICAL),
        ("module_0012.jit_f", Verdict.IDENTICAL),
    ]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([*first(0), *first(1), *second(4), *second(5)], id="compiled at the same time"),
        pytest.param([*first(0), *first(12), *second(15)], id="the first compilation failed"),
        pytest.param([*first(0), *second(3), *second(15)], id="a beginning is missing"),
    ],
)
def test_where_several_fit_nothing_is_compared(write: Write, files: list[tuple[str, str]]) -> None:
    dump = open_dump(write(*files))
    assert len(dump.modules) > 2
    assert {verdict for _, verdict, _ in rows(dump)} == {Verdict.NOT_COMPARED}
    [note] = dump.notes
    assert note.startswith(", ".join(module.title for module in dump.modules))
    assert "which belong together is not certain" in note
    assert all("changed its number" in module.unpaired_reason for module in dump.modules)


NARROW = BEFORE.replace("c64[4]", "f32[4]")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(first(3), second(0), id="in the wrong order"),
        pytest.param(first(0), second(3, name=f"jit_g.{CL}"), id="another name"),
        pytest.param(first(0), second(3, name="jit_f.cl_763908408"), id="another compiler"),
        pytest.param(first(0), second(3, AFTER.replace("[4]", "[5]")), id="other arguments"),
        pytest.param(first(0, NARROW), second(3, AFTER.replace("c64", "f32")), id="nothing to eliminate"),
        pytest.param(
            first(0, passes=(*FIRST_PASSES, LATER_PASSES[1])),
            second(3, passes=LATER_PASSES),
            id="the same passes",
        ),
        pytest.param(
            first(0, NARROW, FIRST_PASSES),
            second(3, AFTER.replace("c64", "f32"), ("0000.X64_elimination.after_pipeline-start.before_cse",)),
            id="passes from the start",
        ),
        pytest.param(
            first(0),
            [("module_0003.jit_f.cpu_after_optimizations.txt", AFTER)],
            id="a CPU's",
        ),
        pytest.param(first(0), [(f"host/{name}", text) for name, text in second(3)], id="another folder"),
    ],
)
def test_distinct_programs_stay_apart(
    write: Write, one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    modules = open_dump(write(*one, *other)).modules
    assert len(modules) == 2
    assert not any(module.incomplete for module in modules)


def test_a_pipeline_that_goes_on_is_evidence_enough(write: Write) -> None:
    """Whatever may be the reason for a new number."""
    after = AFTER.replace("c64", "f32")
    [module] = open_dump(write(*first(0, NARROW, FIRST_PASSES), *second(3, after, LATER_PASSES))).modules
    assert module.pair == (module.stages[0], module.stages[-1])


def test_dimensions_may_be_partitioned_in_between(write: Write) -> None:
    before = BEFORE.replace("jit_f,", "jit_f, num_partitions=2,").replace("[4]", "[8]")
    assert len(open_dump(write(*first(0, before), *second(3))).modules) == 1


def test_protos_alone(write: Write) -> None:
    root = write(
        (f"module_0000.jit_f.{CL}.before_optimizations.hlo.pb", write_module_proto(parse_module(BEFORE))),
        (f"module_0003.jit_f.{CL}.after_codegen.hlo.pb", write_module_proto(parse_module(AFTER))),
    )
    assert [row[:2] for row in rows(open_dump(root))] == [("module_0000.jit_f", Verdict.IDENTICAL)]


def test_what_lies_beside_comes_along(write: Write) -> None:
    [module] = open_dump(
        write(
            *first(0),
            *second(3),
            (f"module_0000.jit_f.{CL}/module.mlir", "module @jit_f {\n}\n"),
            (f"module_0000.jit_f.{CL}/topology.textproto", "x: 1\n"),
            (f"module_0000.jit_f.{CL}.tpu_comp_env.txt", "x\n"),
            (f"module_0003.jit_f.{CL}.transfer_stats.txt", "x\n"),
        )
    ).modules
    assert module.stablehlo is not None
    assert [file.name.text for file in module.artefacts] == [
        f"module_0000.jit_f.{CL}.tpu_comp_env.txt",
        "topology.textproto",
        f"module_0003.jit_f.{CL}.transfer_stats.txt",
    ]


def test_a_file_of_the_second_number_finds_the_program(write: Write) -> None:
    """What it was before can fill in its constants."""
    root = write(*first(0), *second(3))
    [module] = open_dump(root / f"module_0003.jit_f.{CL}.after_codegen.txt").modules
    assert [stage.label for stage in module.stages] == ["after_codegen"]
    assert "before_optimizations" in [stage.label for stage in module.companions]


def test_compilers_of_two_ages_in_one_folder(write: Write) -> None:
    programs = [*first(0), *second(0), *first(0, name="jit_f.cl_1"), *second(0, name="jit_f.cl_1")]
    beside = [("module_0000.jit_f.cl_1.debug_options", ""), (f"module_0000.jit_f.{CL}/module.mlir", "")]
    dump = open_dump(write(*programs, *beside))
    one, other = dump.modules
    assert (one.title, other.title) == ("module_0000.jit_f.cl_1", f"module_0000.jit_f.{CL}")
    assert [file.name.text for file in one.artefacts] == ["module_0000.jit_f.cl_1.debug_options"]
    assert one.stablehlo is None
    assert other.stablehlo is not None
    assert all(module.pair is not None for module in dump.modules)


def test_stages_after_optimization_alone_prove_nothing(write: Write) -> None:
    [module] = open_dump(write(*second(3))).modules
    assert select_stages(module).tested == ()
    assert "no *before_optimizations* file" in module.unpaired_reason


def _with_stablehlo(module: DumpModule) -> bool:
    return module.stablehlo is not None


@pytest.mark.parametrize(
    ("folders", "has"),
    [
        (["jit_f_1795895038816"], True),
        (["jit_f_1795895038816", "jit_f_1795895340298"], False),
        (["jit_g_1795895038816"], False),
        (["module_1795895038816"], False),
    ],
)
def test_folders_of_jaxlib_0_8_are_no_modules(write: Write, folders: list[str], has: bool) -> None:
    """`NAME_MILLISECONDS`, where a nameless program is called module."""
    inside = ("module.mlir", "compile_options.pb", "topology.pb")
    files = [(f"{folder}/{name}", "module @m {\n}\n") for folder in folders for name in inside]
    dump = open_dump(
        write(
            ("module_0001.jit_f.before_optimizations.txt", BEFORE),
            ("module_0001.jit_f.cpu_after_optimizations.txt", BEFORE),
            *files,
        )
    )
    assert [module.title for module in dump.modules] == ["module_0001.jit_f"]
    assert _with_stablehlo(dump.modules[0]) is has


@pytest.mark.parametrize("folder", ["jit_f_1795895038816", "module_0001.jit_f", f"module_0001.jit_f.{CL}"])
def test_what_a_shell_lists_is_the_same_dump(write: Write, folder: str) -> None:
    names = ("before_optimizations", "cpu_after_optimizations")
    change = f".{CL}" if folder.endswith(CL) else ""
    files = [(f"module_0001.jit_f{change}.{name}.txt", BEFORE) for name in names]
    root = write(*files, (f"{folder}/module.mlir", "module @jit_f {\n}\n"))
    [dump] = open_dumps(sorted(map(str, root.iterdir())))
    assert [module.title for module in dump.modules] == ["module_0001.jit_f"]
    assert _with_stablehlo(dump.modules[0])


def test_a_renumbered_program_has_its_stablehlo(write: Write) -> None:
    """As jaxlib 0.7 to 0.9 writes it with a libtpu of its time."""
    [module] = open_dump(write(*first(1), *second(3), ("jit_f_1795895038816/module.mlir", ""))).modules
    assert _with_stablehlo(module)


def test_a_time_does_not_tell_which_of_several_modules(write: Write, tmp_path: Path) -> None:
    names = [f"module_000{n}.jit_f.before_optimizations.txt" for n in (1, 3)]
    root = write(*((name, BEFORE) for name in names), ("jit_f_1795895038816/module.mlir", "module {\n}\n"))
    assert [_with_stablehlo(module) for module in open_dump(root).modules] == [False, False]
    [module] = open_dump(root / names[0]).modules
    assert not _with_stablehlo(module)


def test_passes_are_counted_anew_after_the_number_changed(write: Write) -> None:
    """What is missing is said of either part."""
    passes = (FIRST_PASSES[0], FIRST_PASSES[2]), (LATER_PASSES[0], LATER_PASSES[1].replace("0001", "0003"))
    root = write(*first(0, passes=passes[0]), *second(3, passes=passes[1]))
    [module] = open_dump(root).modules
    missing = _gaps(Task(module, ReplayOptions()))
    assert missing == [f"{number:04d}: not in the dump" for number in (1, 1, 2)]
