"""The picture of a report in the README is what the command prints.

`--update-golden` draws it anew. Numbers are not compared: the last digits of a value are the processor's.
"""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

import hlotool
from hlotool.interface.report.terminal import RunReport

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "report.svg"
COMMAND = "hlotool run corpus/planted/train_mnist_mlp_constant"


def _drawn() -> str:
    found = hlotool.replay(*COMMAND.split()[2:], cache=None)
    console = Console(
        file=io.StringIO(),
        record=True,
        width=100,
        force_terminal=True,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(Text.assemble(("$ ", "dim"), COMMAND))
    console.print(RunReport(found.record), crop=False)
    console.print()  # the picture cuts the descenders of its last line
    # No font is fetched: pages that show the picture may forbid it, and any monospaced one will do.
    drawn = console.export_svg(title="hlotool", unique_id="report")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def _words(picture: str) -> str:
    texts = re.findall(r"<text[^>]*>(.*?)</text>", picture)
    return re.sub(r"[-+]?\d[\d.e+-]*", "N", html.unescape(" ".join(texts)).replace("\xa0", " "))


def test_the_picture_is_what_the_command_prints(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    drawn = _drawn()
    if request.config.getoption("--update-golden"):
        PICTURE.write_text(drawn, encoding="utf-8")
    assert _words(drawn).split() == _words(PICTURE.read_text(encoding="utf-8")).split()
    assert "constant 0.1 became 0.2" in html.unescape(drawn).replace("\xa0", " ")
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+|https?://\S*textualize\S*", "", drawn)
