"""Every command has its function, which returns a result that says all that the command can show."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import hlotool
from hlotool.interface.api.results import FindingsResult, Result
from hlotool.interface.cli.command import Command, named
from hlotool.interface.cli.commands import COMMANDS

#: The only command without a function: it gives the terminal and the signals to another program, and ends as
#: that does.
ACCOMPANIED = "exec"

#: Who else is told: `FindingsResult` has a method for each; annotations are for a command's stderr.
TOLD = ("to_dict", "to_csv", "to_page", "to_junit", "to_sarif")

WITH_FUNCTION = [
    pytest.param(command, id=command.name) for command in COMMANDS if command.name != ACCOMPANIED
]


def returned(command: Command) -> Any:
    function = named(command.function)
    return getattr(inspect.getmodule(function), inspect.signature(function).return_annotation)


@pytest.mark.parametrize("command", WITH_FUNCTION)
def test_functions_are_public_and_described(command: Command) -> None:
    function = named(command.function)
    about = inspect.getdoc(function) or ""
    assert getattr(hlotool, function.__name__) is function
    assert "Raises:" in about or not inspect.signature(function).parameters
    assert all(f"\n    {name}: " in about for name in inspect.signature(function).parameters)


@pytest.mark.parametrize("command", WITH_FUNCTION)
def test_functions_return_results(command: Command) -> None:
    assert issubclass(returned(command), Result)


@pytest.mark.parametrize("command", WITH_FUNCTION)
def test_who_else_is_told_has_a_method(command: Command) -> None:
    assert issubclass(returned(command), FindingsResult) == command.reports
    assert all(hasattr(FindingsResult, method) for method in TOLD)


def test_a_function_writes_no_files_unless_it_is_told_where() -> None:
    """Alone for that a command has other defaults."""
    other = {
        (command.name, one.name)
        for command in COMMANDS
        for one in command.arguments.options.values()
        if one.default_typed != one.default
    }
    assert other == {("bisect", "repro"), ("exec", "repro")}
