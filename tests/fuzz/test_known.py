"""Known faults: what an entry hides, and what it must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.errors import UsageError
from hlotool.fuzz.known import KnownFault, known_faults


def test_the_committed_ones_have_a_report_each() -> None:
    committed = known_faults()
    assert {fault.name for fault in committed} >= {"atan2-of-zeros", "nested-dynamic-slice"}
    root = Path(__file__).resolve().parents[2]
    assert all(fault.link.startswith("https://") or (root / fault.link).is_dir() for fault in committed)
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
