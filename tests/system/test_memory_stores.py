"""Remote dumps, read from fsspec's in-memory store."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.dumps import module_text

from hlotool.errors import DumpError, ExitCode, UsageError
from hlotool.interface.api.merge import merge
from hlotool.interface.api.replay import replay
from hlotool.interface.cli.main import main
from hlotool.sources.directory import open_dump


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


EXTRAS = {
    "s3://bucket/x": ("s3fs", "remote-s3"),
    "gs://bucket/x": ("gcsfs", "remote-gcs"),
    "https://host/x": ("aiohttp", "remote-http"),
    "memory://x": ("fsspec", "remote"),
}
#: In a process that has not read from any store yet.
_OPEN_ALL = """
import sys
from hlotool.sources.directory import open_dump
from hlotool.errors import DumpError
for url, package in zip(sys.argv[1::2], sys.argv[2::2]):
    sys.modules[package] = None
    try:
        open_dump(url)
    except DumpError as error:
        print(error)
"""


def test_the_extra_of_a_missing_package_is_named() -> None:
    pairs = [word for url, (package, _) in EXTRAS.items() for word in (url, package)]
    command = [sys.executable, "-c", _OPEN_ALL, *pairs]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert said.splitlines() == [
        f"{url}: {url.split(':')[0]}:// needs a package: pip install 'hlotool[{extra}]'"
        for url, (_, extra) in EXTRAS.items()
    ]


def test_scripts_are_not_run_from_a_store(store: Any) -> None:
    store.pipe("/bucket/conv.hlo", module_text().encode())
    with pytest.raises(UsageError, match="scripts are not run from a URL"):
        replay("memory://bucket/conv.hlo", inputs="memory://bucket/make.py:inputs")


@pytest.mark.parametrize("option", ["--repro", "--dump-to"])
def test_what_can_only_be_written_here(store: Any, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    store.pipe("/bucket/conv.hlo", module_text().encode())
    command = ["opt", "--passes", "dce"] if option == "--dump-to" else ["bisect"]
    assert main([*command, "memory://bucket/conv.hlo", option, "memory://bucket/out"]) == ExitCode.USAGE
    assert f"{option} memory://bucket/out: written on this machine only" in capsys.readouterr().err


def test_reports_into_a_store(store: Any, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(dump), "--no-further-sets"]
    files = ["--junit", "memory://bucket/j.xml", "--sarif", "memory://bucket/s.sarif"]
    assert main([*command, *files]) == ExitCode.MISMATCH
    assert store.cat("/bucket/j.xml").startswith(b"<?xml")
    assert json.loads(store.cat("/bucket/s.sarif"))["version"] == "2.1.0"
    capsys.readouterr()
    assert main([*command, "--junit", "http://me:hush@host/j.xml"]) == ExitCode.USAGE
    out, error = capsys.readouterr()
    assert not out  # nothing was run
    assert "http://***@host/j.xml: a web server takes no files" in error
    assert main([*command, "--junit", f"file://{dump.parent}/j.xml"]) == ExitCode.MISMATCH
    assert (dump.parent / "j.xml").is_file()


def test_records_and_baselines_in_a_store(store: Any, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(dump), "--no-further-sets"]
    records = [f"memory://bucket/shard-{number}.json" for number in (1, 2)]
    for number, record in enumerate(records, 1):
        main([*command, "--json", "--shard", f"{number}/2"])
        store.pipe(record.removeprefix("memory:/"), capsys.readouterr().out.encode())
    merged = merge(records)
    assert [row.verdict.value for row in merged.rows] == ["identical", "wrong"]
    baseline = "memory://bucket/known.json"
    for _ in range(2):  # a new file, and one that is there
        assert main(["baseline", "update", baseline, *records]) == ExitCode.AGREE
    assert main([*command, "--baseline", baseline]) == ExitCode.AGREE
    with pytest.raises(DumpError, match=r"memory://bucket/none\.json: no such file"):
        merge("memory://bucket/none.json")
