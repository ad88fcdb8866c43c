"""Parsers of the command line, made of declared options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from hlotool.errors import ExitCode
from hlotool.runs.options.declared import REQUIRED, Arguments, File, Option, option
from hlotool.runs.options.parsers import quoted, tolerance
from hlotool.system.user_input import did_you_mean

#: A number, which may begin with a minus sign and is no option.
_NUMBER = re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """Of the whole command line, or of one command.

    What is wrong is said by the command that it is about, in one line, with the nearest name; the last line
    is the command that shows what there is. Options have one spelling: a shortened one would mean something
    else, or nothing, as soon as another begins like it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)
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
        names = [word for word in before if word.startswith("-") and word != "-" and not _NUMBER.match(word)]
        return [word for word in names if word.partition("=")[0] not in self._option_string_actions]

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


#: Options whose value may begin with a minus sign, which argparse would take for an option.
_SIGNED_VALUES = ("--input-range",)


class Reports(Arguments, group="report formats", about="FILE may be a URL, or -, in the place of the report"):
    """Of commands with findings."""

    record: File = option("write the record, as --json prints it", default=None)
    html: File = option("write one page with everything, for a browser", default=None)
    junit: File = option("write JUnit XML, for build servers", default=None)
    sarif: File = option("write SARIF 2.1.0, for code review tools", default=None)
    github: bool = option("annotations and a step summary for GitHub Actions", default=False)
    format: str | None = option(
        "print the record (json, as --json), or a line for each entry (jsonl) or finding (csv)",
        default=None,
        kind="format",
        choices=("json", "jsonl", "csv"),
    )


class Output(Arguments, group="output"):
    """Of every command."""

    json: bool = option("print one versioned JSON record on stdout", default=False)
    quiet: bool = option(
        "only what disagrees, and the totals", default=False, flags=("-q", "--quiet"), exclusive="amount"
    )
    verbose: bool = option(
        "every detail of every module", default=False, flags=("-v", "--verbose"), exclusive="amount"
    )
    log: str | None = option(
        "say on stderr what is done: processes, files [$HLOTOOL_LOG]",
        default=None,
        choices=("debug", "info", "warning"),
    )
    debug: bool = option("show the traceback of an error", default=False)


class Configured(Arguments, group="configuration", about="hlotool.toml, or [tool.hlotool] of pyproject.toml"):
    """Of every command."""

    config: File = option(
        "this file [the nearest, in folders upwards; $HLOTOOL_CONFIG]",
        default=None,
        once=True,
        exclusive="which",
    )
    no_config: bool = option(
        "no file", default=False, once=True, exclusive="which", flags=("--no-config", "--isolated")
    )


def add_arguments(parser: argparse.ArgumentParser, *kinds: type[Arguments]) -> None:
    """Add the options of classes of arguments to a parser, those of a group together."""
    places: dict[str, argparse._ActionsContainer] = {"": parser}
    for one in (one for kind in kinds for one in kind.options.values() if one.typed):
        if one.group not in places:
            places[one.group] = parser.add_argument_group(one.group, one.about or None)
        place = places[one.group]
        if one.exclusive:
            if one.exclusive not in places:
                places[one.exclusive] = place.add_mutually_exclusive_group()
            place = places[one.exclusive]
        _add(place, one)


def _add(place: argparse._ActionsContainer, one: Option) -> None:
    word = one.name.replace("_", "-")
    names = one.flags or (f"--no-{word}" if one.kind == "off" else f"--{word}",)
    said: dict[str, Any] = {"help": one.help}
    if one.kind not in ("switch", "off", "yes-no"):
        said |= {"metavar": one.metavar, "choices": one.choices, "nargs": one.nargs}
    if one.parse is not None and one.kind != "by-output":
        said["type"] = one.parse
    if one.kind in _ACTIONS:
        said["action"] = _ACTIONS[one.kind]
    if one.default_typed is not REQUIRED:
        said["default"] = list(one.default) if one.kind == "list" else one.default_typed
    elif one.kw_only:
        said["required"] = True
    if one.kw_only:
        action = place.add_argument(*names, dest=one.name, **said)
    else:
        action = place.add_argument(one.name, **said)
    action.option = one  # type: ignore[attr-defined]
    if one.without:
        action = place.add_argument(
            f"--no-{word}", dest=one.name, action="store_const", const=None, help=one.without
        )
        action.option = one  # type: ignore[attr-defined]


def option_of(action: argparse.Action) -> Option | None:
    """The declaration that an argument was made of; None of `--help` and of what `add_opposites` adds."""
    return getattr(action, "option", None)


def join_signed_values(arguments: Sequence[str]) -> list[str]:
    """`--input-range -1,1` becomes `--input-range=-1,1`."""
    joined: list[str] = []
    # What follows are arguments of somebody else's.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for argument in arguments[:end]:
        if joined and joined[-1] in _SIGNED_VALUES:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return [*joined, *arguments[end:]]


class _ByOutput(argparse.Action):
    """`VALUE` for all outputs as `NAME`, `OUTPUT:VALUE` into the pairs `output_NAME`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store one value."""
        from hlotool.judge.records import output_index

        output, colon, text = str(values).rpartition(":")
        try:
            value = tolerance(text)
            if colon:
                output_index(output)
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise argparse.ArgumentError(self, str(error)) from error
        if not colon:
            setattr(namespace, self.dest, value)
            return
        name = f"output_{self.dest}"
        setattr(namespace, name, (*(getattr(namespace, name, None) or ()), (output, value)))


class _Format(argparse.Action):
    """`--format json` is `--json`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the choice."""
        setattr(namespace, self.dest, values)
        if values == "json":
            namespace.json = True


_ACTIONS: dict[str, Any] = {
    "switch": "store_true",
    "off": "store_false",
    "yes-no": argparse.BooleanOptionalAction,
    "list": "append",
    "by-output": _ByOutput,
    "format": _Format,
}
