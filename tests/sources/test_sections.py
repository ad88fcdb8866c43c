"""Texts that hold several modules: logs, separators, headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.budget import processor_budget
from support.dumps import Write, module_text

from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Kind
from hlotool.sources.sections import looks_like_hlo, split_modules
from hlotool.sources.stages import read_stage


def block(name: str, content: str) -> str:
    """As XLA prints it without --xla_dump_to."""
    return f"*** Begin {name} ***\n{content}\n*** End {name} ***\n"


BEFORE = "module_0002.jit_f.before_optimizations.txt"
AFTER = "module_0002.jit_f.cpu_after_optimizations.txt"


def test_a_log_holds_a_dump(write: Write) -> None:
    log = "Epoch 1\n" + block(BEFORE, module_text()) + "loss 0.5\n" + block(AFTER, module_text(opcode="abs"))
    log += block("module_0002.jit_f.multiply_fusion.ir-no-opt.ll", "; ModuleID")
    root = write(("train.log", log))
    for path, folder in ((root / "train.log", ""), (root, "train.log/")):
        [module] = open_dump(path).modules
        assert module.title == f"{folder}module_0002.jit_f"
        assert module.pair is not None
        assert module.pair[0].source.read_text().strip() == module_text().strip()
        assert module.pair[1].source.read_text().strip() == module_text(opcode="abs").strip()
        assert len(module.artefacts) == 1


def test_lines_of_stderr_amid_a_block_are_left_out(write: Write) -> None:
    lines = module_text().splitlines(keepends=True)
    lines.insert(3, "E1121 16:33:29.091328    3952 dump.cc:223] Refusing to write x.o to stdout.\n")
    root = write(("log.txt", block(BEFORE, "".join(lines))))
    [module] = open_dump(root).modules
    assert module.stages[0].source.read_text().strip() == module_text().strip()


def test_a_log_that_ends_early_says_so(write: Write) -> None:
    log = block(BEFORE, module_text()) + f"*** Begin {AFTER} ***\nHloModule jit_f\n\nENTRY %main"
    dump = open_dump(write(("log.txt", log)))
    assert any(note.endswith(f"the log ends within {AFTER}") for note in dump.notes)


def test_a_name_that_comes_again_belongs_to_another_run(write: Write) -> None:
    first = block(BEFORE, module_text()) + block(AFTER, module_text())
    second = block(BEFORE, module_text(opcode="abs")) + block(AFTER, module_text(opcode="abs"))
    dump = open_dump(write(("log.txt", first + second)))
    assert [module.title for module in dump.modules] == [
        "log.txt/module_0002.jit_f",
        "log.txt/run 2/module_0002.jit_f",
    ]
    for module, opcode in zip(dump.modules, ("negate", "abs"), strict=True):
        assert [opcode in stage.source.read_text() for stage in module.stages] == [True, True]


def test_a_log_of_windows_line_ends(write: Write) -> None:
    log = (block(BEFORE, module_text()) + block(AFTER, module_text())).replace("\n", "\r\n")
    [module] = open_dump(write(("log.txt", log))).modules
    assert module.pair is not None


def test_graphs_that_torch_xla_saves(write: Write) -> None:
    graphs = "".join(
        f"[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  step (train.py:{n})\n\nHashes: (ab{n})\n\n"
        f"## BEGIN_GRAPH\n{module_text(f'IrToHlo.{n}')}\n\n## END_GRAPH\n\n"
        for n in (3, 5)
    )
    dump = open_dump(write(("save.hlo", graphs)))
    assert [module.name for module in dump.modules] == ["IrToHlo.3", "IrToHlo.5"]
    assert "END_GRAPH" not in dump.modules[0].stages[0].source.read_text()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (module_text("a"), ["a"]),
        (module_text("a") + "\n// -----\n" + module_text("b"), ["a", "b"]),
        (
            "// RUN: hlo-opt %s\n" + module_text("a") + "// ----- next\n\n// -----\n" + module_text("b"),
            ["a", "b"],
        ),
        (module_text("a") + module_text("b") + module_text("c"), ["a", "b", "c"]),
        ("ENTRY main {\n  ROOT x = f32[2] parameter(0)\n}\n", [""]),
        ("// -----\n// nothing here\n", []),
        ("", []),
    ],
)
def test_modules_are_separated(text: str, names: list[str]) -> None:
    parts = split_modules(text.encode())
    found = [text.encode()[part.start : part.end] for part in parts]
    assert len(found) == len(names)
    for part, name in zip(found, names, strict=True):
        assert f"HloModule {name}".encode() in part or not name
        assert part.count(b"HloModule ") <= 1


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m",
        "ENTRY %main.7 (x.1: f32[4,64]) -> f32[] {",
        "ENTRY {",
        "  %y = f32[2]{0} negate(%x)",
        "ROOT t = (f32[], s32[2]) tuple(a, b)",
    ],
)
def test_lines_of_hlo(text: str) -> None:
    assert looks_like_hlo(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "Total bytes used: 1.2MiB",
        "BufferAssignment:\nallocation 0: size 8, parameter 0",
        "#loc = loc(unknown)\nmodule @jit_f {\n  func.func public @main(%arg0: tensor<f32>)",
        "define internal float @f(ptr %x) {",
        "HloModuleProto is a message",
        "ENTRYPOINT [python]",
        "x = f(y)",
    ],
)
def test_lines_of_something_else(text: str) -> None:
    assert not looks_like_hlo(text.encode())


def test_reading_many_parts_reads_the_file_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(("many.hlo", "// -----\n".join(module_text(f"m{i}") for i in range(50))))
    modules = open_dump(root).modules
    opened: list[object] = []
    original = open

    def counting(path: object, *arguments: object, **options: object) -> object:
        opened.append(path)
        return original(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", counting)
    names = [module.stages[0].source.read_text().split(",")[0].split()[1] for module in modules]
    assert sorted(names) == sorted(f"m{i}" for i in range(50))
    assert len(opened) <= 1


def test_a_text_proto_snapshot_is_recognised_by_its_content(write: Write) -> None:
    root = write(("capture.txt", 'hlo_module {\n  name: "jit_f"\n}\n'))
    [module] = open_dump(root).modules
    assert [capture.kind for capture in module.captures] == [Kind.UNOPTIMIZED_SNAPSHOT]


@pytest.mark.parametrize("blank", ["\n", " \n", "\r\n", "\t"])
@pytest.mark.parametrize("place", range(4))
def test_blank_lines_cost_nothing(tmp_path: Path, blank: str, place: int) -> None:
    """24,000 of them took a minute of processor time when each was the start of a search."""
    parts = ["HloModule m\n\n", "ENTRY e {\n", "  ROOT p = f32[] parameter(0)\n}\n"]
    parts.insert(place, blank * 24_000)
    path = tmp_path / "blank.hlo"
    path.write_text("".join(parts), encoding="utf-8", newline="")
    with processor_budget(2):
        (module,) = open_dump(path).modules
        assert read_stage((*module.stages, *module.others)[0]).entry.root.name == "p"
