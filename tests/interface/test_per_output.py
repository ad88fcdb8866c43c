"""What the user decides about single outputs, and the values of single instructions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

PROGRAM = """HloModule jit_f
ENTRY main {{
  x = f32[4,6] parameter(0)
  d = f32[] constant({delta})
  e = f32[4,6] broadcast(d), dimensions={{}}
  y = f32[4,6] add(x, e)
  i = s32[4,6] convert(x)
  ROOT t = (f32[4,6], f32[4,6], s32[4,6]) tuple(y, x, i)
}}
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """The optimised program adds 0.001 more to the first output."""
    folder = tmp_path / "dump"
    folder.mkdir()
    for stage, delta in (("before_optimizations", 1.0), ("cpu_after_optimizations", 1.001)):
        (folder / f"module_0001.jit_f.{stage}.txt").write_text(PROGRAM.format(delta=delta))
    return folder


def verdicts(dump: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str], Any]:
    code = main(["run", str(dump), "--json", *options])
    record = json.loads(capsys.readouterr().out)
    return code, [leaf["verdict"] for leaf in record["modules"][0]["leaves"]], record


def test_a_tolerance_of_one_output(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = verdicts(dump, capsys)
    assert (code, found) == (ExitCode.MISMATCH, ["wrong", "identical", "identical"])
    code, found, record = verdicts(dump, capsys, "--atol", "out[0]:0.01", "--rtol", "out[7]:1")
    assert (code, found) == (ExitCode.AGREE, ["agree", "identical", "identical"])
    [note] = record["notes"]
    assert note.startswith(
        "no program has the output out[7], which a tolerance was given for; did you mean 'out["
    )
    # One of another output is none of this one, and one of all outputs yields to its own.
    assert verdicts(dump, capsys, "--atol", "out[1]:0.01")[0] == ExitCode.MISMATCH
    assert verdicts(dump, capsys, "--atol", "0.01", "--atol", "out[0]:0.0001")[0] == ExitCode.MISMATCH


def test_a_comparison_of_the_users_own(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "compare.py"
    script.write_text(
        "import numpy as np\n"
        "def close(output, expected, actual):\n"
        "    return np.allclose(expected, actual, atol=0.01) if output == 'out[0]' else None\n"
        "def far(output, expected, actual):\n"
        "    return 'too far' if (expected != actual).any() else True\n"
        "def odd(output, expected, actual):\n"
        "    return 3\n"
    )
    code, found, record = verdicts(dump, capsys, "--compare-with", f"{script}:close")
    assert (code, found[0]) == (ExitCode.AGREE, "agree")
    assert record["modules"][0]["leaves"][0]["reason"] == "agrees, says --compare-with"
    code, found, record = verdicts(dump, capsys, "--compare-with", f"{script}:far", "--atol", "1")
    assert (code, found) == (ExitCode.MISMATCH, ["wrong", "identical", "identical"])
    assert record["modules"][0]["leaves"][0]["reason"] == "too far, says --compare-with"
    code, _, record = verdicts(dump, capsys, "--compare-with", f"{script}:odd")
    assert code == ExitCode.USAGE
    assert "returned int, not a bool, a str or None" in record["modules"][0]["reason"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rtol", "first:1"], "'first' is no output"),
        (["--rtol", "out[0]:much"], "'much' is no number"),
        (["--atol", "out[0]:-1"], "no tolerance"),
        (["--compare-with", "compare.py"], "is no function"),
        (["--compare-with", "nowhere.py:f"], "nowhere.py:f: no such file"),
    ],
)
def test_mistakes(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "dump", *options]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_values_of_instructions(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "values"
    main(["run", str(dump), "--save-values", str(folder), "--values", "^[yt]$"])
    assert "values of 2 instructions" in capsys.readouterr().out
    before, after = sorted(folder.glob("*/*"))
    assert sorted(path.name for path in before.glob("*.npy")) == ["t.0.npy", "t.1.npy", "t.2.npy", "y.npy"]
    assert {path.name for path in before.iterdir()} >= {"values.json", "program.txt", "arguments.npz"}
    sides = [np.load(side / "y.npy") for side in (before, after)]
    np.testing.assert_allclose(sides[1] - sides[0], 0.001, rtol=1e-3)


def test_values_in_loops_have_a_file_for_each_call(tmp_path: Path) -> None:
    from hlotool.runs.saved_values import MOST_CALLS

    program = tmp_path / "loop.hlo"
    program.write_text(
        """HloModule loop
body { p = s32[] parameter(0)  one = s32[] constant(1)  ROOT n = s32[] add(p, one) }
test { p = s32[] parameter(0)  end = s32[] constant(70)  ROOT c = pred[] compare(p, end), direction=LT }
ENTRY main { z = s32[] constant(0)  ROOT w = s32[] while(z), condition=test, body=body }
"""
    )
    main(["run", str(program), "--save-values", str(tmp_path / "values"), "--values", "^n$"])
    (folder,) = (tmp_path / "values").glob("*/*")
    assert len(list(folder.glob("*.npy"))) == MOST_CALLS
    assert [int(np.load(folder / name)) for name in ("n.npy", "n@1.npy", "n@63.npy")] == [1, 2, 64]


def test_a_map_of_where(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every element of the first output is off by the same amount."""
    _, _, record = verdicts(dump, capsys)
    heat = record["modules"][0]["leaves"][0]["heat"]
    assert (heat["rows"], heat["columns"]) == (4, 6)
    np.testing.assert_allclose(heat["cells"], np.full((4, 6), 0.001), rtol=1e-3)
    main(["run", str(dump), "--verbose"])
    out = capsys.readouterr().out
    assert "where, 4 × 6 elements" in out
    assert out.count("│██████│") == 4
