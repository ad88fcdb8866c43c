"""From a scratch dump to a corpus directory: choose files, make their paths neutral, pack them."""

from __future__ import annotations

import fnmatch
import gzip
import io
import re
import shutil
import socket
import sysconfig
import tarfile
import zipfile
from pathlib import Path

from directories import Directory

ROOT = Path(__file__).resolve().parents[2]
#: In the scratch directory: what the program wrote to standard output.
LOG = "stdout.log"
BINARY_SUFFIXES = (".pb", ".gz", ".o", ".npz", ".zip")


def neutral(text: str, scratch: Path) -> str:
    """`text` without the paths and the name of this machine."""
    for path, replacement in (
        (str(scratch), "scratch"),
        (sysconfig.get_path("purelib"), "site-packages"),
        (sysconfig.get_path("platlib"), "site-packages"),
        (sysconfig.get_path("stdlib"), "lib/python"),
        (f"{ROOT}/", ""),
    ):
        text = text.replace(path, replacement)
    return text


def _wanted(name: str, directory: Directory) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in directory.keep) and not any(
        fnmatch.fnmatch(name, pattern) for pattern in directory.drop
    )


def _read(path: Path, scratch: Path) -> bytes:
    if path.suffix in BINARY_SUFFIXES:
        return path.read_bytes()
    return neutral(path.read_text(encoding="utf-8"), scratch).encode()


def collect(directory: Directory, scratch: Path) -> dict[str, bytes]:
    """The files of a corpus directory by relative name, read from the scratch directory of a run."""
    if directory.pack == "log":
        log = (scratch / LOG).read_text(encoding="utf-8")
        return {LOG: neutral(log, scratch).encode()}
    dump = scratch / "dump"
    names = sorted(str(path.relative_to(dump)) for path in dump.rglob("*") if path.is_file())
    host_folder = re.compile(rf"/{re.escape(socket.gethostname())}(_\d+)?/")
    files = {
        host_folder.sub("/host/", name): _read(dump / name, scratch)
        for name in names
        if _wanted(name, directory)
    }
    values = {path.name: path.read_bytes() for path in scratch.glob("*.npz")}
    return (pack(files, directory) if directory.pack else files) | values


def pack(files: dict[str, bytes], directory: Directory) -> dict[str, bytes]:
    """One archive that holds `files` below a folder, the same bytes on every run."""
    stream = io.BytesIO()
    if directory.pack == "zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(f"{directory.program}/{name}"), data, zipfile.ZIP_DEFLATED)
    else:
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            for name, data in files.items():
                entry = tarfile.TarInfo(f"{directory.program}/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return {f"{directory.program}.{directory.pack}": stream.getvalue()}


def write(files: dict[str, bytes], target: Path) -> None:
    """Replace the directory `target` by `files`."""
    if target.exists():
        shutil.rmtree(target)
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
