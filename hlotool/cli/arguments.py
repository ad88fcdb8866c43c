"""From the declared options of a command to arguments of its parser; what all commands have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from hlotool.options.declared import REQUIRED, Arguments, File, Option, option
from hlotool.options.numbers import tolerance

#: Options whose value may begin with a minus sign, which argparse would take for an option.
_SIGNED_VALUES = ("--input-range",)


class Reports(
    Arguments, group="reports for others", about="FILE may be a URL, or -, in the place of the report"
):
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
        from hlotool.findings.outputs import output_index

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
