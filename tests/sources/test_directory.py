"""What `open_dump` makes of a folder: modules, the order of their stages, what belongs to what."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from support.dumps import Write, module_text

from hlotool.errors import DumpError
from hlotool.sources.directory import open_dump, open_dumps
from hlotool.sources.file_names import Format, Kind
from hlotool.sources.loading import load_stage


def test_stages_come_in_the_order_of_compilation(write: Write) -> None:
    root = write(
        "module_0002.jit_f.cpu_after_optimizations.txt",
        "module_0002.jit_f.0001.simplification.after_algsimp.before_dce.txt",
        "module_0002.jit_f.0000.simplification.after_pipeline-start.before_algsimp.txt",
        "module_0002.jit_f.10000.simplification.after_dce.before_cse.txt",
        "module_0002.jit_f.before_optimizations.txt",
    )
    [module] = open_dump(root).modules
    assert (module.number, module.name, module.title) == (2, "jit_f", "module_0002.jit_f")
    assert [stage.sequence for stage in module.stages] == [None, 0, 1, 10000, None]
    assert [stage.sequence for stage in module.passes] == [0, 1, 10000]
    assert module.before is module.stages[0]
    assert module.after is module.stages[-1]
    assert module.pair == (module.before, module.after)
    assert module.unpaired_reason == ""
    assert module.passes[1].after_pass == "algsimp"


def test_the_last_of_several_optimized_stages_is_compared(write: Write) -> None:
    root = write(
        "module_0002.jit_f.before_optimizations.txt",
        "module_0002.jit_f.after_optimizations_after_buffer_assignment.txt",
        "module_0002.jit_f.after_optimizations_before_buffer_assignment.txt",
        "module_0002.jit_f.after_optimizations.txt",
        "module_0002.jit_f.after_codegen.txt",
    )
    [module] = open_dump(root).modules
    assert [stage.label for stage in module.stages] == [
        "before_optimizations",
        "after_optimizations",
        "after_optimizations_before_buffer_assignment",
        "after_optimizations_after_buffer_assignment",
        "after_codegen",
    ]
    assert module.after is module.stages[-1]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (["module_0001.a.before_optimizations.txt"], "no *after_optimizations* file"),
        (["module_0001.a.cpu_after_optimizations.txt"], "no *before_optimizations* file"),
        (["module_0001.a/module.mlir"], "a single module"),
        (["module_0001.a.after_optimizations.txt", "module_0001.a.after_codegen.txt"], "no *before_opt"),
        (["module_0001.a.execution_0000.hlo_unoptimized_snapshot.pb"], "captured executions only"),
        (["module_0001.a.after_spmd_partitioner.txt"], "place in the compilation is unknown"),
        (["a.hlo"], "a single module"),
    ],
)
def test_unpaired_modules_are_kept_and_say_why(write: Write, files: list[str], reason: str) -> None:
    [module] = open_dump(write(*files)).modules
    assert module.pair is None
    assert reason in module.unpaired_reason


def test_passes_alone_make_a_pair(write: Write) -> None:
    root = write("module_0001.a.0000.p.after_x.before_y.txt", "module_0001.a.0001.p.after_y.before_z.txt")
    [module] = open_dump(root).modules
    assert module.pair == (module.stages[0], module.stages[1])


def test_one_number_under_two_names_folders_or_times_is_several_modules(write: Write) -> None:
    root = write(
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_g.before_optimizations.txt",
        "host1/module_0001.jit_f.before_optimizations.txt",
        "17952788.module_0001.jit_f.before_optimizations.txt",
    )
    titles = [module.title for module in open_dump(root).modules]
    assert titles == [
        "module_0001.jit_f",
        "module_0001.jit_g",
        "17952788.module_0001.jit_f",
        "host1/module_0001.jit_f",
    ]


def test_a_name_that_did_not_fit_is_read_from_the_module(write: Write) -> None:
    root = write(
        ("module_0003.jit_long.before_optimizations.txt", module_text("jit_long")),
        ("module_0003.0000.p.after_pipeline-start.before_dce.txt", module_text("jit_long")),
        ("module_0004.before_optimizations.txt", module_text("jit_other")),
    )
    first, second = open_dump(root).modules
    assert [stage.kind for stage in first.stages] == [Kind.BEFORE_OPTIMIZATIONS, Kind.PASS]
    assert second.name == "jit_other"


def test_text_and_proto_of_a_stage_are_one_stage(write: Write) -> None:
    root = write(
        "module_0001.a.before_optimizations.txt",
        ("module_0001.a.before_optimizations.hlo.pb", b"\x0a\x03\x0a\x01a"),
        ("module_0001.a.before_optimizations.hlo.pb.gz", b""),
        ("module_0001.a.cpu_after_optimizations.hlo.pb", b"\x0a\x03\x0a\x01a"),
    )
    dump = open_dump(root)
    [module] = dump.modules
    before, after = module.stages
    assert before.source.name.endswith(".txt")
    assert before.format is Format.TEXT
    assert before.proto is not None
    assert after.format is Format.PROTO
    assert any("before_optimizations.hlo.pb.gz: the same stage" in note for note in dump.notes)


def test_artefacts_go_to_their_module(write: Write) -> None:
    root = write(
        "module_0001.net.before_optimizations.txt",
        "module_0001.net.1.before_optimizations.txt",
        ("module_0001.net.1.multiply_fusion.2_kernel_module.ir-no-opt.ll", ""),
        ("module_0001.net.1.debug_options", ""),
        ("module_0001.net.debug_options", ""),
        ("module_0001.net/compile_options.textproto", ""),
        ("module_0009.gone.debug_options", ""),
        ("notes.md", ""),
    )
    dump = open_dump(root)
    artefacts = {m.name: [file.path for file in m.artefacts] for m in dump.modules}
    assert artefacts == {
        "net": ["module_0001.net.debug_options", "module_0001.net/compile_options.textproto"],
        "net.1": [
            "module_0001.net.1.debug_options",
            "module_0001.net.1.multiply_fusion.2_kernel_module.ir-no-opt.ll",
        ],
    }
    assert [file.path for file in dump.artefacts] == ["module_0009.gone.debug_options", "notes.md"]


def test_captures_and_stablehlo_have_no_timestamp_of_their_own(write: Write) -> None:
    root = write(
        "jit_f/host/17.module_0001.jit_f.before_optimizations.txt",
        ("jit_f/host/module_0001.jit_f.snapshot.-5.pb", b""),
        ("module_0001.jit_f/module.mlir", ""),
    )
    [module] = open_dump(root).modules
    assert module.timestamp == 17
    assert [capture.kind for capture in module.captures] == [Kind.SNAPSHOT]
    assert module.stablehlo is not None


def test_stablehlo_that_two_compilations_could_claim_serves_neither(write: Write) -> None:
    root = write(
        "17.module_0001.jit_f.before_optimizations.txt",
        "18.module_0001.jit_f.before_optimizations.txt",
        ("module_0001.jit_f/module.mlir", ""),
    )
    dump = open_dump(root)
    assert [module.stablehlo for module in dump.modules] == [None, None]
    assert any("may belong to several modules" in note for note in dump.notes)


def test_an_unknown_suffix_is_a_named_stage_if_the_content_is_hlo(write: Write) -> None:
    root = write(
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.stage.of_the_future.txt",
        ("module_0001.jit_f.report.txt", "Total bytes used: 12\n"),
    )
    [module] = open_dump(root).modules
    assert [(stage.kind, stage.label) for stage in module.others] == [(Kind.NAMED, "stage.of_the_future")]
    assert [file.name.text for file in module.artefacts] == ["module_0001.jit_f.report.txt"]


def test_extracted_fusions_stand_beside_the_order(write: Write) -> None:
    root = write(
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.gemm_fusion_0.gemm_fusion_dot.txt",
    )
    [module] = open_dump(root).modules
    assert [stage.kind for stage in module.others] == [Kind.FUSION]
    assert len(module.stages) == 1


def test_plain_files_are_modules_by_their_path(write: Write) -> None:
    root = write(
        "a/conv.hlo", "b/conv.hlo", ("b/pair.txt", module_text("x") + "// -----\n" + module_text("y"))
    )
    dump = open_dump(root)
    assert [module.title for module in dump.modules] == [
        "a/conv.hlo",
        "b/conv.hlo",
        "b/pair.txt#1",
        "b/pair.txt#2",
    ]
    assert [module.name for module in dump.modules] == ["jit_f", "jit_f", "x", "y"]
    assert "HloModule y" in dump.modules[-1].stages[0].source.read_text()
    assert "HloModule x" not in dump.modules[-1].stages[0].source.read_text()


def test_one_file_of_a_dump_brings_what_can_fill_in_its_constants(write: Write) -> None:
    root = write(
        "module_0001.jit_f.before_optimizations.txt",
        "module_0001.jit_f.0000.p.after_pipeline-start.before_dce.txt",
        "module_0001.jit_f.cpu_after_optimizations.txt",
        ("module_0001.jit_f.cpu_after_optimizations.hlo.pb", b""),
        ("module_0001.jit_f/module.mlir", ""),
        "module_0002.jit_f.before_optimizations.txt",
    )
    [module] = open_dump(root / "module_0001.jit_f.cpu_after_optimizations.txt").modules
    [stage] = module.stages
    assert stage.text is not None
    assert stage.proto is not None
    assert [s.kind for s in module.companions] == [Kind.BEFORE_OPTIMIZATIONS, Kind.PASS]
    assert module.stablehlo is not None


def test_records_travel_to_worker_processes(write: Write) -> None:
    dump = open_dump(write("module_0001.jit_f.before_optimizations.txt"))
    again = pickle.loads(pickle.dumps(dump))
    assert again == dump
    assert again.modules[0].stages[0].source.read_text() == module_text()


def test_any_file_is_judged_by_its_content_when_it_is_named(write: Write) -> None:
    root = write(("report.html", module_text()), ("weird", b"\x0a\x05\x0a\x03abc\x00"))
    [module] = open_dump(root / "report.html").modules
    assert module.stages[0].kind is Kind.PLAIN
    [module] = open_dump(root / "weird").modules
    assert module.stages[0].format is Format.PROTO


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], 'empty; a dump is written with XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text"'),
        ([("a.ll", ""), ("b.ll", ""), ("c.o", "")], "no HLO among 3 files (2 .ll, 1 .o); a usable dump"),
        ([("a.npz", "PK"), ("b.npy", "\x93")], "(1 .npz, 1 .npy); hlotool diff A B compares arrays"),
    ],
)
def test_a_folder_without_hlo_says_what_it_holds(
    write: Write, items: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(DumpError) as caught:
        open_dump(write(*items))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"Traceback (most recent call last):\n", b"\x00\x01\x02\xff" * 50, b"\x7fELF"]
)
def test_a_file_that_is_no_hlo_is_refused(write: Write, content: bytes) -> None:
    root = write(("x.bin", content))
    with pytest.raises(DumpError, match=r"x\.bin: not HLO"):
        open_dump(root / "x.bin")


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="nowhere: no such file or directory"):
        open_dump(tmp_path / "nowhere")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DumpError, match="neither a file nor a directory"):
        open_dump(tmp_path / "pipe")


def test_links_do_not_lead_astray(write: Write) -> None:
    root = write("sub/module_0001.jit_f.before_optimizations.txt")
    (root / "sub" / "loop").symlink_to(root)
    os.mkfifo(root / "sub" / "pipe")
    (root / "sub" / "dangling.txt").symlink_to(root / "gone")
    dump = open_dump(root)
    assert [module.title for module in dump.modules] == ["sub/module_0001.jit_f"]
    assert sum("not a regular file" in note for note in dump.notes) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied_is_one_line(write: Write) -> None:
    root = write("a.hlo", "closed/b.hlo")
    (root / "closed").chmod(0)
    (root / "a.hlo").chmod(0)
    try:
        with pytest.raises(DumpError, match="permission denied"):
            open_dump(root / "a.hlo")
        with pytest.raises(DumpError, match="permission denied"):
            open_dump(root / "closed")
    finally:
        (root / "closed").chmod(0o700)


def test_an_unreadable_file_loses_nothing_of_the_rest(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write("a.hlo", "b.hlo", "b.txt")
    original = open

    def refusing(path: object, *arguments: object, **options: object) -> object:
        if str(path).endswith(("b.hlo", "b.txt")):
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", refusing)
    dump = open_dump(root)
    # Its name says that it is a program, so that it is missed.
    assert [module.title for module in dump.modules] == ["a.hlo", "b.hlo"]
    [stage] = dump.modules[1].stages
    with pytest.raises(DumpError, match=r"b\.hlo: cannot be read: permission denied"):
        load_stage(dump.modules[1], stage)
    assert dump.notes == (f"{root / 'b.txt'}: cannot be read: permission denied",)


def test_the_corpus_opens_completely(corpus: Path) -> None:
    dump = open_dump(corpus / "jax")
    titles = [module.title for module in dump.modules]
    assert len(titles) == len(set(titles))
    assert any(title.startswith("archive_tar/collatz.tar.gz/") for title in titles)
    assert any(title.startswith("stdout_log/stdout.log/") for title in titles)
    unpaired = {m.title for m in dump.modules if not m.pair and not m.captures}
    assert unpaired == {"unpaired/module_0004.jit_recompiled_on_launch"}


def test_what_lies_beside_the_dump_of_a_process_is_none(tmp_path: Path) -> None:
    """`hlotool run KEPT/process_*`, where `exec` has written what it knows of the process."""
    folder = tmp_path / "process_12"
    folder.mkdir()
    (folder / "m.hlo").write_text("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }", encoding="utf-8")
    (tmp_path / "process_12.json").write_text("{}", encoding="utf-8")
    (tmp_path / "process_12.executions").write_text("", encoding="utf-8")
    dumps = open_dumps([str(path) for path in sorted(tmp_path.iterdir())])
    assert [dump.path for dump in dumps] == [str(folder)]
    with pytest.raises(DumpError):
        open_dumps([str(tmp_path / "process_12.json")])
