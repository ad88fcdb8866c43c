"""Real miscompiles of released compilers: is the optimised HLO wrong, or only what it was made into?"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hlotool.backends.registry import get_backend
from hlotool.interface.cli.main import main

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
ENTRIES: list[dict[str, Any]] = [
    entry
    for entry in tomllib.loads((CORPUS / "MANIFEST.toml").read_text(encoding="utf-8"))["directory"]
    if entry["path"].startswith("miscompiles/")
]
ENTRIES.append(
    {
        "path": "jax/int4_product",
        "program": "int4_product",
        "fault": {"level": "pass", "pass": "float-normalization-s4"},
    }
)
CASES = [pytest.param(entry, id=entry["program"]) for entry in ENTRIES]
#: Those that were run; of others the device was not there.
RUN = [pytest.param(entry, id=entry["program"]) for entry in ENTRIES if "target" not in entry]
HEALTHY = {"identical", "agree"}


def values_of(folder: Path) -> list[str]:
    """The options that give what was captured, if the program ran."""
    names = {"--inputs": folder / "inputs.npz", "--outputs": folder / "outputs.npz"}
    return [part for option, path in names.items() if path.exists() for part in (option, str(path))]


@pytest.mark.parametrize("entry", RUN)
def test_the_level_of_a_miscompile_shows(entry: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    folder = CORPUS / entry["path"]
    assert main(["run", str(folder), *values_of(folder), "--json", "--no-resume"]) == 1
    optimized, real = json.loads(capsys.readouterr().out)["modules"]
    assert optimized["stage_tested"] == "cpu_after_optimizations"
    assert (optimized["verdict"] in HEALTHY) == (entry["fault"]["level"] != "pass")
    assert real["verdict"] == "wrong"


@pytest.mark.parametrize("entry", CASES)
def test_one_command_finds_the_culprit(
    entry: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    folder, fault = CORPUS / entry["path"], entry["fault"]
    where = ["--repro", str(tmp_path / "repro"), "--try-on", "none"]
    assert main(["bisect", str(folder), *values_of(folder), "--json", *where]) == 1
    [culprit] = json.loads(capsys.readouterr().out)["culprits"]
    assert (culprit["level"], culprit["pass"]) == (fault["level"], fault.get("pass", ""))
    assert culprit["confirmed"]
    assert set(fault.get("opcodes", culprit["opcodes"])) & set(culprit["opcodes"])
    assert main(["repro", "verify", culprit["repro"]]) == 1  # it still fails


def interpreters() -> list[str]:
    """Of this interpreter's jaxlib, and of those that HLOTOOL_JAXLIBS names."""
    others = filter(None, os.environ.get("HLOTOOL_JAXLIBS", "").split(os.pathsep))
    return ["xla", *(f"xla:python={python}" for python in others)]


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.parametrize("backend", interpreters())
@pytest.mark.parametrize("entry", RUN)
def test_bundles_trigger_where_xla_is_wrong(
    entry: dict[str, Any],
    backend: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The corpus tells in which version XLA is wrong; in others the program as given decides."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    folder = CORPUS / entry["path"]
    inputs = ["--inputs", str(folder / "inputs.npz")]
    where = ["--repro", str(tmp_path / "repro"), "--try-on", backend]
    assert main(["bisect", str(folder), *values_of(folder), "--json", *where]) == 1
    [culprit] = json.loads(capsys.readouterr().out)["culprits"]
    [given] = folder.glob("*before_optimizations.txt")
    is_wrong = main(["run", str(given), *inputs, "--test", backend, "--no-resume"]) == 1
    trigger, version = culprit["trigger"], get_backend(backend).version.split()[1]
    assert trigger["compiler"] == f"jaxlib {version}"
    assert trigger["status"] == ("triggers" if is_wrong else "does not trigger")
    assert is_wrong or version != entry.get("versions", {"jaxlib": "0.10.2"})["jaxlib"]
    assert not (is_wrong and version == entry["fault"].get("right_on"))
    again = ["repro", "verify", culprit["repro"], *(["--backend", backend] if is_wrong else [])]
    assert main(again) == 1
    assert "in the same way" in capsys.readouterr().out
    readme = Path(culprit["repro"], "README.md").read_text(encoding="utf-8")
    assert f"riggers on jaxlib {version}." in readme or f"oes not trigger on jaxlib {version}." in readme
