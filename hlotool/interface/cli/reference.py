"""What is made of the parsers: the manual `man hlotool`, the reference, completion by shells.

The text is made from the parsers and holds all that there is to know, so a shell starts no Python at a key.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hlotool._version import __version__
from hlotool.interface.cli.parser import Parser, visible_names
from hlotool.interface.cli.process import EXIT_CODES

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


_BASH = """\
# In ~/.bashrc: eval "$(hlotool --print-completion bash)"
_hlotool() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD-1]}} command= at words=
  # `--option=value` is three words.
  if [[ $word == "=" ]]; then word=; elif [[ $option == "=" ]]; then option=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ -z $command ]]; then
      [[ ${{COMP_WORDS[at]}} == -* ]] || command=${{COMP_WORDS[at]}}
    elif [[ $command == exec && ${{COMP_WORDS[at]}} == -- ]]; then
      # The program; behind its name files.
      ((at + 1 < COMP_CWORD)) || COMPREPLY=($(compgen -c -- "$word"))
      return
    fi
  done
  case "$command $option" in
{values}
  esac
  case $command in
{commands}
  esac
  [[ $word == -* ]] || words=${{words%% -*}}
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
# What the function has no words for is a file.
complete -o bashdefault -o default -F _hlotool hlotool
"""

_ZSH = """\
#compdef hlotool
# In ~/.zshrc, behind compinit: eval "$(hlotool --print-completion zsh)"
_hlotool() {{
  local context state state_descr line
  local -A opt_args
  local -a commands=(
{commands}
  )
  _arguments -C \\
{main} \\
    '1:command:->command' '*::argument:->arguments'
  case $state in
    (command) _describe command commands ;;
    (arguments) case $words[1] in
{arguments}
    esac ;;
  esac
}}
# As a file of completions this is the function's body; what is evaluated defines it.
if [[ $funcstack[1] == _hlotool ]]; then _hlotool "$@"; else compdef _hlotool hlotool; fi
"""

#: What fish offers for the command line behind `--`.
_FISH_PROGRAM = """'(complete -C (commandline -cp | string replace -r "^.*? -- *" ""))'"""


class PrintCompletion(argparse.Action):
    """`--print-completion SHELL`: print the text for a shell, and end."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Print and end, as `--version` does."""
        assert isinstance(parser, Parser)
        print(SHELLS[values](parser), end="")
        parser.exit()


def bash_text(parser: Parser) -> str:
    """For bash 3.2 and newer."""
    values, commands = [], []
    for name, own in [("", parser), *parser.commands.items()]:
        entries = _completion_entries(own)
        free = [option for entry in entries if entry.value and not entry.choices for option in entry.names]
        values += [
            f"    {_patterns(name, entry.names)}) words='{' '.join(entry.choices)}'\n"
            '      COMPREPLY=($(compgen -W "$words" -- "$word")); return ;;'
            for entry in entries
            if entry.names and entry.choices
        ]
        values += [f"    {_patterns(name, free)}) return ;;"] if free else []
        # Those that are no options come first: they are offered alone where the word begins with no dash.
        choices = [choice for entry in entries if not entry.names for choice in entry.choices]
        words = [*(choices if name else parser.commands), *(o for e in entries for o in e.names)]
        commands.append(f"    {name or repr('')}) words=' {' '.join(words)}' ;;")
    return _BASH.format(values="\n".join(values), commands="\n".join(commands))


def _patterns(command: str, options: Sequence[str]) -> str:
    return "|".join(f"'{command} {option}'" for option in options)


def zsh_text(parser: Parser) -> str:
    """For zsh with its completion system."""
    commands = [f"    {_quoted(f'{name}:{about}')}" for name, about in _abouts(parser)]
    arguments = []
    for name, own in parser.commands.items():
        lines = " \\\n".join(f"        {line}" for line in _zsh_lines(own))
        arguments.append(f"      ({name}) _arguments \\\n{lines} ;;")
    return _ZSH.format(
        commands="\n".join(commands),
        main=" \\\n".join(f"    {line}" for line in _zsh_lines(parser)),
        arguments="\n".join(arguments),
    )


def _zsh_lines(parser: Parser) -> Iterator[str]:
    for entry in _completion_entries(parser):
        value = f":{_escaped(entry.value)}:{_zsh_action(entry)}" if entry.value else ""
        for name in entry.names:
            alone = f"({' '.join(entry.names)})" if len(entry.names) > 1 else ""
            yield _quoted(f"{alone}{name}[{_escaped(entry.about)}]{value}")
        if not entry.names:
            several = "*" if "..." in entry.value else ""
            yield _quoted(f"{several}{':' if entry.completes == 'command' else ''}{value}")


def _zsh_action(entry: Entry) -> str:
    if entry.choices:
        return f"({' '.join(entry.choices)})"
    return {"file": "_files", "folder": "_files -/", "command": "_normal", "": " "}[entry.completes]


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def fish_text(parser: Parser) -> str:
    """For fish 3 and newer."""
    lines = ["# In config.fish: hlotool --print-completion fish | source", "complete -c hlotool -f"]
    lines += _fish_lines(parser, "__fish_use_subcommand")
    for name, about in _abouts(parser):
        lines.append(f"complete -c hlotool -n __fish_use_subcommand -a {name} -d {_quoted(about)}")
        lines += _fish_lines(parser.commands[name], f"__fish_seen_subcommand_from {name}")
    return "\n".join(lines) + "\n"


def _fish_lines(parser: Parser, condition: str) -> Iterator[str]:
    for entry in _completion_entries(parser):
        names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in entry.names)
        about = f"-d {_quoted(entry.about)}" if entry.names else ""
        words = f"complete -c hlotool -n '{condition}' {names} {_fish_value(entry)} {about}"
        yield " ".join(words.split())


def _fish_value(entry: Entry) -> str:
    if not entry.value:
        return ""
    if entry.choices:
        return f"-x -a '{' '.join(entry.choices)}'"
    offered = {
        "file": "-F",
        "folder": "-a '(__fish_complete_directories)'",
        "command": f"-a {_FISH_PROGRAM}",
        "": "",
    }[entry.completes]
    return f"{'-r' if entry.names else ''} {offered}"


def _completion_entries(parser: Parser) -> list[Entry]:
    return [entry for section in sections_of(parser) for entry in section.entries]


def _abouts(parser: Parser) -> Iterator[tuple[str, str]]:
    """Each command with what it does."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from ((choice.dest, choice.help or "") for choice in action._choices_actions)


def _quoted(text: str) -> str:
    """A word of a shell; with a quotation mark that all three shells take for one in a word of quotes."""
    return "'" + text.replace("'", "’") + "'"


#: What makes the text for each shell.
SHELLS: dict[str, Callable[[Parser], str]] = {"bash": bash_text, "zsh": zsh_text, "fish": fish_text}
