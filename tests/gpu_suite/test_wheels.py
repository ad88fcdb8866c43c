"""The script that gathers wheels, up to where it needs a network: what it brings is what hlotool imports."""

from __future__ import annotations

import re
import subprocess
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


def test_a_toolkit_without_headers_is_refused(tmp_path: Path) -> None:
    done = _run("--cuda-root", str(tmp_path), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert f"no {tmp_path}/include/cuda.h" in done.stderr
    assert not (tmp_path / "out").exists()


def test_unknown_options_show_the_usage() -> None:
    done = _run("--fast")
    assert done.returncode == 2
    assert "Usage: scripts/gpu-wheels [--python PYTHON]" in done.stdout
