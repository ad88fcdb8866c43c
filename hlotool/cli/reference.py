"""What `--help` shows of the commands, as data: for pages of documentation, the manual page, and shells."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlotool.cli.parser import Parser, visible_names

#: What a shell offers where a value has one of these names.
_FOLDERS = ("DIR",)
_FILES = ("A", "B", "FILE", "PATH", "SCRIPT.py:FUNCTION", "TEXT")
#: Titles of argparse's own groups, in the words of manual pages.
_TITLES = {"positional arguments": "Arguments", "options": "General"}


@dataclass(frozen=True, slots=True)
class Entry:
    """An option, or a positional argument.

    Attributes:
        names: of the option, short ones as they were declared; empty of a positional argument.
        value: as it stands behind the name, as in `FILE`; empty of a switch.
        about: what it does.
        choices: the values that there are; empty where there are others.
        completes: `file`, `folder`, `command` (a program and its arguments), or empty: what the value is.
    """

    names: tuple[str, ...]
    value: str
    about: str
    choices: tuple[str, ...] = ()
    completes: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Entries that belong together.

    Attributes:
        title: begins with a capital letter.
        about: what holds for all of them; may be empty.
        entries: in the order of the help.
    """

    title: str
    about: str
    entries: tuple[Entry, ...]


def sections_of(parser: Parser) -> list[Section]:
    """The arguments of a parser, as its help shows them; of the whole line those before the command."""
    found = []
    for group in parser._action_groups:
        entries = tuple(_entries(parser, group._group_actions))
        if entries:
            title = _TITLES.get(group.title or "", group.title or "")
            found.append(Section(title[:1].upper() + title[1:], group.description or "", entries))
    return found


def _entries(parser: Parser, actions: Sequence[argparse.Action]) -> Iterator[Entry]:
    formatter = parser._get_formatter()
    for action in actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        names = tuple(visible_names(action))
        default = (action.dest if not names else action.dest.upper()).replace("_", "-")
        value = "" if action.nargs == 0 else formatter._format_args(action, default)
        yield Entry(
            names,
            "COMMAND ..." if action.nargs == argparse.REMAINDER else value,
            formatter._expand_help(action) if action.help else "",
            _choices(action),
            _completes(action),
        )


def _choices(action: argparse.Action) -> tuple[str, ...]:
    """The values that there are: one of them, or several with commas where the value is called `a,b,c`."""
    name = action.metavar if isinstance(action.metavar, str) else ""
    listed = name.split(",") if "," in name and name.islower() else ()
    return tuple(map(str, action.choices or listed))


def _completes(action: argparse.Action) -> str:
    if action.nargs == argparse.REMAINDER:
        return "command"
    name = action.metavar if isinstance(action.metavar, str) else ""
    if action.nargs == 0:
        return ""
    if name in _FOLDERS:
        return "folder"
    return "file" if name in _FILES else ""
