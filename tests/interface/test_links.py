"""Paths in reports are links where a terminal has them, and nothing but text elsewhere."""

from __future__ import annotations

import io
import os
import platform
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from rich.text import Text
from support import run_records as samples

from hlotool.interface.report.console import (
    facts,
    path_text,
    place_text,
    plain_text,
    render,
    terminal_has_links,
)
from hlotool.interface.report.leaf import source_facts
from hlotool.interface.report.terminal import RunReport
from hlotool.system.records import SourceRecord

#: What a terminal gets, as "OSC 8 hyperlinks in terminal emulators" specifies it; ids are rich's own.
LINK = re.compile("\x1b]8;id=[^;]*;(?P<address>[^\x1b]*)\x1b\\\\(?P<shown>.*?)\x1b]8;;\x1b\\\\")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "FORCE_HYPERLINK", "VTE_VERSION", "INSIDE_EMACS", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def shown(text: Text, width: int = 200) -> str:
    """What a terminal of the environment's kind is sent."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width, legacy_windows=False)
    return render(console, text)


def test_a_source_line_opens_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my model.py"
    path.touch()
    source = SourceRecord(instruction="a", opcode="add", file=str(path), file_line=12, function="step")
    [found] = LINK.finditer(shown(facts(source_facts(source))))
    assert found["address"] == f"file://{platform.node()}{tmp_path}/my%20model.py"
    assert found["shown"].endswith("my model.py:12")


@pytest.mark.parametrize(
    "environment",
    [
        {"NO_COLOR": "1"},
        {"TERM": "dumb"},
        {"TERM": "linux"},
        {"TERM": "eterm-color"},
        {"VTE_VERSION": "4205"},
        {"INSIDE_EMACS": "29.1,comint"},
        {"FORCE_HYPERLINK": "0"},
    ],
)
def test_no_links_where_they_are_not_wanted(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b]8" in shown(path_text(str(tmp_path)))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert "\x1b]8" not in shown(path_text(str(tmp_path)))
    assert shown(path_text(str(tmp_path))).strip() == str(tmp_path)


def test_a_pipe_gets_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    assert plain_text(path_text(str(tmp_path))) == f"{tmp_path}\n"


@pytest.mark.parametrize(
    "path", ["gone.py", "", "//host/share/x.py", "\\\\host\\share", "a\0b", "\udcff" * 3]
)
def test_what_is_not_here_is_no_link(path: str) -> None:
    assert "\x1b]8" not in shown(path_text(path) + Text("."))


@pytest.mark.parametrize("name", ["\x1b]8;;http:\x1b\\", "a\x07b", "\x9cx", "é ü", "a\nb", "x%41;y"])
def test_a_hostile_name_cannot_end_the_link(name: str, tmp_path: Path) -> None:
    """Whatever is in the name, what a terminal obeys is one link and nothing else."""
    path = tmp_path / name.replace("/", "_")
    path.touch()
    sent = shown(Text.assemble("<", path_text(str(path)), ">"), width=1000)
    addresses = {found["address"] for found in LINK.finditer(sent)}
    assert len(addresses) == 1
    [address] = addresses
    assert re.fullmatch(r"file://[\w.-]*(?:[\w./~-]|%[0-9A-F]{2})+", address, re.ASCII)
    left = LINK.sub(lambda found: found["shown"], sent)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", left)


def test_bytes_that_are_no_text_are_quoted(tmp_path: Path) -> None:
    path = os.path.join(tmp_path, os.fsdecode(b"x\xff.py"))
    Path(path).touch()
    [found] = LINK.finditer(shown(path_text(path)))
    assert found["address"].endswith("/x%FF.py")


def test_what_has_no_file_is_named_without_a_link() -> None:
    source = SourceRecord(
        instruction="a", opcode="add", op_name="net/dense", library="site-packages/ops.py:3"
    )
    assert place_text(source).plain == "net/dense"


def test_the_user_has_the_last_word() -> None:
    assert terminal_has_links({"TERM": "screen", "FORCE_HYPERLINK": "1"})
    assert not terminal_has_links({"TERM": "screen.xterm-256color"})
    assert terminal_has_links({"TERM": "xterm", "VTE_VERSION": "7600"})


def test_a_whole_report_on_a_terminal(
    golden: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is sent, escape sequences and all: the user's line and the file of HLO are links."""
    source = msgspec.structs.replace(samples.SOURCE, file="train/model.py")
    leaf = msgspec.structs.replace(samples.differing_leaf(), source=source)
    module = msgspec.structs.replace(samples.differing("module_0000.jit_f"), leaves=[leaf])
    record = samples.run([module])
    monkeypatch.chdir(tmp_path)
    for path in (source.file, module.path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    console = Console(file=io.StringIO(), force_terminal=True, width=100, legacy_windows=False)
    sent = render(console, RunReport(record, False, False))
    assert {found["shown"] for found in LINK.finditer(sent)} >= {source.user_line, module.path}
    told = re.sub(r"8;id=[^;]*;", "8;id=ID;", sent.replace(f"{platform.node()}{tmp_path}", "HOST/FOLDER"))
    golden("report/one_differs_links.txt", told.replace("\x1b", "␛"))
