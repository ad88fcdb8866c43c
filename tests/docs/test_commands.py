"""Every command in the README and the guides runs, and ends as the text beside it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.oracle import need_xla

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("*/README.md")),
    *ROOT.glob("*/*/README.md"),
]

#: Set-up and test commands: what runs this test has run them, or the packaging test runs their like.
ELSEWHERE = re.compile(r"(python3? -m (venv|pytest)|pip install|bash \.ci/run|XLA_FLAGS=|pytest )")
#: Paths that stand for the reader's own.
PLACEHOLDERS = {"hlotool run dump", "hlotool exec -- python train.py"}


def blocks(path: Path, language: str) -> Iterator[str]:
    """The fenced blocks of a document in one language."""
    yield from re.findall(
        rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def commands() -> Iterator[tuple[str, int]]:
    """Every command line of the documents with the exit code that it promises."""
    for path in DOCUMENTS:
        for block in blocks(path, "sh"):
            for line in block.splitlines():
                command, _, remark = line.partition("  # ")
                promised = re.search(r"exits (\d+)", remark)
                if command.strip():
                    yield command.strip(), int(promised[1]) if promised else 0


COMMANDS = dict(commands())


def test_documents_hold_commands() -> None:
    assert any(c.startswith("hlotool run corpus") for c in COMMANDS)


@pytest.mark.parametrize("command", [c for c in COMMANDS if not ELSEWHERE.match(c) and c not in PLACEHOLDERS])
def test_command(command: str, tmp_path: Path) -> None:
    if re.search(r"\bcuda-emu\b", command) and shutil.which("g++") is None:
        pytest.skip("there is no g++ for backend cuda-emu")
    if re.search(r"\bxla\b|--platform=CPU|hlotool exec", command):
        need_xla()
    program, *arguments = shlex.split(command)
    runner = {
        "hlotool": [sys.executable, "-m", "hlotool"],
        "python": [sys.executable],
        "run_hlo_module": [sys.executable, "-m", "hlotool.xla_tools.run_hlo_module"],
    }[program]
    # A `python` among the arguments is this one.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    result = subprocess.run(
        [*runner, *arguments],
        cwd=ROOT,
        env=os.environ | {"HLOTOOL_CACHE": str(tmp_path), "PATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert result.returncode == COMMANDS[command], result.stdout[-2000:] + result.stderr[-2000:]
    assert "Traceback" not in result.stderr


#: A command with a remark, and the report below it.
SHOWN = [
    shown
    for path in (README, ROOT / "docs" / "coverage.md")
    for shown in re.findall(
        r"^```sh\nhlotool (run [^\n#]*?)  +#[^\n]*\n```\n\n```text\n(.*?)^```",
        path.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
]


@pytest.mark.parametrize(("command", "report"), SHOWN, ids=lambda text: text.splitlines()[0])
def test_a_report_in_the_documents_is_what_is_printed(command: str, report: str, tmp_path: Path) -> None:
    """Up to times, versions and the padding that goes with them."""
    result = subprocess.run(
        [sys.executable, "-m", "hlotool", *shlex.split(command)],
        cwd=ROOT,
        env=os.environ | {"HLOTOOL_CACHE": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )

    def normal(text: str) -> str:
        timeless = re.sub(r"\d+\.\d+( s\b|$)", "TIME", text, flags=re.MULTILINE)
        # How many further sets of inputs there are is a matter of time, too.
        timeless = re.sub(r"\n +sets  +\d+ further ones: .*", "", timeless)
        timeless = re.sub(r" and [\w ]+ further sets?( \([^)]*\))?", "", timeless)
        return re.sub(r"numpy [\d.]+|(?<=\S)  +", " ", timeless).strip()

    assert normal(result.stdout) == normal(report)


def test_set_up_commands_name_real_extras() -> None:
    """`pip install -e '.[a,b]'` asks for extras that pyproject.toml defines."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for command in COMMANDS:
        for asked in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(asked.split(",")) <= set(extras)


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_api_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its blocks, one after the other; they assert what they claim."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "api.md", "python"):
        exec(block, names)
    assert names["expected"]


def test_python_example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The README's Python block runs on a checkout, given three arrays."""
    import numpy as np

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    names = {name: np.ones((8, 16), np.float32) for name in "xyz"}
    for block in blocks(README, "python"):
        exec(block, names)
    assert names["total"] == 2 * 8 * 16
