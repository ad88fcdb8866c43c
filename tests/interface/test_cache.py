"""`hlotool cache`: what is kept, and that it goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.programs import write_module

from hlotool.interface.cli.main import main

TEXT = """\
HloModule jit_f

ENTRY %main.1 (x.1: f32[3]) -> f32[3] {
  %x.1 = f32[3]{0} parameter(0)
  ROOT %y.2 = f32[3]{0} add(%x.1, %x.1)
}
"""


def test_what_a_run_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "dump").mkdir()
    write_module(tmp_path / "dump", 0, TEXT, TEXT)
    assert main(["run", str(tmp_path / "dump"), "-q", "--no-cache"]) == 0
    assert main(["cache", "info", "--json"]) == 0
    assert main(["run", str(tmp_path / "dump"), "-q"]) == 0
    assert main(["cache", "info", "--json"]) == 0
    none, some = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert (none["entries"], some["entries"]) == (0, 2)
    assert some["folder"] == str(tmp_path / "cache" / "verdicts")
    assert main(["cache", "prune"]) == 0
    assert "removed: 0 answers" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert "removed: 2 answers" in capsys.readouterr().out
    assert main(["cache", "wipe"]) == 2


def test_environments_of_releases_are_counted_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    folder = tmp_path / "environments/jaxlib-0.9.0-py3.11/lib"
    folder.mkdir(parents=True)
    (folder / "native.so").write_bytes(bytes(2048))
    (folder / "link").symlink_to(folder / "native.so")
    assert main(["cache", "info"]) == 0
    assert "1 environment of releases, 2 KiB" in capsys.readouterr().out
    assert main(["cache", "prune"]) == 0
    assert folder.exists()
    assert main(["cache", "clear"]) == 0
    assert "removed: 1 environment of releases" in capsys.readouterr().out
    assert not folder.exists()
