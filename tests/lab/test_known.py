"""Known faults: what an entry hides, and what it must not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hlotool.errors import UsageError
from hlotool.interface.report.lab_records import FaultRecord
from hlotool.lab.fuzz.known import KnownFault, known_faults, opcodes_of
from hlotool.lab.fuzz.oracle import Question, judge_program
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_ones_have_a_report_each() -> None:
    committed = known_faults()
    assert {fault.name for fault in committed} >= {"atan2-of-zeros", "nested-dynamic-slice"}
    assert all(fault.link.startswith("https://") or (ROOT / fault.link).exists() for fault in committed)
    assert known_faults(committed=False) == []


_SLICES = FaultRecord(
    status="new",
    kind="wrong",
    level="pass",
    pass_name="algsimp",
    opcodes=["dynamic-slice", "constant", "add"],
    backend="xla",
)


def _with(**fields: Any) -> FaultRecord:
    return msgspec.structs.replace(_SLICES, **fields)


def test_all_that_an_entry_says_must_hold() -> None:
    fault = KnownFault(name="n", kind="wrong", pass_name="algsimp", opcodes=("dynamic-slice",), others=1)
    assert fault.fits(_SLICES)
    assert not fault.fits(_with(kind="crashed"))
    assert not fault.fits(_with(pass_name="cse"))
    assert not fault.fits(_with(opcodes=["add"]))
    # Two operations besides: it may as well be their fault.
    assert not fault.fits(_with(opcodes=["dynamic-slice", "add", "pad"]))


def test_what_makes_the_values_is_not_counted() -> None:
    """Where the spot is known at which a pass is wrong, the rest of the program makes the values for it."""
    fault = KnownFault(name="n", pass_name="cse", opcodes=("convolution",), others=1)
    same = _with(pass_name="cse", opcodes=["all-gather", "reverse", "slice", "pad", "convolution"])
    assert not fault.fits(same)
    assert fault.fits(msgspec.structs.replace(same, work=["pad", "convolution"]))
    assert not fault.fits(msgspec.structs.replace(same, work=["pad", "slice", "convolution"]))


def test_words_are_searched_in_what_was_said() -> None:
    fault = KnownFault(name="n", words=r"Check failed: .*rank")
    assert fault.fits(_with(kind="crashed", reason="died of SIGABRT: Check failed: x.rank() == 2"))
    assert not fault.fits(_with(kind="crashed", reason="died of SIGFPE"))


def test_a_text_is_searched_in_the_smallest_program() -> None:
    """A fault of positions of eight bits is none of those of positions of 32."""
    fault = KnownFault(name="n", opcodes=("dynamic-slice",), text=r"[su]8\[\]")
    assert fault.fits(_SLICES, "d = f32[3] dynamic-slice(x, i)\n i = s8[] parameter(1)")
    assert not fault.fits(_SLICES, "d = f32[3] dynamic-slice(x, i)\n i = s32[] parameter(1)")


@pytest.mark.parametrize("name", ["scatter-at-bytes", "dots-of-bytes", "groups-of-divided-features"])
def test_entries_with_few_words_ask_for_what_the_fault_needs(name: str) -> None:
    """Whatever else goes wrong in a scatter, a dot or a convolution is not hidden by them."""
    (entry,) = [fault for fault in known_faults() if fault.name == name]
    assert entry.text


def _of_gpus() -> list[Any]:
    manifest = tomllib.loads((ROOT / "corpus/MANIFEST.toml").read_text(encoding="utf-8"))["directory"]
    wrong = [entry for entry in manifest if entry["path"].startswith("gpu_ptx/") and "fault" in entry]
    return [pytest.param(entry, id=entry["program"]) for entry in wrong]


@pytest.mark.parametrize("entry", _of_gpus())
def test_faults_of_code_for_gpus_are_known(entry: dict[str, Any]) -> None:
    """By their programs as they were given; what is wrong on a CPU is another fault."""
    [path] = (ROOT / "corpus" / entry["path"]).glob("*before_optimizations.txt")
    text, fault = path.read_text(encoding="utf-8"), entry["fault"]
    found = _with(
        level=fault["level"],
        pass_name=fault.get("pass", ""),
        opcodes=opcodes_of(parse_module(text)),
        backend="gpu-ptx:h100,triton=off",
    )
    [known] = [known for known in known_faults() if known.fits(found, text)]
    assert known.link in (f"corpus/{entry['path']}", fault.get("report"))
    assert known.fits(msgspec.structs.replace(found, backend="xla"), text) == (not known.backend)


_BYTES_OF_SUMS = """
%s = f32[4096]{0} reduce(%x, %z), dimensions={0}, to_apply=%add
%c = s8[4096]{0} convert(%s)
"""
_SUMS_OF_BYTES = """
%c = s8[2,4096]{1,0} convert(%x)
%s = s8[4096]{0} reduce(%c, %z), dimensions={0}, to_apply=%add
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [(_BYTES_OF_SUMS, "whole-bytes-of-sums"), (_SUMS_OF_BYTES, "other-signs-of-bytes")],
)
def test_two_faults_of_one_library_are_told_by_what_is_converted(text: str, name: str) -> None:
    found = _with(level="runtime-library", pass_name="", opcodes=["reduce", "convert"])
    assert [fault.name for fault in known_faults() if fault.fits(found, text)] == [name]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[fault]]\nname = "x"\npass = "cse"\n', "it would hide any other fault"),
        ('[[fault]]\nname = "x"\nkind = "odd"\nopcodes = ["add"]\n', "is none of"),
        ('[[fault]]\nname = "x"\nwords = "("\n', "words: "),
        ('[[fault]]\nname = "x"\nopcodes = ["add"]\ntext = "("\n', "text: "),
        ('[[fault]]\nname = "x"\nopcode = "add"\n', "opcode"),
        ("[[fault]]\n", "name"),
    ],
)
def test_an_entry_that_would_hide_too_much_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(UsageError, match=rf"known\.toml.*{said}"):
        known_faults([tmp_path / "known.toml"], committed=False)


UNDUMPED = sorted((ROOT / "corpus" / "undumped").glob("*.hlo"))


@pytest.mark.parametrize("path", UNDUMPED, ids=lambda path: path.stem)
def test_programs_without_a_dump_say_how_they_fail(path: Path) -> None:
    _, how, *_ = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"// (wrong|crashed) on jaxlib [\d. ]+", how)
    assert any(fault.link == f"corpus/undumped/{path.name}" for fault in known_faults())


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.parametrize("path", UNDUMPED, ids=lambda path: path.stem)
def test_programs_without_a_dump_fail_as_they_say(path: Path) -> None:
    jaxlib = pytest.importorskip("jaxlib")
    text = path.read_text(encoding="utf-8")
    _, kind, _, _, *versions = text.splitlines()[1].split()
    if jaxlib.__version__ not in versions:
        pytest.skip(f"jaxlib {jaxlib.__version__} need not be wrong")
    assert judge_program(Question(text, ReplayOptions(backend="xla"))).kind == kind
