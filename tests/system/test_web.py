"""Dumps behind a web server: the same record as here, whatever the server does."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import web_server
from support.programs import DOUBLE, SUM, write_module
from support.records import without
from support.web_server import WebServer

import hlotool
from hlotool.errors import DumpError, ExitCode, StoreError
from hlotool.interface.cli.main import main
from hlotool.judge.verdicts import Verdict
from hlotool.sources.locations import Source
from hlotool.system.store_copies import copies_folder


def record_of(paths: str | Path, base: str, **options: Any) -> dict[str, Any]:
    """The record of a replay without times and what is from the cache, in plain data; `base` is `BASE`."""
    text = json.dumps(hlotool.replay(str(paths), further_sets=False, jobs=1, **options).to_dict())
    plain = json.loads(text.replace(base, "BASE").replace("host%201", "host 1"))
    return without(plain, ("seconds", "remembered"))


def test_a_folder_is_replayed_as_the_local_one(web: WebServer, dump: Path) -> None:
    here = record_of(dump, str(dump.parent))
    assert record_of(f"{web.url}/dump", web.url, cache=False) == here
    assert [module["verdict"] for module in here["modules"]] == ["identical", "wrong"]
    assert record_of(f"file://{dump}", str(dump.parent), cache=False) == here
    # Each stage once, though three processes read it; and nothing that no module needs.
    assert sorted(path.rsplit("/", 1)[1] for path in web.gets()) == [
        "module_0000.jit_f.before_optimizations.txt",
        "module_0000.jit_f.cpu_after_optimizations.txt",
        "module_0001.jit_g.before_optimizations.txt",
        "module_0001.jit_g.cpu_after_optimizations.txt",
    ]
    assert {web.requests[f"GET {path}"] for path in web.gets()} == {1}


def test_what_did_not_change_is_not_read_again(web: WebServer, dump: Path) -> None:
    first = record_of(f"{web.url}/dump", web.url)
    web.requests.clear()
    assert record_of(f"{web.url}/dump", web.url, resume=False) == first
    assert web.gets() == []
    after = dump / "module_0000.jit_f.cpu_after_optimizations.txt"
    after.write_text(after.read_text().replace("add(", "subtract("))
    changed = record_of(f"{web.url}/dump", web.url)
    assert [module["verdict"] for module in changed["modules"]] == ["wrong", "wrong"]
    assert [path.rsplit("/", 1)[1] for path in web.gets()] == [after.name]


def test_without_validators_every_run_reads_anew(web: WebServer, dump: Path) -> None:
    web.etags = web.dates = False
    assert hlotool.replay(f"{web.url}/dump", only="jit_f", further_sets=False).verdict is Verdict.IDENTICAL
    before = dump / "module_0000.jit_f.before_optimizations.txt"
    # Of the same size, which is all that this server tells.
    before.write_text(before.read_text().replace("constant(2)", "constant(3)"))
    assert hlotool.replay(f"{web.url}/dump", only="jit_f", further_sets=False).verdict is Verdict.WRONG


def test_one_file_with_what_lies_beside_it(web: WebServer, dump: Path) -> None:
    name = "module_0000.jit_f.cpu_after_optimizations.txt"
    np.savez(dump / name.replace(".txt", ".npz"), x=np.array([1, 2, 3, 4], np.float32))
    here = hlotool.replay(str(dump / name), further_sets=False)
    there = hlotool.replay(f"{web.url}/dump/{name}", further_sets=False)
    assert there.rows[0].inputs.origin == here.rows[0].inputs.origin == "given"
    assert there.rows[0].verdict is here.rows[0].verdict


def test_inputs_and_an_archive(web: WebServer, dump: Path) -> None:
    with tarfile.open(dump.parent / "dump.tar.gz", "w:gz") as archive:
        archive.add(dump, "dump")
    np.savez(dump.parent / "in.npz", x=np.array([2, 2, 2, 2], np.float32))
    options = {"only": "jit_g"}
    here = record_of(dump.parent / "dump.tar.gz", str(dump.parent), inputs=f"{dump.parent}/in.npz", **options)
    there = record_of(f"{web.url}/dump.tar.gz", web.url, inputs=f"{web.url}/in.npz", **options)
    assert there == here
    # 2 + 2 = 2 * 2: with these inputs the fault does not show.
    assert [module["verdict"] for module in here["modules"]] == ["identical"]
    assert web.requests["GET /dump.tar.gz"] == 1


FAULTS = {
    "500": web_server.status(500),
    "429": web_server.status(429),
    "reset": web_server.reset,
    "short": web_server.short,
    "cut": web_server.cut,
}
STAGE = "/dump/module_0000.jit_f.cpu_after_optimizations.txt"


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_that_passes_changes_nothing(web: WebServer, dump: Path, kind: str) -> None:
    web.faults[STAGE] = [FAULTS[kind], None]
    assert Source(f"{web.url}{STAGE}").read_bytes() == (dump.parent / STAGE[1:]).read_bytes()
    assert web.requests[f"GET {STAGE}"] == 2


def test_a_fault_that_stays_is_one_row(web: WebServer, dump: Path) -> None:
    for number, kind in enumerate(FAULTS, start=2):
        title = write_module(dump, number, DOUBLE, SUM, f"fault_{kind}")
        web.faults[f"/dump/{title}.cpu_after_optimizations.txt"] = [FAULTS[kind]]
    found = hlotool.replay(f"{web.url}/dump", further_sets=False)
    good = [Verdict.IDENTICAL, Verdict.WRONG]
    assert [row.verdict for row in found.rows if row.error is None] == good
    errors = [row.error for row in found.rows if row.error is not None]
    assert [error.kind for error in errors] == ["StoreError"] * len(FAULTS)
    assert all("cannot be read after 2 attempts: " in error.message for error in errors)
    # What the server could not give this time is asked for again by the next run.
    web.faults.clear()
    again = hlotool.replay(f"{web.url}/dump", further_sets=False)
    assert Counter(row.verdict for row in again.rows) == {Verdict.IDENTICAL: 6, Verdict.WRONG: 1}


def test_a_server_that_falls_silent(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_STORE_TIMEOUT", "0.5")
    web.faults[STAGE] = [web_server.silent]
    with pytest.raises(StoreError, match="cannot be read after 2 attempts"):
        hlotool.load(f"{web.url}{STAGE}")


def test_what_is_not_there(web: WebServer) -> None:
    with pytest.raises(DumpError, match=r"/none: no such file or directory$"):
        hlotool.replay(f"{web.url}/none")
    with pytest.raises(StoreError, match="cannot be read after 2 attempts: ConnectionRefused"):
        hlotool.replay("http://127.0.0.1:9/dump")


def test_secrets_are_nowhere(
    web: WebServer, own_cache: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    web.password = "me:hush-hush"
    url = web.url.replace("://", "://me:hush-hush@")
    assert main(["run", f"{url}/dump", "--json", "--log", "debug", "--no-further-sets"]) == ExitCode.MISMATCH
    assert main(["run", f"{url}/none", "--debug"]) == ExitCode.USAGE
    web.faults[STAGE] = [web_server.status(500)]
    assert main(["opt", f"{url}{STAGE}?X-Amz-Signature=hush-hush", "--passes", "dce", "--debug"])
    shown = "".join(capfd.readouterr())
    assert f"{web.url.replace('://', '://***@')}/dump" in shown
    assert "hush" not in shown
    kept = [path for path in own_cache.rglob("*") if path.is_file()]
    assert any(path.parent == copies_folder() for path in kept)
    assert not any("hush" in str(path) or b"hush" in path.read_bytes() for path in kept)
