"""`--exact` of `bisect` and `reduce`: faults that rounding hides, found by what programs mean."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from hlotool.blame.repro.bundle import FACTS
from hlotool.blame.repro.verify import verify
from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.interface.report.json_schema import FOLDER


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def planted(corpus: Path, tmp_path: Path) -> tuple[Path, str]:
    """A dump in which the ε of all layers is 0.1 % off from one stage on, and the label of that stage."""
    return _with_constant(corpus, tmp_path, "1e-05", "1.001e-05")


def _with_constant(corpus: Path, tmp_path: Path, constant: str, other: str) -> tuple[Path, str]:
    folder = tmp_path / "dump"
    shutil.copytree(corpus / "jax" / "nested_calls", folder)
    stages = sorted(folder.glob("*.00??.*.txt"))
    for path in [*stages[23:], *folder.glob("*after_optimizations.txt")]:
        text = path.read_text(encoding="utf-8")
        assert f"constant({constant})" in text
        path.write_text(text.replace(f"constant({constant})", f"constant({other})"), encoding="utf-8")
    return folder, stages[23].name.split(".", 3)[3].removesuffix(".txt")


def record(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, json.loads((FOLDER / f"{name}-1.json").read_text(encoding="utf-8")))
    return found


def test_bisect_finds_the_stage_and_the_constant(
    planted: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The bundle is about functions: any arguments show it, and nothing does once the ε is put right."""
    folder, label = planted
    assert main(["bisect", str(folder), "--exact", "--json", "--try-on", "none"]) == ExitCode.MISMATCH
    [culprit] = record("bisect", capsys)["culprits"]
    assert (culprit["stage"], culprit["confirmed"]) == (label, True)
    assert culprit["comparison"]["verdict"] == "unequal"
    assert "constant" in culprit["opcodes"]
    assert "exact arithmetic" in " ".join(culprit["spot"]["divergence"]["notes"])

    bundle = Path(culprit["repro"])
    assert "exact = true" in (bundle / FACTS).read_text(encoding="utf-8")
    assert "hlotool prove repro.hlo repro.after.hlo" in (bundle / "issue.md").read_text(encoding="utf-8")
    with np.load(bundle / "inputs.npz") as given:
        np.savez(bundle / "inputs.npz", **{name: np.zeros_like(given[name]) for name in given})
    assert verify(bundle).same
    after = bundle / "repro.after.hlo"
    after.write_text(after.read_text(encoding="utf-8").replace("1.001e-05", "1e-05"), encoding="utf-8")
    found = verify(bundle)
    assert (found.fails, found.exit_code) == (False, ExitCode.AGREE)


def test_without_exact_nothing_is_accused_and_it_is_said(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A compiler may round a constant so."""
    folder, _ = _with_constant(corpus, tmp_path, "0.125", "0.12500003")
    assert main(["bisect", str(folder), "--json", "--no-repro"]) == ExitCode.INCONCLUSIVE
    found = record("bisect", capsys)
    assert found["culprits"] == []
    [module] = found["modules"]
    assert module["verdict"] == "differs"
    assert module["reason"].startswith("right up to 0022 ")


def test_healthy_dumps_accuse_nobody(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus / "jax" / "nested_calls")
    assert main(["bisect", path, "--exact", "--json", "--no-repro"]) == ExitCode.AGREE
    found = record("bisect", capsys)
    assert (len(found["healthy"]), found["notes"]) == (1, [])


@pytest.mark.xla
def test_what_is_judged_by_values_alone_is_said(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What XLA makes of two texts is not what they say."""
    path = str(corpus / "jax" / "model_fn")
    assert main(["bisect", path, "--exact", "--reference", "xla", "--json", "--no-repro"]) == ExitCode.AGREE
    [note] = record("bisect", capsys)["notes"]
    assert "judged by values alone" in note


@pytest.mark.xla
def test_reduce_asks_what_the_compiler_makes_of_a_program(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """XLA multiplies numbers of four bits in eight, and forgets to wrap them: another function."""
    path = corpus / "jax" / "int4_product"
    options = ["--backend", "xla", "--exact", "--repro", str(tmp_path / "bundle"), "--quiet", "--json"]
    assert main(["reduce", str(path), *options]) == ExitCode.MISMATCH
    found = record("reduce", capsys)
    assert found["failure"] == "unequal with integers"
    assert found["instructions_after"] < found["instructions_before"]
    assert "multiply" in found["program"]
    assert verify(tmp_path / "bundle").same


def test_a_command_does_not_judge_functions(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus / "jax" / "model_fn")
    assert main(["reduce", path, "--check", "false", "--exact"]) == ExitCode.USAGE
    assert "--exact" in capsys.readouterr().err
