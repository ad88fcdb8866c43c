"""The script that gathers wheels, up to where it needs a network: what it brings is what hlotool imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "gpu-wheels"

#: Large, and there wherever XLA runs on a GPU.
_NOT_CARRIED = {"numpy", "scipy", "ml-dtypes"}


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", str(SCRIPT), *options], capture_output=True, encoding="utf-8", timeout=60)


def test_every_requirement_is_carried_in_a_version_that_fits() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = tomllib.load(file)["project"]["dependencies"]
    carried = dict(re.findall(r"([\w-]+)==([\d.]+)", SCRIPT.read_text(encoding="utf-8")))
    named = {name.lower().replace("_", "-"): version for name, version in carried.items()}
    for requirement in wanted:
        name, least = re.match(r"([\w-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
        name = name.replace("_", "-")
        if name not in _NOT_CARRIED:
            versions = [tuple(map(int, v.split("."))) for v in (named[name], least)]
            assert versions[0] >= versions[1], requirement


def test_what_the_tests_of_a_gpu_need_to_start_is_carried() -> None:
    """What conftest imports, and the plug-in whose options the settings of pytest name."""
    carried = set(re.findall(r"([\w-]+)==", SCRIPT.read_text(encoding="utf-8")))
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:import|from) (\w+)", conftest, re.MULTILINE))
    assert imported - sys.stdlib_module_names <= carried
    with (ROOT / "pyproject.toml").open("rb") as file:
        options = tomllib.load(file)["tool"]["pytest"]["ini_options"]["addopts"]
    assert ("--dist" not in options) or {"pytest-xdist", "execnet"} <= carried


def test_a_toolkit_without_headers_is_refused(tmp_path: Path) -> None:
    done = _run("--cuda-root", str(tmp_path), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert f"no {tmp_path}/include/cuda.h" in done.stderr
    assert not (tmp_path / "out").exists()


def test_unknown_options_show_the_usage() -> None:
    done = _run("--fast")
    assert done.returncode == 2
    assert "Usage: scripts/gpu-wheels [--python PYTHON]" in done.stdout
