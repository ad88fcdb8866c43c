"""Commands on programs for several devices: what each takes, and what it writes for the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.parser.reader import parse_module


@pytest.fixture
def collectives(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dump for eight devices: on global arrays, then for each device."""
    monkeypatch.chdir(tmp_path)
    return corpus / "jax/collectives"


def test_a_partitioned_stage_as_reference_takes_global_inputs(
    collectives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["--inputs", str(collectives / "inputs.npz")]
    stages = ["--stages", "cpu_after_optimizations,before_optimizations"]
    assert main(["run", str(collectives), *inputs, *stages]) == ExitCode.AGREE
    assert "with cpu_after_optimizations" in capsys.readouterr().out


def test_what_is_extracted_has_the_values_of_each_device(
    collectives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["--inputs", str(collectives / "inputs.npz")]
    arguments = [
        "extract",
        str(collectives),
        "psum.7",
        "--stage",
        "cpu_after_optimizations",
        "-o",
        "psum.hlo",
    ]
    assert main([*arguments, *inputs]) == ExitCode.AGREE
    assert main(capsys.readouterr().out.strip().splitlines()[-1].split()[2:]) == ExitCode.NOTHING_COMPARED
    given, whole = np.load("psum.npz"), np.load(collectives / "inputs.npz")["arg_0"]
    # The sharding of the parameter: devices=[4,2]<=[8].
    parts = [whole[4 * x : 4 * x + 4, 4 * y : 4 * y + 4] for x in range(4) for y in range(2)]
    np.testing.assert_array_equal([given[f"arg_0@{device}"] for device in range(8)], parts)


def test_what_is_reduced_keeps_its_exchange(collectives: Path, tmp_path: Path) -> None:
    """A command that wants a permute of two pairs gets one, and arguments for the devices that it needs."""
    script = tmp_path / "fails.sh"
    script.write_text('#!/bin/sh\ngrep -q "source_target_pairs={{[0-9]*,[0-9]*},{" "$1" && exit 1\nexit 0\n')
    script.chmod(0o755)
    file = next(collectives.glob("*cpu_after_optimizations.txt"))
    arguments = [
        "reduce",
        str(file),
        "--check",
        str(script),
        "-o",
        "small.hlo",
        "--repro",
        "bundle",
        "--quiet",
    ]
    assert main(arguments) == ExitCode.MISMATCH
    module = parse_module(Path("small.hlo").read_text(encoding="utf-8"))
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "collective-permute"]
    count = module.num_partitions
    assert count == 4
    assert sorted(np.load("small.npz").files) == [f"arg_0@{device}" for device in range(count)]
    assert main(["repro", "verify", "bundle", "--trust"]) == ExitCode.MISMATCH
    assert not Path("bundle/inputs.pb").exists()
    assert "check" in Path("bundle/repro.toml").read_text(encoding="utf-8")


#: In the program for each device of `sharded_mlp`: on device 5 of eight an argument is 4e-7 larger.
OFF = """  %own = u32[] partition-id()
  %faulty = u32[] constant(5)
  %on = pred[] compare(%own, %faulty), direction=EQ
  %off = f32[] constant(1.0000004)
  %one = f32[] constant(1)
  %chosen = f32[] select(%on, %off, %one)
  %factor = f32[2,6]{1,0} broadcast(%chosen), dimensions={}
  %near = f32[2,6]{1,0} multiply(%param, %factor)
  %dot = f32[2,4]{1,0} dot(%near,"""


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["run"], ExitCode.AGREE, "≠ differs"),
        (["prove"], ExitCode.MISMATCH, "✗ unequal"),
        (["bisect", "--exact", "--try-on", "none"], ExitCode.MISMATCH, "changed      %dot"),
    ],
)
def test_what_no_value_shows_is_found_on_its_device(
    command: list[str],
    code: ExitCode,
    said: str,
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dump").mkdir()
    for file in (corpus / "jax/sharded_mlp").glob("*.txt"):
        text = file.read_text(encoding="utf-8").replace("  %dot = f32[2,4]{1,0} dot(%param,", OFF)
        Path("dump", file.name).write_text(text, encoding="utf-8")
    name, *options = command
    assert main([name, "dump", *options]) == code
    shown = capsys.readouterr().out
    assert said in shown
    assert " 5, the first with another value" in shown
    assert "%dot = f32[2,4]{1,0} dot(%near" in shown or "dot %dot" in shown
    assert "out  f32[8,4]" in shown or "out     ✗ unequal" in shown
