"""An option is declared once: all that is made of its declaration has it, and goes with it."""

from __future__ import annotations

import ast
import doctest
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.budget import HUNG

from hlotool.errors import UsageError
from hlotool.runs.options import declared
from hlotool.runs.options.declared import Arguments, As, Words, option, takes

ROOT = Path(__file__).resolve().parents[2]
#: What shows the options of `run`, each by its name and in its place.
SHOWN = """
import inspect, json, sys
sys.path.insert(0, "docs/site")
import generated, hlotool
from hlotool.interface.cli.main import build_parser
from hlotool.interface.cli.configuration import settings_of
from hlotool.runs.options.kept import RunOptions
parser = build_parser().commands["run"]
print(json.dumps({
    "help": parser.format_help(),
    "signature": str(inspect.signature(hlotool.replay)),
    "docstring": inspect.getdoc(hlotool.replay),
    "configuration": list(settings_of(parser)),
    "record": RunOptions.__struct_fields__,
    "page": generated.addition_to("commands/run.md"),
}))
"""


def shown(checkout: Path) -> dict[str, str]:
    found = subprocess.run(
        [sys.executable, "-c", SHOWN],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
    )
    assert found.returncode == 0, found.stderr
    return {place: str(content) for place, content in json.loads(found.stdout).items()}


def without(checkout: Path, file: str, name: str) -> Path:
    """A checkout whose file does not declare an option; all else are links to this one."""
    (checkout / "hlotool").mkdir(parents=True)
    (checkout / "hlotool/runs").mkdir()
    for folder in (".", "hlotool", "hlotool/runs"):
        for entry in (ROOT / folder).iterdir():
            if entry.name not in ("hlotool", "runs", "options", "__init__.py", ".git"):
                (checkout / folder / entry.name).symlink_to(entry)
    shutil.copy(ROOT / "hlotool/__init__.py", checkout / "hlotool")
    shutil.copy(ROOT / "hlotool/runs/__init__.py", checkout / "hlotool/runs")
    shutil.copytree(ROOT / "hlotool/runs/options", checkout / "hlotool/runs/options")
    path = checkout / "hlotool/runs/options" / file
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    [statement] = [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name
    ]
    assert statement.end_lineno is not None
    del lines[statement.lineno - 1 : statement.end_lineno]
    path.write_text("".join(lines), encoding="utf-8")
    return checkout


@pytest.mark.parametrize(("file", "name"), [("replaying.py", "save_values"), ("shared.py", "input_range")])
def test_an_option_goes_with_its_declaration(file: str, name: str, tmp_path: Path) -> None:
    typed = name.replace("_", "-")
    before, after = shown(ROOT), shown(without(tmp_path / "checkout", file, name))
    for place in before:
        word = typed if place in ("help", "configuration", "page") else name
        assert word in before[place], place
        assert word not in after[place], place


def test_the_example() -> None:
    assert doctest.testmod(declared).failed == 0


class Shared(Arguments, group="one"):
    first: int = option("the first [7]", default=7)
    second: str = option("the second [all]", "the second; all when empty", default="")


class Own(Shared, group="two"):
    place: As[str | Path, str] = option("where", kw_only=False, convert=str)
    first: int = option("no longer the first [8]", default=8)
    switch: bool = option("on", default=False)
    typed: bool = option("of a command line", default=False, init=False)


@takes(Own)
def called(asked: Own) -> tuple[str, int, str, bool]:
    """Call it.

    Raises:
        UsageError: something is impossible.
    """
    return asked.place, asked.first, asked.second, asked.switch


def test_arguments_of_a_function() -> None:
    assert called(Path("x"), switch=True) == ("x", 8, "", True)
    assert called(place="y", first=9, second="z") == ("y", 9, "z", False)
    assert [one.group for one in Own.options.values()] == ["two"] * 5
    assert [one.group for one in Shared.options.values()] == ["one"] * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"place": "x", "third": 1}, "unexpected keyword argument 'third'"),
        ({}, "missing a required argument: 'place'"),
        ({"place": "x", "typed": True}, "unexpected keyword argument 'typed'"),
    ],
)
def test_python_says_what_is_wrong(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        called(**given)


def test_the_docstring_has_all_arguments_before_what_is_raised() -> None:
    assert (called.__doc__ or "").splitlines() == [
        "Call it.",
        "",
        "Args:",
        "    place: where.",
        "    first: no longer the first.",
        "    second: the second; all when empty.",
        "    switch: on.",
        "",
        "Raises:",
        "    UsageError: something is impossible.",
    ]


def test_what_is_declared_must_be_known() -> None:
    with pytest.raises(AssertionError, match="mtavar"):
        option("a value", mtavar="X")


PROGRAM = """
from hlotool.runs.options.declared import Arguments, As, Words, option, takes
class Own(Arguments):
    place: As[str | bytes, str] = option("where", kw_only=False)
    words: Words = option("some", default=())
    seed: int = option("a number", default=0)
    typed: bool = option("of a command line", default=False, init=False)
@takes(Own)
def called(asked: Own) -> int:
    reveal_type(asked.place)
    reveal_type(asked.words)
    return asked.seed
called(b"x", seed=1, words=["a"])
called(place="x", words="a,b")
called("x", sed=1)
called("x", seed="1")
called("x", typed=True)
called()
"""


def test_type_checkers_know_the_arguments(tmp_path: Path) -> None:
    """Those of users, too: a function has the types that are given, its body those that are kept."""
    mypy = pytest.importorskip("mypy.api")
    path = tmp_path / "own.py"
    path.write_text(PROGRAM)
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--hide-error-codes"]
    shown, problems, _ = mypy.run([*options, f"--cache-dir={tmp_path / 'cache'}", str(path)])
    assert problems == ""
    said = [line.partition(".py:")[2] for line in shown.splitlines()]
    assert [line for line in said if "defined in" not in line] == [
        '10: note: Revealed type is "str"',
        '11: note: Revealed type is "tuple[str, ...]"',
        '15: error: Unexpected keyword argument "sed" for "called"; did you mean "seed"?',
        '16: error: Argument "seed" to "called" has incompatible type "str"; expected "int"',
        '17: error: Unexpected keyword argument "typed" for "called"',
        '18: error: Missing positional argument "place" in call to "called"',
    ]


def test_values_of_python_are_checked_as_typed_ones_are() -> None:
    class Kinds(Arguments):
        words: Words = option("some", default=(), parse=declared.words)
        one: str = option("of two", default="a", choices=("a", "b"))

    assert Kinds(words="a, b").words == Kinds(words=["a", "b"]).words == ("a", "b")
    assert Kinds(words=["a,b"]).words == ("a,b",)
    assert Kinds.options["one"].description == "of two (`a`, `b`)."
    with pytest.raises(UsageError, match=r"one='c': it is one of a, b"):
        Kinds(one="c")
