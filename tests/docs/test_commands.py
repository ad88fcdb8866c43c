"""Every command in the README and the guides runs, ends as it is said there, and prints what is shown."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.oracle import need_xla
from support.xla import JAXLIB

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("*/README.md")),
    *ROOT.glob("*/*/README.md"),
]

#: Set-up and test commands: what runs this test has run them, or the packaging test runs their like. The run
#: of the whole corpus is that of tests/interface/test_corpus_run.py, which takes it from the README.
ELSEWHERE = re.compile(
    r"(python3? -m (venv|pytest)|pip install|bash \.ci/run|XLA_FLAGS=|pytest |mkdocs )"
    r"|hlotool run corpus/jax corpus/tf corpus/planted$"
)
#: What stands for the reader's own; real programs are bisected by a slow test (tests/interface/test_exec.py).
PLACEHOLDERS = {
    "hlotool run dump",
    "hlotool exec -- python train.py",
    "hlotool exec --bisect -- python train.py",
    "hlotool exec --keep-when 'nan|inf|jump:5' -- python train.py",
}


def blocks(path: Path, language: str) -> Iterator[str]:
    """The fenced blocks of a document in one language, those of lists, too."""
    for indent, block in re.findall(
        rf"^( *)```{language}\n(.*?)^ *```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        yield re.sub(rf"(?m)^{indent}", "", block)


@dataclass(frozen=True)
class Shown:
    """A command of a document.

    Attributes:
        line: as it is typed.
        promised: the exit status that the remark beside it promises.
        before: commands above it in the same block, on which it may rest.
    """

    line: str
    promised: int
    before: tuple[str, ...]


def commands_in(block: str) -> Iterator[Shown]:
    """The commands of a block."""
    before: list[str] = []
    for text in block.splitlines():
        line, _, remark = text.partition("  # ")
        status = re.search(r"exits (\d+)", remark)
        if line := line.strip():
            yield Shown(line, int(status[1]) if status else 0, tuple(before))
            before.append(line)


def commands() -> Iterator[Shown]:
    """Every command of the documents."""
    for path in DOCUMENTS:
        for block in blocks(path, "sh"):
            yield from commands_in(block)


COMMANDS = {shown.line: shown for shown in commands()}


@functools.cache
def run(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository, once for all pages that have it."""
    for earlier in COMMANDS[line].before:
        run(earlier)
    words, _, written = line.replace("$PWD", str(ROOT)).partition(" > ")
    program, *arguments = shlex.split(words)
    runner = {
        "hlotool": [sys.executable, "-m", "hlotool"],
        "python": [sys.executable],
        "run_hlo_module": [sys.executable, "-m", "hlotool.lab.xla_tools.run_hlo_module"],
    }[program]
    # A `python` among the arguments is this one.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as cache:
        result = subprocess.run(
            [*runner, *arguments],
            cwd=ROOT,
            env=os.environ | {"HLOTOOL_CACHE": cache, "PATH": path, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
    if written:
        (ROOT / written).parent.mkdir(exist_ok=True)
        (ROOT / written).write_text(result.stdout, encoding="utf-8")
    return result


def need_tools(line: str) -> None:
    """Skip the test where a command needs what is not installed."""
    for each in (line, *COMMANDS[line].before):
        if re.search(r"\bcuda-emu\b", each) and shutil.which("g++") is None:
            pytest.skip("there is no g++ for backend cuda-emu")
        if "--cluster" in each:
            pytest.importorskip("distributed")
        if re.search(r"\bxla\b|--platform=CPU|hlotool exec", each):
            need_xla()


def test_documents_hold_commands() -> None:
    assert any(c.startswith("hlotool run corpus") for c in COMMANDS)


@pytest.mark.parametrize("line", [c for c in COMMANDS if not ELSEWHERE.match(c) and c not in PLACEHOLDERS])
def test_command(line: str) -> None:
    need_tools(line)
    result = run(line)
    assert result.returncode == COMMANDS[line].promised, result.stdout[-2000:] + result.stderr[-2000:]
    assert "Traceback" not in result.stderr


#: A block of commands, the first jaxlib that prints another report where there is one, and the report.
SHOWN = re.compile(
    r"^```sh\n([^`]*?)```\n\n(?:<!-- jaxlib < ([\d.]+) -->\n)?```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def only_before(version: str) -> pytest.MarkDecorator:
    """For a report that rests on a fault of XLA's which is mended in a version."""
    numbers = tuple(map(int, version.split("."))) if version else JAXLIB
    return pytest.mark.skipif(numbers < JAXLIB, reason=f"XLA of jaxlib {version} no longer has this fault")


#: The last command of a block and the report below it, which it prints.
REPORTS = [
    pytest.param(
        *([*commands_in(block)][-1].line, report), id=f"{path.stem}-{number}", marks=only_before(version)
    )
    for path in DOCUMENTS
    for number, (block, version, report) in enumerate(SHOWN.findall(path.read_text(encoding="utf-8")))
    if not ELSEWHERE.match(block)
]


@pytest.mark.parametrize(("line", "report"), REPORTS)
def test_a_report_in_the_documents_is_what_is_printed(line: str, report: str) -> None:
    """Up to times, versions and the padding that goes with them; `…` alone on a line stands for others."""
    need_tools(line)
    shown = "".join(f"{part}\n" for part in normal(report).splitlines())
    pattern = "(?:.*\n)*?".join(map(re.escape, re.split(r"(?m)^…\n", shown)))
    printed = normal(run(line).stdout) + "\n"
    assert re.fullmatch(pattern, printed), printed


def normal(text: str) -> str:
    """A report without what differs from run to run."""
    timeless = re.sub(r"\d+\.\d+( s\b|$)", "TIME", text, flags=re.MULTILINE)
    # How many extra sets of inputs there are, and which, is a matter of time, too.
    timeless = re.sub(r"\n +sets  +\d+ extra ones: .*", "", timeless)
    timeless = re.sub(r", (up to )?\d+ extra input sets?[^;\n]*(; \d+ of these sets [^;\n]*)?", "", timeless)
    timeless = re.sub(r"[\d.]+ \wiB of what was free", "FREE", timeless)
    # Where it stands in XLA's sources, that of the version at hand.
    timeless = re.sub(r"(?<=\.cc:)\d+", "LINE", timeless)
    return re.sub(r"numpy [\d.]+|(?<=\S)  +", " ", timeless).strip()


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


@pytest.mark.xla
def test_python_of_jax(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The blocks of the page on JAX, one after the other; they hold assertions."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "jax.md", "python"):
        exec(block, names)
    assert names["lowered"]


def test_python_example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The README's Python block runs on a checkout, given three arrays."""
    import numpy as np

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    names = {name: np.ones((8, 16), np.float32) for name in "xyz"}
    for block in blocks(README, "python"):
        exec(block, names)
    assert names["total"] == 2 * 8 * 16
