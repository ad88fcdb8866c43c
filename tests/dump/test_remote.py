"""Remote dumps, read from fsspec's in-memory store."""

from __future__ import annotations

import io
import sys
import tarfile
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from support.dumps import module_text

from hlotool.dump.directory import open_dump
from hlotool.errors import DumpError


@pytest.fixture
def store() -> Iterator[Any]:
    """An empty in-memory store."""
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def test_a_remote_folder(store: Any) -> None:
    store.pipe("/bucket/run/module_0001.jit_f.before_optimizations.txt", module_text().encode())
    store.pipe("/bucket/run/host/module_0003.jit_g.cpu_after_optimizations.txt", module_text().encode())
    dump = open_dump("memory://bucket/run")
    assert [module.title for module in dump.modules] == ["module_0001.jit_f", "host/module_0003.jit_g"]
    for module in dump.modules:
        assert module.stages[0].source.read_text() == module_text()


def test_a_remote_file(store: Any) -> None:
    store.pipe("/bucket/conv.hlo", module_text().encode())
    [module] = open_dump("memory://bucket/conv.hlo").modules
    assert module.title == "conv.hlo"
    assert module.stages[0].source.read_head(9) == b"HloModule"


def test_a_remote_archive(store: Any) -> None:
    content = module_text().encode()
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        info = tarfile.TarInfo("d/module_0001.jit_f.before_optimizations.txt")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    name = f"{uuid.uuid4().hex}.tar.gz"
    store.pipe(f"/bucket/{name}", raw.getvalue())
    [module] = open_dump(f"memory://bucket/{name}").modules
    assert module.stages[0].source.read_text() == module_text()


def test_an_empty_remote_folder(store: Any) -> None:
    with pytest.raises(DumpError, match="memory://bucket/none"):
        open_dump("memory://bucket/none")


def test_an_unknown_protocol(store: Any) -> None:
    with pytest.raises(DumpError, match="nonsense://x: cannot be read"):
        open_dump("nonsense://x")


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        DumpError, match=r"s3://bucket/x: remote dumps need fsspec: pip install 'hlotool\[remote\]'"
    ):
        open_dump("s3://bucket/x")
