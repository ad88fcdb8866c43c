"""What `explain` says of the words of reports: all of them are there, and each text is whole and short."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest

from hlotool.blame.bisection.records import Level, TriggerStatus
from hlotool.checks.catalogue import all_rules
from hlotool.checks.compiled import _REFUSALS
from hlotool.checks.explain.entries import find_entry
from hlotool.checks.explain.topics import RULE, VERDICT, TopicRecord, find_topics, no_topic, topics
from hlotool.checks.records import Severity
from hlotool.facts.alignment.difference import Status
from hlotool.interface.report.console import plain_text
from hlotool.interface.report.gradcheck import _LOOKS as SLOPES
from hlotool.interface.report.lab_records import STATUSES, FuzzStatus, Kind
from hlotool.interface.report.listings import Explanation
from hlotool.interface.report.outcome_rules import _ABOUT
from hlotool.interface.report.records import ExplainRecord
from hlotool.judge.verdicts import Verdict
from hlotool.lab.mutation.task import Fate
from hlotool.runs.ahead import COMPILES, REFUSED
from hlotool.runs.exact.result import Relation
from hlotool.runs.two_dumps import Conclusion

ROOT = Path(__file__).resolve().parents[2]

#: The words of reports by who says them, from where the code says them.
SAID: dict[str, Iterable[str]] = {
    VERDICT: (verdict.value for verdict in Verdict),
    RULE: all_rules(),
    "prove": (relation.value for relation in Relation),
    "compare": (conclusion.value for conclusion in Conclusion),
    "gradcheck": SLOPES,
    "bisect": (*get_args(Level), *get_args(TriggerStatus)),
    "compile": (COMPILES, REFUSED),
    "mutate": (fate.value for fate in Fate),
    "conformance": STATUSES,
    "fuzz": get_args(FuzzStatus),
    "diff": (status.value for status in Status),
    "check": (severity.value for severity in Severity),
}
#: Functions that a rule of the verifier is given to, and as which argument.
_TAKES = {"check": 1, "_check_unique": 1, "_parameter_part": 1, "add": 0, "error": 0, "VerificationError": 0}


def test_every_word_is_explained_as_of_its_command() -> None:
    for kind, names in SAID.items():
        known = {topic.name for topic in topics() if topic.kind == kind}
        assert known >= set(names), kind


@pytest.mark.parametrize("name", [*_ABOUT, *get_args(Kind)])
def test_what_other_tools_read_is_explained(name: str) -> None:
    assert find_topics(name)


@pytest.mark.parametrize("code", _REFUSALS)
def test_errors_of_compilers_are_explained(code: str) -> None:
    assert find_entry(code)


def test_rules_of_the_verifier_are_explained() -> None:
    found = set()
    for path in (ROOT / "hlotool" / "ir").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = _TAKES.get(name, len(node.args))
            if len(node.args) > place + 1 and isinstance(rule := node.args[place], ast.Constant):
                found.add(rule.value)
    assert len(found) > 40
    assert found <= {topic.name for topic in topics() if topic.kind == "verifier"}


@pytest.mark.parametrize("topic", topics(), ids=lambda topic: f"{topic.kind}-{topic.name}")
def test_a_text_is_whole_and_fits_a_screen(topic: TopicRecord) -> None:
    assert min(len(topic.means), len(topic.established)) > 15
    assert "`" in topic.next or topic.next.lower().startswith("nothing")
    for text in (topic.means, topic.established, topic.next):
        assert "](" not in text
        assert text == text.strip()
    assert (ROOT / topic.page).is_file()
    record = ExplainRecord(matches=[], topics=[topic], exit_code=0)
    assert len(plain_text(Explanation(record), 80).splitlines()) <= 24
    assert len(plain_text(Explanation(record, verbose=True), 80).splitlines()) <= 40


def test_names_are_found_as_they_are_printed_and_as_files_are_called() -> None:
    for spelling in ("not comparable", "not-comparable", "NOT_COMPARABLE", "· not comparable"):
        assert [topic.name for topic in find_topics(spelling)] == ["not comparable"]
    assert [topic.kind for topic in find_topics("wrong")] == [VERDICT, "gradcheck"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [("wrnog", "'wrong'"), ("E12000", "'E1200'"), ("offload updat", "'offload-update'"), ("train.log", "")],
)
def test_a_name_that_is_not_known(text: str, meant: str) -> None:
    assert (f"did you mean {meant}" if meant else "`hlotool explain` lists") in no_topic(text)


def test_a_message_is_no_name() -> None:
    assert no_topic("nothing of the kind was ever said") == ""
