"""Command lines, run in this process."""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema
import pytest

from hlotool.interface.cli.main import main
from hlotool.interface.report.json_schema import FOLDER


def seconds_of_children() -> float:
    """Processor time of the child processes that have ended; other work does not change it."""
    times = os.times()
    return times.children_user + times.children_system


class Shell:
    """Runs one command of hlotool.

    Attributes:
        schema: file name of the schema that the command's records follow.
        out: what the last run wrote to stdout.
        error: what it wrote to stderr.
    """

    def __init__(self, command: str, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.command, self.schema = command, schema
        self.capsys = capsys
        self.out = self.error = ""

    def __call__(self, *arguments: object) -> int:
        code = main([self.command, *map(str, arguments)])
        self.out, self.error = self.capsys.readouterr()
        assert "Traceback" not in self.error
        return code

    def json(self, *arguments: object) -> dict[str, Any]:
        """The record printed; its exit code is that of the command."""
        code = self(*arguments, "--json")
        record = self.record(self.schema)
        assert record["exit_code"] == code
        return record

    def record(self, schema: str) -> dict[str, Any]:
        """What was printed last; it follows the schema."""
        record: dict[str, Any] = json.loads(self.out)
        jsonschema.validate(record, json.loads((FOLDER / schema).read_text(encoding="utf-8")))
        return record
