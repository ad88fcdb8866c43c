"""The site: it builds without a network, nothing on it comes from elsewhere, and no page is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hlotool.interface.cli.main import build_parser
from hlotool.judge.verdicts import Verdict

ROOT = Path(__file__).resolve().parents[2]

#: MkDocs in a process that reaches no other machine.
OFFLINE = """
import socket, sys
def refuse(*arguments): raise OSError("there is no network here")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", OFFLINE, "build", "--strict", "--quiet", "--site-dir", str(folder)]
    configuration = ROOT / "docs" / "site" / "mkdocs.yml"
    result = subprocess.run(
        [*command, "--config-file", str(configuration)], capture_output=True, encoding="utf-8", cwd=ROOT
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


class Loaded(HTMLParser):
    """Collects what a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "link" and found.get("rel") == "canonical":
            return
        name = "href" if tag == "link" else "src"
        self.addresses.update(filter(None, [found.get(name)]))


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses
        assert not [a for a in loaded.addresses if re.match(r"(https?:)?//", a)], page.name


def test_a_page_of_a_command_has_its_options(site: Path) -> None:
    for name, parser in build_parser().commands.items():
        text = (site / "commands" / f"{name}.html").read_text(encoding="utf-8")
        for option in parser._options():
            assert option in ("-h", "--help") or f"<code>{option}" in text, (name, option)


def test_functions_are_described_by_their_docstrings(site: Path) -> None:
    text = (site / "reference" / "hlotool.html").read_text(encoding="utf-8")
    assert 'id="hlotool.interface.api.replay.replay"' in text
    assert "a dump with the program after every pass" in text  # of `bisect`
    assert "regular expression of the instructions whose values are saved" in text  # an argument of `replay`
    assert 'id="hlotool.backends.base.Backend"' in (site / "reference/hlotool.backends.base.html").read_text(
        encoding="utf-8"
    )


def test_every_command_has_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "commands").glob("*.md")}
    assert pages == set(build_parser().commands)


def test_every_verdict_has_a_page_with_a_report_that_gives_it() -> None:
    """The reports are executed by the test of all commands."""
    folder = ROOT / "docs" / "verdicts"
    assert {path.stem for path in folder.glob("*.md")} == {v.value.replace(" ", "-") for v in Verdict}
    for verdict in Verdict:
        text = (folder / f"{verdict.value.replace(' ', '-')}.md").read_text(encoding="utf-8")
        [report] = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        assert re.search(rf"^(.*  )?. {verdict.value}( |$)", report, re.MULTILINE), verdict
        assert "## What establishes it" in text
        assert "## What to do next" in text
