"""What ships: the wheel holds every package, and works in a fresh environment outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from support.budget import HUNG

ROOT = Path(__file__).resolve().parents[2]

#: What the build makes from the parsers, below the prefix of an installation.
MADE = (
    "share/man/man1/hlotool.1",
    "share/bash-completion/completions/hlotool",
    "share/zsh/site-functions/_hlotool",
    "share/fish/vendor_completions.d/hlotool.fish",
)

#: What pip says where it cannot fetch anything.
UNREACHABLE = ("Could not find a version", "No matching distribution", "Connection", "Max retries")


def test_package_list_matches_the_folders() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        listed = set(tomllib.load(file)["tool"]["setuptools"]["packages"])
    found = set()
    for folder, name in (
        ("hlotool", "hlotool"),
        ("grammar", "hlotool.grammar"),
        ("backends", "hlotool.backends"),
    ):
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join([name, *init.parent.relative_to(ROOT / folder).parts]))
    # The pages that `explain` prints, and the dump that `demo` shows, are no code.
    assert listed == found | {"hlotool.docs", "hlotool.corpus.demo"}


def test_top_level_is_what_the_project_promises() -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8")
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    documents = {
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "pyproject.toml",
    }
    folders = {"backends", "benchmarks", "corpus", "docs", "grammar", "hlotool", "scripts", "tests"}
    # GitHub and pre-commit look for these there and nowhere else.
    fixed = {".ci", ".gitignore", "action.yml", ".pre-commit-hooks.yaml"}
    assert top == fixed | documents | folders


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the checkout, in which the build leaves files behind."""
    out, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("copy")
    for name in ("hlotool", "grammar", "backends", "docs", "corpus/demo"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    pip([sys.executable, "-m", "pip"], "wheel", "--no-deps", "--wheel-dir", str(out), str(copy))
    return next(out.glob("hlotool-*.whl"))


def pip(command: list[str], *arguments: str) -> None:
    """Run pip, unaware of what lies on this process's path; skips the test where it reaches no index."""
    done = subprocess.run(
        [*command, arguments[0], "--quiet", *arguments[1:]],
        env=own_environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip(f"pip reaches no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def own_environment() -> dict[str, str]:
    """The variables of a process that finds no package of this one's."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def test_wheel_holds_everything(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "hlotool/py.typed" in names
    assert "hlotool/grammar/hlo.lark" in names
    assert "hlotool/backends/numpy/plan.py" in names
    assert "hlotool/docs/verdicts/wrong.md" in names
    assert "hlotool/corpus/demo/train.py" in names
    assert sum(n.startswith("hlotool/corpus/demo/dump/") for n in names) == 8
    assert not [n for n in names if n.startswith(("grammar/", "backends/", "tests/", "corpus/"))]


def test_runs_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Installed in an environment of its own, away from the repository, it replays a module."""
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True, symlinks=True)
    bin_folder = environment / "bin"
    pip([str(bin_folder / "pip")], "install", str(wheel))
    module = tmp_path / "add.hlo"
    module.write_text(
        "HloModule add\nENTRY e { a = f32[3] parameter(0) ROOT r = f32[3] add(a, a) }\n", encoding="utf-8"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(bin_folder / "hlotool"), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=own_environment(), capture_output=True, encoding="utf-8", timeout=HUNG
        )

    assert run("--version").stdout.startswith("hlotool ")
    for file in MADE:
        assert (environment / file).read_text(encoding="utf-8").count("bisect")
    assert "docs/verdicts/wrong.md" in run("explain", "wrong").stdout
    shown = run("demo", "--out", "demo")
    assert shown.returncode == 0, shown.stderr
    assert "✗ pass fusion" in shown.stdout
    assert (tmp_path / "demo" / "page.html").stat().st_size > 20_000
    result = run("run", str(module))
    assert result.returncode == 3, result.stderr
    assert "f32[3]" in result.stdout
