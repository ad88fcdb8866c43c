"""The parser of command lines: argparse, with errors that say what was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from hlotool.errors import ExitCode
from hlotool.names import did_you_mean
from hlotool.options.numbers import quoted

#: A number, which may begin with a minus sign and is no option.
_NUMBER = re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """Of the whole command line, or of one command.

    What is wrong is said by the command that it is about, in one line, with the nearest name; the last line
    is the command that shows what there is.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._given: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does, but what is not known is an error of this command, not of the whole line's."""
        self._given = sys.argv[1:] if args is None else args
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(_unrecognized(unknown, self._options()))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end the process with the exit code of wrong usage."""
        # What is missing may be missing because an option before it is misspelt.
        if "required" in message and (misspelt := self._misspelt()):
            message = _unrecognized(misspelt, self._options())
        self.print_usage(sys.stderr)
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {message}\nnext: {self.prog} --help\n")

    @property
    def commands(self) -> dict[str, Parser]:
        """The parsers of the commands by name."""
        own = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return {name: parser for action in own for name, parser in action.choices.items()}

    def every_action(self) -> list[argparse.Action]:
        """All arguments, positional ones and hidden ones, too."""
        return list(self._actions)

    def exclusive_destinations(self) -> list[set[str]]:
        """The destinations of options of which only one can be given."""
        return [{action.dest for action in group._group_actions} for group in self._mutually_exclusive_groups]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices, with the nearest one."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {quoted(str(value))} (choose from {', '.join(choices)})"
                f"{did_you_mean(str(value), choices)}",
            )

    def _misspelt(self) -> list[str]:
        """Options of the command line that there are none of; after `--` there are no options."""
        given = list(self._given)
        before = given[: given.index("--")] if "--" in given else given
        options = self._options()
        names = [word for word in before if word.startswith("-") and word != "-" and not _NUMBER.match(word)]
        return [word for word in names if not any(o.startswith(word.partition("=")[0]) for o in options)]

    def _options(self) -> list[str]:
        return [option for action in self._actions for option in visible_names(action)]


def visible_names(action: argparse.Action) -> Iterator[str]:
    """The names that `--help` shows of an option; none of a positional argument."""
    if action.help != argparse.SUPPRESS:
        yield from action.option_strings


def _unrecognized(words: Sequence[str], options: Sequence[str]) -> str:
    meant = (did_you_mean(word.partition("=")[0], options) for word in words if word.startswith("-"))
    return f"unrecognized arguments: {' '.join(words)}{next(filter(None, meant), '')}"


def is_opposable(action: argparse.Action) -> bool:
    """Whether it is a switch between true and false."""
    return isinstance(action, argparse._StoreTrueAction | argparse._StoreFalseAction)


def add_opposites(parser: Parser) -> None:
    """Let every switch be turned off as well: `--no-X` for `--X`, `--X` for `--no-X`.

    They are for configurations that turn a switch on, and `--help` does not list them.
    """
    taken = {option for action in parser.every_action() for option in action.option_strings}
    for action in filter(is_opposable, parser.every_action()):
        name = next(option for option in action.option_strings if option.startswith("--"))
        opposite = f"--{name[5:]}" if name.startswith("--no-") else f"--no-{name[2:]}"
        if opposite not in taken:
            parser.add_argument(
                opposite,
                dest=action.dest,
                action="store_false" if action.const else "store_true",
                default=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
            )
