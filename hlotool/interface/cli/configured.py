"""Puts a configuration below a command line: what the line says wins, then the environment, then the file."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlotool.errors import UsageError
from hlotool.interface.cli.configuration import Configuration, find_configuration, settings_of, values_of
from hlotool.interface.cli.parser import Parser
from hlotool.interface.cli.process import tell
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from hlotool.system.records import ConfigurationRecord

logger = logging.getLogger(__name__)

#: Variables of the environment that set options.
VARIABLES = {"HLOTOOL_LOG": "log"}
#: Keys by which less is looked at, or more is accepted: the user is always shown that a file sets them.
_LENIENT = frozenset({"atol", "baseline", "fail-on", "ignore", "only", "rtol", "show", "skip", "stages"})
#: Choices that exclude each other beyond what the parser knows: one on the command line replaces the others.
_ALTERNATIVES = (("compare", ("reference", "backend")), ("only", ("skip",)))


def with_configuration(
    options: argparse.Namespace, arguments: Sequence[str], build_parser: Callable[[], Parser]
) -> argparse.Namespace:
    """The options of a command line with what the environment and a configuration say where it says nothing.

    Args:
        options: of the command line alone.
        arguments: the command line.
        build_parser: makes its parser.

    Returns:
        `options` where neither says anything; else others. `configuration` is what was used of a file, as
        records have it, and None where there is none.

    Raises:
        UsageError: the configuration, or a variable, is wrong.
    """
    options.configuration = None
    found = None if options.no_config else find_configuration(options.config)
    unwanted = _nothing() if options.no_config else None
    if found is None and not any(os.environ.get(name) for name in VARIABLES):
        options.configuration = unwanted
        return options
    parser = build_parser()
    commands = parser.commands
    own = commands[options.command_name]
    chosen = {} if found is None else values_of(found, options.command_name, commands)
    from_environment = _of_environment(own)
    given = _given(arguments, build_parser()) | set(from_environment)
    left = _left(chosen, given, own)
    own.set_defaults(**left, **from_environment)
    options = parser.parse_args(arguments)
    options.configuration = unwanted if found is None else _record(found, chosen, left, own)
    return options


def tell_configuration(options: argparse.Namespace) -> None:
    """Say which configuration is used: in the log, with `--verbose`, and where it lets something pass."""
    used = getattr(options, "configuration", None)
    if used is None or not used.file:
        return
    text = f"configuration: {used.file}: {', '.join(used.options) or 'nothing for this command'}"
    logger.info("%s", text)
    if not options.json and (options.verbose or not _LENIENT.isdisjoint(used.options)):
        tell(f"hlotool: {text}")


def _of_environment(parser: Parser) -> dict[str, Any]:
    """What variables set of a command's options, by destination."""
    settings = {setting.action.dest: setting for setting in settings_of(parser).values()}
    found = {}
    for name, dest in VARIABLES.items():
        value = os.environ.get(name)
        if not value or dest not in settings:
            continue
        choices = settings[dest].action.choices or ()
        if value not in choices:
            words = list(map(str, choices))
            raise UsageError(f"{name}={value}: it is one of {', '.join(words)}{did_you_mean(value, words)}")
        found[dest] = value
    return found


def _given(arguments: Sequence[str], parser: Parser) -> set[str]:
    """The destinations that the command line itself sets."""
    for own in parser.commands.values():
        for action in own.every_action():
            action.default = argparse.SUPPRESS
    return set(vars(parser.parse_args(arguments)))


def _left(chosen: Mapping[str, Any], given: set[str], parser: Parser) -> dict[str, Any]:
    """What of a configuration's values, by destination, remains beside what is given."""
    replaced = set(given)
    exclusive: Iterable[set[str]] = parser.exclusive_destinations()
    for group in exclusive:
        if group & given:
            replaced |= group
    for one, others in _ALTERNATIVES:
        if one in given:
            replaced.update(others)
        if not given.isdisjoint(others):
            replaced.add(one)
    return {dest: value for dest, value in chosen.items() if dest not in replaced}


def _record(
    found: Configuration, chosen: Mapping[str, Any], left: Mapping[str, Any], parser: Parser
) -> ConfigurationRecord:
    """What was used of a configuration: `left` of what it has `chosen`."""
    from hlotool.system.records import ConfigurationRecord

    keys = {setting.action.dest: key for key, setting in settings_of(parser).items()}
    keys |= {f"output_{dest}": key for dest, key in keys.items()}

    def named(dests: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(keys.get(dest, dest) for dest in dests))

    used = named(left)
    replaced = [key for key in named(chosen) if key not in used]
    return ConfigurationRecord(file=str(found.path), named=found.is_named, options=used, replaced=replaced)


def _nothing() -> ConfigurationRecord:
    """What records have for `--no-config`."""
    from hlotool.system.records import ConfigurationRecord

    return ConfigurationRecord(file="", named=True)
