"""The manual page: every command and option is in it, and roff's own tools find nothing wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hlotool.interface.cli.main import build_parser
from hlotool.interface.cli.reference import ENVIRONMENT, manual_page

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    return manual_page(build_parser())


def rendered(page: str, command: list[str]) -> str:
    """What a tool makes of the page; it has nothing to say about it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    result = subprocess.run(command, input=page, capture_output=True, encoding="utf-8")
    assert (result.returncode, result.stderr) == (0, "")
    return re.sub(r"\x1b\[[\d;]*m|.\x08", "", result.stdout)


def test_every_option_reads_as_it_is_typed(page: str) -> None:
    """With the dash of a keyboard, so that it can be copied and searched for."""
    shown = rendered(page, ["groff", "-K", "utf8", "-T", "utf8", "-man", "-ww"])
    for name, parser in build_parser().commands.items():
        assert f"hlotool {name}" in shown
        for option in parser._options():
            assert option in shown
    assert "'out[1]:1e-3'" in shown


def test_mandoc_finds_nothing_wrong(page: str) -> None:
    """But that the page has no date: what is built from the same sources is the same."""
    assert rendered(page, ["mandoc", "-T", "lint", "-W", "error"]) == ""


def test_no_variable_is_forgotten(page: str) -> None:
    """Those that documents tell users to set."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))]
    named = {name for text in texts for name in re.findall(r"HLOTOOL_[A-Z_]+", text)}
    assert named <= set(ENVIRONMENT)
