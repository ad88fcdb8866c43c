"""What the words of a report mean: verdicts, answers of commands, rules of `check`.

The texts are the pages `verdicts/*.md` and `answers.md` of the documentation, which lie in the package beside
the code; a rule is described by its declaration. What a page says of an example is left to the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from inspect import getdoc

from hlotool.checks.catalogue import all_rules
from hlotool.checks.explain.entries import catalogue
from hlotool.checks.explain.records import RULE, VERDICT, TopicRecord
from hlotool.checks.rules import Rule
from hlotool.judge.verdicts import Verdict
from hlotool.system.user_input import did_you_mean

#: A link: to a page that only says more it is left out, of others the words remain.
_FURTHER, _LINK = re.compile(r"\s?\(\[[^\]]*\]\([^)]*\)\)"), re.compile(r"\[([^\]]*)\]\([^)]*\)")
_PAGE = re.compile(
    r"# `(.+)`\n+(.+?)\n+## What establishes it\n+(.+?)\n+## What to do next\n+(.+?)\n+## ", re.DOTALL
)
_SECTION = re.compile(r"^## (.+?)\n(.+?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(
    r"^### (.+?)\n\n(.+?)\n\nEstablished by: (.+?)\n\nNext: (.+?)\n", re.MULTILINE | re.DOTALL
)


@cache
def topics() -> tuple[TopicRecord, ...]:
    """All of them: verdicts, then answers by command, then rules."""
    return (*_verdicts(), *_answers(), *map(_rule, all_rules().values()))


def find_topics(text: str) -> list[TopicRecord]:
    """Those that `text` names, as reports print it or as files and options spell it."""
    wanted = _spelling(text)
    return [topic for topic in topics() if _spelling(topic.name) == wanted]


def no_topic(text: str) -> str:
    """Why `text` is not explained, if it is a name and no message: it is one word, or nearly a known name."""
    known = [*(topic.name for topic in topics()), *(entry.id for entry in catalogue())]
    meant = did_you_mean(text.strip(), known)
    if not meant and len(text.split()) != 1:
        return ""
    return f"{text.strip()!r} is no topic, and no file{meant or '; `hlotool explain` lists the topics'}"


def _spelling(name: str) -> str:
    """Without the sign that a report prints before it."""
    return re.sub(r"[\s_-]+", " ", re.sub(r"^\W+", "", name)).strip().lower()


def _verdicts() -> Iterator[TopicRecord]:
    for verdict in Verdict:
        page = f"verdicts/{verdict.value.replace(' ', '-')}.md"
        found = _PAGE.match(_text(page))
        assert found is not None, page
        yield _topic(VERDICT, page, *found.groups())


def _answers() -> Iterator[TopicRecord]:
    page = "answers.md"
    for command, section in _SECTION.findall(_text(page)):
        for names, *texts in _ANSWER.findall(section):
            yield from (
                _topic(command.strip("`"), page, name, *texts) for name in re.findall("`(.+?)`", names)
            )


def _rule(rule: Rule) -> TopicRecord:
    how = " ".join((getdoc(rule.check_module or rule.check_dump) or "").split())
    remedy = f"{rule.remedy}. " if rule.remedy else "the line `remedy` of the finding. "
    own = f"`hlotool check DIR --only {rule.id}` lists these findings alone"
    return _topic(
        RULE,
        "commands/check.md",
        rule.id,
        f"{rule.title} ({rule.severity.value})",
        f"looks at {rule.applies.value}: {how}",
        remedy + own,
    )


def _topic(kind: str, page: str, name: str, means: str, established: str, next: str) -> TopicRecord:
    return TopicRecord(
        name=name, kind=kind, means=means, established=established, next=next, page=f"docs/{page}"
    )


def _text(page: str) -> str:
    """A page without its links, each paragraph on one line."""
    text = (files("hlotool.docs") / page).read_text(encoding="utf-8")
    return re.sub(r"(?<!\n)\n(?!\n|#|```|\Z)", " ", _LINK.sub(r"\1", _FURTHER.sub("", text)))
