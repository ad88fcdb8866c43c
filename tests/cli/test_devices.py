"""Commands on programs for several devices: what each takes, and what it writes for the next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlotool.cli.main import main
from hlotool.errors import ExitCode
from hlotool.parse.reader import parse_module


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
    assert "expected  cpu_after_optimizations" in capsys.readouterr().out


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
