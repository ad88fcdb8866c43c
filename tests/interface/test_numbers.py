"""Every option that takes a number, and absurd numbers: one line that says which ones it takes."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import build_parser, main
from hlotool.runs.options import parsers

_DIGITS = "9" * 5000
#: No option takes any of these, whatever kind of number it wants.
_NEVER = ("", "abc", "nan", "-inf", "1e400", "0x10", "٣", "1_0", "--", "\x1b[31m", "1 2")
_NEVER_WHOLE = ("-1", "1.5", "1e3", "99999999999999999999999", _DIGITS, "+1", "1\n")


_PARSER = build_parser()


def _options() -> Iterator[tuple[str, argparse.Action]]:
    (commands,) = (a for a in _PARSER._actions if isinstance(a, argparse._SubParsersAction))
    for name, parser in commands.choices.items():
        yield from ((name, action) for action in parser._actions if action.type is not None)


#: The parsers of numbers, and what each refuses beyond `_NEVER`.
_REFUSED = {
    parsers.seed: _NEVER_WHOLE,
    parsers.processes: (*_NEVER_WHOLE, "0", "1025"),
    parsers.devices: (*_NEVER_WHOLE, "0", "1025"),
    parsers.repetitions: (*_NEVER_WHOLE, "0", "10001"),
    parsers.distance: _NEVER_WHOLE,
    parsers.byte_size: ("-1", "0", "1023K", "99999999999T", _DIGITS, "1e9", "8X"),
    parsers.seconds: ("-1", "0", "1e-400", "1e10", "1e308", "inf", _DIGITS),
    parsers.tolerance: ("-1", "inf", _DIGITS),
    parsers.confidence: ("0", "1", "-0.9", "2", "inf"),
    parsers.value_range: ("1,1", "2,1", "nan,1", "1,nan", "0,inf", "1e308,1e400", "1"),
    parsers.budget: ("-1", "-1x", "inf", "nanx", "x", "1xx"),
}
_NUMERIC = [(command, action) for command, action in _options() if action.type in _REFUSED]


def test_no_option_takes_whatever_python_takes_for_a_number() -> None:
    lenient = [(command, action.dest) for command, action in _options() if action.type in (int, float)]
    assert lenient == []
    assert len(_NUMERIC) > 20


@pytest.mark.parametrize("parser", _REFUSED, ids=lambda parser: getattr(parser, "__name__", str(parser)))
def test_absurd_numbers_are_refused_in_a_short_line(parser: object) -> None:
    assert callable(parser)
    for text in (*_NEVER, *_REFUSED[parser]):
        with pytest.raises(argparse.ArgumentTypeError) as found:
            parser(text)
        assert len(str(found.value)) < 200, text[:50]


@pytest.mark.parametrize(
    ("command", "action"), _NUMERIC, ids=[f"{command} {action.dest}" for command, action in _NUMERIC]
)
def test_they_end_the_command_before_it_begins(
    command: str, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        _PARSER.parse_args([command, f"{action.option_strings[-1]}={_DIGITS}x"])
    assert end.value.code == ExitCode.USAGE
    error = capsys.readouterr().err
    assert action.option_strings[-1] in error
    assert len(error) < 400


@pytest.mark.parametrize("fuel", ["", "-1", "cse=-1", "cse=", "abc", _DIGITS, "٣"])
def test_so_does_fuel(fuel: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = Path(__file__).parents[2] / "corpus" / "modules" / "dot.batched.hlo"
    assert main(["opt", str(program), "--passes", "cse", f"--pass-fuel={fuel}"]) == ExitCode.USAGE
    assert "--pass-fuel" in capsys.readouterr().err


def test_the_greatest_numbers_are_ones_that_the_system_takes() -> None:
    assert parsers.seed(str((1 << 63) - 1)) < 1 << 63
    assert parsers.seconds("4e6") < threading.TIMEOUT_MAX
    assert parsers.byte_size("1048576T") == 1 << 60
    assert parsers.byte_size("none") == 0
