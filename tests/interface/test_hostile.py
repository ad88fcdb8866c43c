"""Files that are damaged or mean harm: one line that names them, never a traceback, and nothing is obeyed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.budget import processor_budget

from hlotool.blame.repro.bundle import FACTS, PROGRAM, read_bundle
from hlotool.errors import DumpError, HloSyntaxError, InputDataError, InputError, ProtoError
from hlotool.inputs.given import read_all
from hlotool.interface.cli.main import main
from hlotool.ir.arrays import Array
from hlotool.ir.walk import DEEPEST_CALLS
from hlotool.parser.mlir_constants import read_mlir_constants
from hlotool.parser.proto.module import parse_module_proto, write_module_proto
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

_PROGRAM = """HloModule {name}
ENTRY e {{
  p = f32[4] parameter(0)
  ROOT r = f32[4] {opcode}(p, p), metadata={{op_name="jit(f)/\x1b[31mred\x1b]0;t\x07" source_file="/x/\x9b2J\u202e.py" source_line=3}}
}}
"""  # noqa: E501


def _nested(depth: int) -> str:
    text = "HloModule deep\n"
    for level in range(depth):
        body = "add(p, p)" if level == 0 else f"call(p), to_apply=level{level - 1}"
        entry = "ENTRY " if level == depth - 1 else ""
        text += f"{entry}level{level} {{\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] {body}\n}}\n"
    return text


def test_calls_that_nest_too_deep_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HloSyntaxError, match="nest more than 100 deep"):
        parse_module(_nested(DEEPEST_CALLS + 1))
    module = parse_module(_nested(DEEPEST_CALLS))
    monkeypatch.setattr("hlotool.ir.walk.DEEPEST_CALLS", 50)
    with pytest.raises(ProtoError, match="nest more than 50 deep"):
        parse_module_proto(write_module_proto(module))


@pytest.mark.parametrize("command", [["run"], ["check"], ["inspect"], ["opt", "--passes", "inline"]])
def test_what_is_not_refused_works(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "deep.hlo").write_text(_nested(DEEPEST_CALLS))
    assert main([*command, str(tmp_path / "deep.hlo")]) in (0, 3)  # 3: run has nothing to compare it with


@pytest.mark.parametrize(
    "text",
    [
        "a" * 60_000 + " $",
        "HloModule m\nENTRY e {\n ROOT p = f32[] " + "a" * 60_000 + "(0) }",
        "HloModule m\nENTRY e {\n ROOT p = " + "f" * 60_000 + "[3] parameter(0) }",
        "HloModule m\nENTRY e {\n ROOT p = f32[] parameter(0), " + "f" * 60_000 + " = 3 }",
    ],
)
def test_a_long_word_costs_no_time_and_is_not_repeated(text: str) -> None:
    # 18 seconds when every character was a start of the search.
    with processor_budget(2), pytest.raises(HloSyntaxError) as found:
        parse_module(text)
    assert len(str(found.value)) < 200


@pytest.mark.parametrize("command", [["run", "--verbose"], ["inspect"], ["diff"], ["check"]])
def test_names_cannot_command_the_terminal(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for stage, opcode in (("before_optimizations", "add"), ("cpu_after_optimizations", "subtract")):
        path = tmp_path / f"module_0000.a.{stage}.txt"
        path.write_text(_PROGRAM.format(name="a", opcode=opcode))
    paths = sorted(tmp_path.iterdir()) if command == ["diff"] else [tmp_path]
    main([*command, *map(str, paths)])
    written = capsys.readouterr()
    assert all(c.isprintable() or c == "\n" for c in written.out + written.err)
    assert command == ["check"] or r"\x9b2J\u202e.py" in written.out


def test_nor_can_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path / "a\x1b[31m.hlo")]) == 2
    assert r"a\x1b[31m.hlo" in capsys.readouterr().err


def _archive(content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("module_0000.f.before_optimizations.txt", content)
    return target.getvalue()


@pytest.mark.parametrize("at", [60, 75, 90, 120])
def test_a_damaged_member_of_a_zip(at: int, tmp_path: Path) -> None:
    archive = bytearray(_archive(np.random.default_rng(0).bytes(50) + _PROGRAM.encode() * 3))
    archive[at : at + 8] = b"\xff" * 8
    (tmp_path / "x.zip").write_bytes(archive)
    with pytest.raises(InputError, match=r"x\.zip"):
        _load(tmp_path / "x.zip")


#: Fields of an entry of a zip's directory, by position, and what the standard library does not expect there.
_OF_A_DIRECTORY = {
    "a version that is to come": {6: b"\x77"},
    "a name that is no UTF-8": {9: b"\x08", 46: b"\xff"},
    "an empty name before a comment": {28: b"\0", 32: b"\x26"},
}


@pytest.mark.parametrize("field", _OF_A_DIRECTORY)
def test_a_damaged_directory_of_a_zip(field: str, tmp_path: Path) -> None:
    archive = bytearray(_archive(_PROGRAM.encode()))
    for offset, value in _OF_A_DIRECTORY[field].items():
        at = archive.index(b"PK\x01\x02") + offset
        archive[at : at + len(value)] = value
    (tmp_path / "x.zip").write_bytes(archive)
    with pytest.raises(InputError, match=r"x\.zip"):
        _load(tmp_path / "x.zip")


def _load(path: Path) -> None:
    for module in open_dump(path).modules:
        for stage in module.stages:
            load_stage(module, stage)


def _npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize(
    "content",
    [
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n"),  # MemoryError
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n"),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2\n"),  # TokenError
        _npy("{'descr': '<f4' 'fortran_order'\n"),  # SyntaxError
        _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n") + b"\x80\x04N.",  # a pickle
        b"PK\x03\x04" + b"\0" * 40,
        b"",
    ],
)
def test_files_of_arrays_that_cannot_be_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InputDataError, match=r"x\.npz"):
        read_all(str(path))


def test_a_pipe_is_no_file_of_arrays(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="not a file"):
        read_all("/dev/null")


@pytest.mark.parametrize(
    "line",
    [
        '%c = stablehlo.constant dense<"0x00zz"> : tensor<1xi16>',
        "%c = stablehlo.constant dense<99999999999999999999999> : tensor<2xi32>",
        "%c = stablehlo.constant dense<1.0> : tensor<9223372036854775807xf32>",
        "%c = stablehlo.constant > : tensor<1xf32> dense<1.0",
    ],
)
def test_constants_that_mlir_does_not_write(line: str) -> None:
    with pytest.raises(InputError, match="MLIR"):
        _values(line)


def _values(text: str) -> list[Array | None]:
    program = read_mlir_constants(text)
    return [program.values(constant) for constant in program.constants]


def test_operations_that_mlir_does_not_write_are_not_understood() -> None:
    one, compared = _values(
        "%a = stablehlo.constant dense<1> : tensor<2xi32>\n"
        "%b = stablehlo.compare LT, %a, SIGNED : (tensor<2xi32>) -> tensor<2xi1>\n"
    )
    assert one is not None
    assert compared is None
    assert _values(
        "%p = stablehlo.constant dense<true> : tensor<2xi1>\n"
        "%s = stablehlo.select %p : tensor<2xi1>, tensor<2xi1>\n"
    )[1:] == [None]


@pytest.mark.parametrize(
    "facts",
    [
        b'kind = "pass"\ntitle = "\xff"\n',
        b'kind = "pass"\nfailure = 3\n',
        b'kind = "pass"\n[failure]\nverdict = [1]\n',
        b'kind = "pass"\n[run]\nbackend = 3\n',
        b'kind = "other"\n',
        b"kind = \n",
    ],
)
def test_facts_of_a_bundle_that_are_of_other_types(facts: bytes, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(_PROGRAM.format(name="a", opcode="add"))
    (tmp_path / FACTS).write_bytes(facts)
    with pytest.raises(DumpError, match=tmp_path.name):
        read_bundle(tmp_path)


def test_names_cannot_command_who_reads_lines(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for stage, opcode in (("before_optimizations", "add"), ("cpu_after_optimizations", "subtract")):
        path = tmp_path / f"module_0000.a\x1b[2J\x07\u202eb\u200f.{stage}.txt"
        path.write_text(_PROGRAM.format(name="a", opcode=opcode))
    for form in ("csv", "jsonl", "json"):
        main(["run", str(tmp_path), "--format", form])
        text = capsysbinary.readouterr().out.decode()
        assert all(c.isprintable() or c in "\r\n" for c in text), form
        if form != "csv":
            assert json.loads(text.splitlines()[-1])  # what is escaped reads back as it was
            assert r"\u202e" in text


@pytest.mark.parametrize(
    ("header", "groups", "why"),
    [
        (
            "",
            "use_global_device_ids=true, replica_groups=[1000000,1000000]<=[1000000000000]",
            "are not listed",
        ),
        ("num_partitions=1000000000, replica_count=1000000000", "replica_groups={}", "at most are simulated"),
    ],
)
def test_more_devices_than_there_is_memory_for(
    header: str, groups: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.hlo").write_text(
        f"""HloModule m, {header or "num_partitions=4"}

s {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY e {{
  p = f32[4] parameter(0)
  ROOT t = f32[4] all-reduce(p), channel_id=1, {groups}, to_apply=s
}}
"""
    )
    with processor_budget(20):
        main(["run", str(tmp_path / "m.hlo")])
    written = capsys.readouterr()
    assert why in written.out + written.err


HUGE = """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  b = f32[4294967296,4294967296,8] broadcast(p), dimensions={}
  ROOT r = f32[] constant(0)
}
"""


def test_sizes_beyond_64_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XLA dies of them: "overflow in static extent product" (jaxlib 0.10.2)."""
    path = tmp_path / "m.hlo"
    path.write_text(HUGE)
    for command in ("inspect", "run", "check"):
        assert main([command, str(path)]) in (1, 2, 3)
        written = capsys.readouterr()
        assert "OverflowError" not in written.out + written.err
    path.write_text(HUGE.replace("[4294967296,4294967296,8]", "[4294967296,536870912]"))
    assert main(["check", str(path)]) == 1
    assert "more bytes than 63 bits can count" in capsys.readouterr().out
    path.write_text(HUGE.replace("[4294967296,4294967296,8]", "[0,4294967296,4294967296]"))
    assert main(["check", str(path), "--only", "invalid-hlo"]) == 0
