"""Dumps in an object store that speaks S3: the same record as here, and results into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.heard import Heard
from support.programs import DOUBLE, SUM, write_module
from support.records import without
from system.test_web import record_of

import hlotool
from hlotool.errors import DumpError, ExitCode, UsageError
from hlotool.interface.cli.main import main
from hlotool.system.store_access import journal_in

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server."""
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, dump: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket with the dump, and fsspec's view of it; credentials come from the environment."""
    for name, value in (
        ("AWS_ENDPOINT_URL", server),
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "hush-hush"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    import s3fs

    files = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    files.mkdir("bucket")
    files.put(str(dump.parent), "bucket/", recursive=True)
    yield files
    files.rm("bucket", recursive=True)


def local_base(dump: Path) -> str:
    return str(dump.parent)


def test_a_bucket_is_replayed_as_a_folder(bucket: Any, dump: Path, own_cache: Path) -> None:
    base = next(path for path in bucket.ls("bucket"))
    here = record_of(dump, local_base(dump))
    assert record_of(f"s3://{base}/dump", f"s3://{base}", cache=False) == here
    assert [module["verdict"] for module in here["modules"]] == ["identical", "wrong"]
    kept = [path for path in own_cache.rglob("*") if path.is_file()]
    assert not any(b"hush" in path.read_bytes() for path in kept)


def test_results_into_the_bucket(bucket: Any, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = next(path for path in bucket.ls("bucket"))
    out = "s3://bucket/results"
    assert main(["run", f"s3://{base}/dump", "--only", "jit_g", "--save-outputs", out, "--json"]) == 1
    [leaf] = json.loads(capsys.readouterr().out)["modules"][0]["leaves"]
    with bucket.open(leaf["actual_file"]) as file:
        assert np.load(file).dtype == np.float32
    program = f"s3://{base}/dump/module_0000.jit_f.cpu_after_optimizations.txt"
    assert main(["opt", program, "--passes", "dce", "-o", f"{out}/made.hlo"]) == ExitCode.AGREE
    assert hlotool.load(f"{out}/made.hlo").name == "jit_f"
    assert main(["diff", f"{out}/made.hlo", program]) == ExitCode.AGREE
    left, right = leaf["expected_file"], leaf["actual_file"]
    assert main(["diff", left, right]) == ExitCode.MISMATCH


def test_what_is_not_in_the_bucket(bucket: Any) -> None:
    with pytest.raises(DumpError, match=r"^s3://bucket/none: no such file or directory$"):
        hlotool.load("s3://bucket/none")
    with pytest.raises(DumpError, match=r"^s3://other/none: "):
        hlotool.load("s3://other/none")


def test_an_interrupted_run_goes_on_from_a_journal_that_machines_share(bucket: Any, dump: Path) -> None:
    for number in range(2, 4):
        pair = (text.replace("[4]", f"[{number}4]") for text in (DOUBLE, SUM))
        write_module(dump, number, *pair, f"jit_{number}")
    options: dict[str, Any] = {"journal": "s3://bucket/journals", "further_sets": False, "cache": False}
    with pytest.raises(KeyboardInterrupt):
        hlotool.replay(dump, **options, course=Heard(interrupt_after=2))
    assert len(bucket.find("bucket/journals")) == 2
    heard = Heard()
    record = hlotool.replay(dump, **options, course=heard).to_dict()
    assert (heard.started_count, heard.finished_count) == (2, 4)
    options["journal"] = None
    assert without(record) == without(hlotool.replay(dump, **options).to_dict())
    # What is through is forgotten.
    assert not bucket.exists("bucket/journals")


def test_a_journal_in_a_folder_of_this_machine(tmp_path: Path) -> None:
    journal = journal_in(tmp_path, "run", "key")
    journal.add("one", 1)
    journal.close()
    assert [path.name for path in tmp_path.iterdir()] == ["run-key.jsonl"]
    assert journal_in(tmp_path, "run", "key").read() == {"one": 1}


def test_what_is_damaged_in_a_journal_is_passed_over(bucket: Any) -> None:
    journal = journal_in("s3://bucket/journals", "run", "key")
    assert journal.read() == {}
    for key, value in (("one", 1), ("two", 2), ("two", [3])):
        journal.add(key, value)
    assert journal.read() == {"one": 1, "two": [3]}
    [first, second] = sorted(bucket.find("bucket/journals"))
    bucket.pipe_file(first, bucket.cat_file(first)[:-1])
    assert len(journal.read()) == 1
    bucket.pipe_file(second, b"")
    assert journal.read() == {}
    journal.remove()
    assert bucket.find("bucket/journals") == []


def test_a_journal_that_cannot_be_kept_costs_nothing_else(
    bucket: Any, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, content: bytes) -> None:
        raise DumpError(f"{url}: cannot be written: the store denies it")

    monkeypatch.setattr("hlotool.system.store_access.upload", refuse)
    found = hlotool.replay(dump, journal="s3://bucket/journals", cache=False)
    assert [row.verdict.value for row in found.rows] == ["identical", "wrong"]
    [note] = [note for note in found.record.notes if "journal" in note]
    assert note.startswith("the journal cannot be written")
    assert note.endswith("the store denies it")


def test_a_journal_that_cannot_be_read_is_said_at_once(bucket: Any, dump: Path) -> None:
    heard = Heard()
    with pytest.raises(DumpError, match="s3://no-such-bucket/journals"):
        hlotool.replay(dump, journal="s3://no-such-bucket/journals", course=heard)
    assert heard.started_count == 0


def test_records_go_to_the_bucket_and_are_merged_from_there(
    bucket: Any, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [f"s3://bucket/records/shard-{n}.json" for n in (1, 2)]
    for number, place in enumerate(places, start=1):
        main(["run", str(dump), "--shard", f"{number}/2", "--record", place, "-q"])
    assert "1 wrong" in capsys.readouterr().out
    reports = ["--record", "s3://bucket/all.json", "--html", "s3://bucket/all.html"]
    assert main(["merge", *places, *reports, "-q"]) == ExitCode.MISMATCH
    merged = json.loads(bucket.cat_file("bucket/all.json"))
    assert bucket.cat_file("bucket/all.html").rstrip().endswith(b"</html>")
    assert [module["verdict"] for module in merged["modules"]] == ["identical", "wrong"]


def test_a_web_server_keeps_no_journal(dump: Path) -> None:
    with pytest.raises(UsageError, match="a web server takes no files"):
        hlotool.replay(dump, journal="https://host/journals")
