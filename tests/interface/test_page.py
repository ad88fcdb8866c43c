"""The page about notebooks, executed: by a stand-in for Jupyter's kernel, and by Jupyter itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.notebook import Shell, cells

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder elsewhere, in which hlotool is installed."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)


@pytest.mark.xla
def test_the_cells_run() -> None:
    """They hold assertions."""
    shell = Shell()
    for cell in cells():
        shell.execute(cell)
    assert shell.names["module"]._repr_html_().startswith("<div")


@pytest.mark.xla
@pytest.mark.filterwarnings("default")
def test_jupyter_shows_html() -> None:
    """HLOTOOL_NOTEBOOK names a file for the executed notebook."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells())))
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={})
    client.execute()
    if file := os.environ.get("HLOTOOL_NOTEBOOK"):
        nbformat.write(notebook, file)
    load, magic, verdicts, _, named, check, module = (cell.outputs for cell in notebook.cells)
    assert load == []
    printed = "".join(output.get("text", "") for output in magic)
    assert "0.84147" in printed  # sin(1), as the program prints it
    [report] = [output["data"] for output in magic if "data" in output]
    assert "cell [2]: exit status 0" in report["text/plain"]
    assert "0.5403" in "".join(output.get("text", "") for output in named)  # cos(1)
    assert "\x1b" not in report["text/plain"]
    assert "jit_sin" in report["text/html"]
    assert verdicts[0]["text"].startswith("0 [")
    assert _html(check).startswith("<pre")
    assert "<details open><summary>ENTRY %main" in _html(module)


def _html(outputs: list[Any]) -> str:
    """The HTML of the one output of a cell."""
    [output] = outputs
    html: str = output["data"]["text/html"]
    return html
