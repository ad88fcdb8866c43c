"""Known faults: what an entry hides, and what it must not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlotool.errors import UsageError
from hlotool.fuzz.known import KnownFault, known_faults
from hlotool.fuzz.oracle import Question, judge_program
from hlotool.replay.options import ReplayOptions


def test_the_committed_ones_have_a_report_each() -> None:
    committed = known_faults()
    assert {fault.name for fault in committed} >= {"atan2-of-zeros", "nested-dynamic-slice"}
    root = Path(__file__).resolve().parents[2]
    assert all(fault.link.startswith("https://") or (root / fault.link).exists() for fault in committed)
    assert known_faults(committed=False) == []


def test_all_that_an_entry_says_must_hold() -> None:
    fault = KnownFault(name="n", kind="wrong", pass_name="algsimp", opcodes=("dynamic-slice",), others=1)
    same = ("wrong", "pass", "algsimp", ["dynamic-slice", "constant", "add"], "")
    assert fault.fits(*same)
    assert not fault.fits("crashed", *same[1:])
    assert not fault.fits("wrong", "pass", "cse", *same[3:])
    assert not fault.fits(*same[:3], ["add"], "")
    # Two operations besides: it may as well be their fault.
    assert not fault.fits(*same[:3], ["dynamic-slice", "add", "pad"], "")


def test_what_makes_the_values_is_not_counted() -> None:
    """Where the spot is known at which a pass is wrong, the rest of the program makes the values for it."""
    fault = KnownFault(name="n", pass_name="cse", opcodes=("convolution",), others=1)
    same = ("wrong", "pass", "cse", ["all-gather", "reverse", "slice", "pad", "convolution"], "")
    assert not fault.fits(*same)
    assert fault.fits(*same, ["pad", "convolution"])
    assert not fault.fits(*same, ["pad", "slice", "convolution"])


def test_words_are_searched_in_what_was_said() -> None:
    fault = KnownFault(name="n", words=r"Check failed: .*rank")
    assert fault.fits("crashed", "", "", [], "died of SIGABRT: Check failed: x.rank() == 2")
    assert not fault.fits("crashed", "", "", [], "died of SIGFPE")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[fault]]\nname = "x"\npass = "cse"\n', "it would hide any other fault"),
        ('[[fault]]\nname = "x"\nkind = "odd"\nopcodes = ["add"]\n', "is none of"),
        ('[[fault]]\nname = "x"\nwords = "("\n', "words: "),
        ('[[fault]]\nname = "x"\nopcode = "add"\n', "opcode"),
        ("[[fault]]\n", "name"),
    ],
)
def test_an_entry_that_would_hide_too_much_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(UsageError, match=rf"known\.toml.*{said}"):
        known_faults([tmp_path / "known.toml"], committed=False)


UNDUMPED = sorted((Path(__file__).resolve().parents[2] / "corpus" / "undumped").glob("*.hlo"))


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
