"""`hlotool explain`: where the text comes from, what is printed, the instruction in a dump."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from hlotool.interface.cli.main import main

LOGS = Path(__file__).resolve().parents[1] / "checks" / "logs"
MESSAGE = (
    "Tensor which is moved to host (starting from move_to_host.1) is returned from the entry computation "
    "but the layout for this output is not set to host memory."
)
MODULE = """\
HloModule step, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY main {
  x = f32[8]{0} parameter(0)
  ROOT move_to_host.1 = f32[8]{0} custom-call(x), custom_call_target="MoveToHost", METADATA
}
""".replace("METADATA", 'metadata={op_name="jit(step)/put" source_file="train.py" source_line=12}')


class Stdin:
    def __init__(self, text: str, is_terminal: bool = False) -> None:
        self.buffer = io.BytesIO(text.encode())
        self.isatty = lambda: is_terminal


def test_a_message_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *MESSAGE.split()]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("E1200  ")
    assert "https://openxla.org/xla/errors/error_1200" in shown


def test_a_log_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(LOGS / "tf_while_bound.log")]) == 0
    shown = capsys.readouterr().out
    assert "tf-while-bound" in shown
    assert "maximum_iterations" in shown


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "-"]])
def test_standard_input(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin((LOGS / "jax_nan.log").read_text(encoding="utf-8")))
    assert main(arguments) == 0
    assert "jax-nan" in capsys.readouterr().out


@pytest.mark.parametrize("is_terminal", [True, False])
def test_alone_it_lists_what_there_is(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Stdin("", is_terminal))
    assert main(["explain"]) == 0
    shown = capsys.readouterr().out
    for word in ("out of memory", "equal where", "recompilation", "shape-mismatch", "E1200"):
        assert word in shown
    assert main(["explain", "-"]) == 3


def test_a_verdict_is_explained_offline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("socket.socket.connect", None)
    assert main(["explain", "not", "compared"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("not compared  The program ran, but there was nothing to compare it with.")
    assert "docs/verdicts/not-compared.md" in shown


def test_more_of_a_page_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "wrong"]) == 0
    short = capsys.readouterr().out
    assert main(["explain", "wrong", "--verbose"]) == 0
    assert "known_trip_count" not in short
    assert "known_trip_count" in capsys.readouterr().out


def test_a_record_has_the_topics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "equal where", "--json"]) == 0
    [topic] = json.loads(capsys.readouterr().out)["topics"]
    assert (topic["name"], topic["kind"]) == ("equal where", "prove")


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "wrnog"]) == 2
    assert "did you mean 'wrong'?" in capsys.readouterr().err


def test_every_help_points_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "bisect", "check"):
        assert main([command, "--help"]) == 0
        assert "hlotool explain wrong" in capsys.readouterr().out


def test_nothing_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "all is well"]) == 3
    assert "nothing recognised" in capsys.readouterr().out


def test_the_instruction_of_a_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module_0000.step.before_optimizations.txt").write_text(MODULE, encoding="utf-8")
    assert main(["explain", MESSAGE, "--dump", str(tmp_path), "--json"]) == 0
    [match] = json.loads(capsys.readouterr().out)["matches"]
    [place] = match["places"]
    assert place["module"] == "module_0000.step"
    assert place["source"]["line"] == 5
    assert (place["source"]["file"], place["source"]["file_line"]) == ("train.py", 12)
    assert main(["explain", MESSAGE, "--dump", str(tmp_path)]) == 0
    assert "train.py:12" in capsys.readouterr().out


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "E1200 " in shown
    assert "tf-rng-seed " in shown
