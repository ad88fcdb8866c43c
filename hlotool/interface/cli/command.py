"""What a command of the command line is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hlotool.runs.options.declared import Arguments


@dataclass(frozen=True, slots=True)
class Command:
    """A command. Its code, and the declaration of its options, are imported when they are needed.

    Attributes:
        usage: its name and what follows it.
        about: one line for the list of commands.
        function: of the API, by module and name, which declares the options and does the work; of `exec`,
            which is none, the class of its options.
        reports: whether its findings can be written for others, too.
        execute: what calls the function and shows the result, by module and name.
        description: the first paragraph of its help.
        examples: below the options, before the exit codes.
    """

    usage: str
    about: str
    function: str
    reports: bool = False
    execute: str = "hlotool.interface.cli.calling:execute"
    description: str = ""
    examples: str = ""

    @property
    def name(self) -> str:
        """The word that is typed."""
        return self.usage.split()[0]

    @property
    def arguments(self) -> type[Arguments]:
        """The declaration of its options."""
        found = named(self.function)
        declared: type[Arguments] = (
            found if isinstance(found, type) else getattr(found, "arguments", Arguments)
        )
        return declared

    def __call__(self, arguments: argparse.Namespace) -> int:
        """Run the command; returns the exit code."""
        run: Callable[[Command, argparse.Namespace], int] = named(self.execute)
        return run(self, arguments)


def named(place: str) -> Any:
    """What a module defines, by `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
