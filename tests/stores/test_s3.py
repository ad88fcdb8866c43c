"""Dumps in an object store that speaks S3: the same record as here, and results into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores.test_web import record_of

import hlotool
from hlotool.cli.main import main
from hlotool.errors import DumpError, ExitCode

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
    assert record_of(f"s3://{base}/dump", f"s3://{base}") == here
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
