"""Every command has its function, every option its argument, with the same default."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hlotool
from hlotool.api.results import FindingsResult, Result
from hlotool.cli.main import build_parser

#: Commands whose functions are called otherwise: `hlotool.run` has always executed a module, and plug-ins
#: import from the packages `hlotool.backends` and `hlotool.repro`.
FUNCTIONS = {"run": "replay", "repro": "verify", "backends": "list_backends", "baseline": "update_baseline"}

#: Commands without a function, and why.
WITHOUT = {"exec": "it gives the terminal and the signals to another program, and ends as that does"}

#: They say what is shown: `Result.report`, `Result.to_dict`, the log of `logging`, Python's own traceback.
SHOWN = {"help", "json", "quiet", "verbose", "log", "debug"}

#: They say who else is told: `FindingsResult` has a method for each; annotations are for a command's stderr.
TOLD = {
    "record": "to_dict",
    "format": "to_csv",
    "html": "to_page",
    "junit": "to_junit",
    "sarif": "to_sarif",
    "github": "",
}

#: They say where the defaults of a command line come from; a function has its own.
CONFIGURATION = {"config", "no_config"}

#: Options that are no arguments, and why.
ELSEWHERE = {
    ("check", "list_rules"): "hlotool.list_rules",
    ("check", "explain_fusion"): "hlotool.explain_fusion",
    ("check", "fix"): "hlotool.mend",
    ("check", "output"): "what hlotool.mend returns is a module",
    ("opt", "list_passes"): "hlotool.list_passes",
    ("explain", "list"): "hlotool.list_messages",
    **dict.fromkeys(
        ((c, "show_scale") for c in ("run", "bisect", "reduce", "prove", "mutate")), "hlotool.show_scale"
    ),
    ("baseline", "action"): "the only one, in the name of the function",
    ("repro", "action"): "the only one, in the name of the function",
}
#: Arguments that are no options, and why.
ONLY_HERE = {
    "ignore": "[[check.ignore]] of a configuration",
    "course": "a command shows its progress on the terminal",
    "output_rtol": "--rtol OUTPUT:VALUE",
    "output_atol": "--atol OUTPUT:VALUE",
}
#: Defaults that differ, and why.
OTHER_DEFAULTS = {
    ("bisect", "repro"): "a function writes no files unless it is told where",
    ("fuzz", "out"): "it has to be given",
}


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


COMMANDS = {name: parser for name, parser in commands().items() if name not in WITHOUT}


def function_of(command: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(hlotool, FUNCTIONS.get(command, command))
    return found


def options_of(command: str) -> Iterator[argparse.Action]:
    for action in COMMANDS[command]._actions:
        if action.dest not in SHOWN | CONFIGURATION | set(TOLD) and (command, action.dest) not in ELSEWHERE:
            yield action


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_arguments(command: str) -> None:
    parameters = inspect.signature(function_of(command)).parameters
    assert {action.dest for action in options_of(command)} == set(parameters) - set(ONLY_HERE)


@pytest.mark.parametrize("command", COMMANDS)
def test_positional_ones_are_positional(command: str) -> None:
    positional = [action.dest for action in options_of(command) if not action.option_strings]
    parameters = inspect.signature(function_of(command)).parameters.values()
    assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] == positional


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_the_same(command: str) -> None:
    parameters = inspect.signature(function_of(command)).parameters
    for action in options_of(command):
        if not action.option_strings or (command, action.dest) in OTHER_DEFAULTS:
            continue
        default, given = parameters[action.dest].default, COMMANDS[command].get_default(action.dest)
        assert (default or None) == (given or None) if not isinstance(default, bool) else default is given, (
            f"{command} --{action.dest}: {given!r}, and {default!r} in the function"
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_functions_are_described(command: str) -> None:
    function = function_of(command)
    about = inspect.getdoc(function) or ""
    names = set(inspect.signature(function).parameters)
    assert "Raises:" in about or not names
    assert not [name for name in names if f"\n    {name}: " not in about]


@pytest.mark.parametrize("command", COMMANDS)
def test_functions_return_results(command: str) -> None:
    function = function_of(command)
    home = inspect.getmodule(function)
    returned = inspect.signature(function).return_annotation
    assert issubclass(getattr(home, returned), Result)


@pytest.mark.parametrize("command", COMMANDS)
def test_who_else_is_told_has_a_method(command: str) -> None:
    function = function_of(command)
    returned = getattr(inspect.getmodule(function), inspect.signature(function).return_annotation)
    options = {action.dest for action in COMMANDS[command]._actions}
    assert options & set(TOLD) in (set(), set(TOLD))
    assert issubclass(returned, FindingsResult) == (set(TOLD) <= options)
    assert all(hasattr(FindingsResult, method) for method in TOLD.values() if method)


def test_the_exceptions_are_still_needed() -> None:
    """A name that has gone from a parser goes from the lists above."""
    known = {(name, action.dest) for name, parser in COMMANDS.items() for action in parser._actions}
    assert set(WITHOUT) <= set(commands())
    assert set(ELSEWHERE) | set(OTHER_DEFAULTS) <= known
    assert {name for name in ELSEWHERE.values() if name.startswith("hlotool.")} <= {
        f"hlotool.{name}" for name in hlotool.__all__
    }
    assert set(ONLY_HERE) <= {
        name for command in COMMANDS for name in inspect.signature(function_of(command)).parameters
    }
