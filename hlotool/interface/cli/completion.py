"""What a shell needs to complete the command line: `hlotool --print-completion bash`, `zsh` or `fish`.

The text is made from the parsers and holds all that there is to know, so a shell starts no Python at a key.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlotool.interface.cli.parser import Parser
from hlotool.interface.cli.reference import Entry, sections_of

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
        entries = _entries(own)
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
    for entry in _entries(parser):
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
    for entry in _entries(parser):
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


def _entries(parser: Parser) -> list[Entry]:
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
