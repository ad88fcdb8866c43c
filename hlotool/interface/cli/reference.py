"""Pages made of the parsers: the manual `man hlotool`, and the reference of the documentation."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlotool._version import __version__
from hlotool.interface.cli.output import EXIT_CODES
from hlotool.interface.cli.parser import Parser, visible_names

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


#: Variables that users set.
ENVIRONMENT = {
    "HLOTOOL_CACHE": "folder for what is kept between runs: interrupted commands, compiled kernels",
    "HLOTOOL_CONFIG": "file of a configuration, as --config names it",
    "HLOTOOL_LOG": "debug, info or warning: as --log",
    "HLOTOOL_STORE_ATTEMPTS": "how often an object store is asked that fails",
    "HLOTOOL_STORE_CACHE": "bytes that copies of files from object stores may take",
    "HLOTOOL_STORE_TIMEOUT": "seconds without a byte after which a connection to a store is given up",
    "HLOTOOL_THREADS": "cores that large instructions may use",
    "NO_COLOR": "set to anything: no colours",
}


def manual_page(parser: Parser) -> str:
    """The page in roff's macros `man`, for man-db, groff and mandoc.

    Args:
        parser: of the whole command line.
    """
    return "\n".join(_lines(parser)) + "\n"


def _lines(parser: Parser) -> Iterator[str]:
    yield f'.TH HLOTOOL 1 "" "hlotool {__version__}" "User Commands"'
    yield from (".SH NAME", r"hlotool \- interpret, replay, check and bisect XLA HLO dumps")
    yield from (".SH SYNOPSIS", r".B hlotool", r".I COMMAND", r"[\fIoptions\fR] \.\.\.")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(parser.description or "")
    yield ".SH OPTIONS"
    for section in sections_of(parser):
        yield from _manual_entries(section.entries)
    yield ".SH COMMANDS"
    for own in parser.commands.values():
        yield from _command(own)
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield from (".TP", rf"\fB{code.value}\fR", _text(meaning))
    yield ".SH ENVIRONMENT"
    for name, meaning in ENVIRONMENT.items():
        yield from (".TP", rf"\fB{_text(name)}\fR", _text(meaning))
    yield ".SH FILES"
    yield from (".TP", r".I hlotool.toml\fR, \fIpyproject.toml", "defaults of options, for a project")


def _command(parser: Parser) -> Iterator[str]:
    usage = (parser.usage or "").replace("%%", "%")
    yield rf'.SS "{_text(usage)}"'
    yield from _paragraphs(parser.description or "")
    for section in sections_of(parser):
        about = f", {_text(section.about)}" if section.about else ""
        yield from (".PP", rf"\fI{_text(section.title)}\fR{about}:")
        yield from _manual_entries(section.entries)
    examples, _, _ = (parser.epilog or "").partition("exit codes:")
    if examples.strip():
        yield from (".PP", r"\fIExamples\fR:", ".PP", ".nf", ".RS 4")
        yield from (_text(line.removeprefix("  ")) for line in examples.strip().splitlines()[1:])
        yield from (".RE", ".fi")


def _manual_entries(entries: tuple[Entry, ...]) -> Iterator[str]:
    for entry in entries:
        names = ", ".join(rf"\fB{_text(name)}\fR" for name in entry.names)
        value = rf"\fI{_text(entry.value)}\fR" if entry.value else ""
        yield from (".TP", " ".join(filter(None, (names, value))), _text(entry.about))


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs are filled; lines that are indented stay as they are."""
    for number, part in enumerate(re.split(r"\n\s*\n", text.strip("\n"))):
        if number:
            yield ".PP"
        lines = part.splitlines()
        if all(line.startswith("  ") for line in lines):
            yield from (".nf", ".RS 4", *(_text(line.strip()) for line in lines), ".RE", ".fi")
        else:
            yield from (_text(line.strip()) for line in lines)


def _text(text: str) -> str:
    """Text in which nothing is a request or an escape of roff's, and a dash is the one that is typed."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq").replace("`", r"\(ga")
    escaped = escaped.replace("'", r"\(aq").replace("^", r"\(ha").replace("~", r"\(ti")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped
