"""Commands as judges: git's exit codes, what they print, how long they take."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import numpy as np
import pytest

import hlotool
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import CaseQuestion, judge_case
from hlotool.blame.reduction.oracle import CommandJudge
from hlotool.errors import UsageError
from hlotool.judge.verdicts import Answer
from hlotool.runs.options.kept import ReplayOptions

TEXT = "HloModule m ENTRY main { p = f32[2] parameter(0) ROOT s = f32[2] sine(p) }"


@pytest.fixture
def case() -> Case:
    return Case(hlotool.parse(TEXT), (np.array([1, 2], np.float32),))


def script(folder: Path, body: str) -> str:
    path = folder / "check.sh"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("exit 0", "good"),
        ("exit 1", "bad"),
        ("exit 124", "bad"),
        ("exit 125", "unusable"),
        ("exit 127", "bad"),
        ("kill -SEGV $$", "signal 11"),
        ("exit 139", "signal 11"),
        ("grep -q 'sine(' $1 || exit 3", "good"),
        ("grep -q 'cosine(' $1 || exit 3", "bad"),
        ("test -s ${1%.hlo}.npz || exit 9", "good"),
    ],
)
def test_exit_codes_are_those_of_git_bisect(body: str, kind: str, case: Case, tmp_path: Path) -> None:
    judge = CommandJudge(script(tmp_path, body), 10)
    assert [(n, str(o)) for n, o in judge.run([case, case])] == [(0, kind), (1, kind)]


def test_what_is_printed_tells_failures_apart(case: Case, tmp_path: Path) -> None:
    command = script(tmp_path, "echo first; echo 'RET_CHECK failed at 7'; exit 1")
    [(_, same)] = CommandJudge(command, 10, fail_regex=re.compile("RET_CHECK")).run([case])
    [(_, other)] = CommandJudge(command, 10, fail_regex=re.compile("mismatch")).run([case])
    assert (str(same), str(other)) == ("bad", "fails otherwise")
    assert same.reason == "RET_CHECK failed at 7"


def test_a_command_that_hangs_cannot_judge(case: Case, tmp_path: Path) -> None:
    [(_, outcome)] = CommandJudge(script(tmp_path, "exec sleep 20"), 0.2).run([case])
    assert outcome.answer is Answer.UNUSABLE


def test_a_command_that_is_none_is_told(case: Case) -> None:
    with pytest.raises(UsageError, match="no/such"):
        list(CommandJudge("/no/such/program", 1).run([case]))
    with pytest.raises(UsageError):
        CommandJudge(" ", 1)


def test_equal_backends_agree(case: Case) -> None:
    question = CaseQuestion(case.text, case.arguments, ReplayOptions())
    assert judge_case(question).answer is Answer.GOOD
    broken = CaseQuestion(case.text.replace("sine", "no-such"), case.arguments, ReplayOptions())
    assert judge_case(broken).answer is Answer.UNUSABLE
