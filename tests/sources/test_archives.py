"""Archives and compressed files: the same dump as unpacked, and no harm from damaged or hostile ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.dumps import Write, module_text

from hlotool.errors import DumpError
from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import load_stage
from hlotool.sources.locations import Source
from hlotool.sources.open_files import Limits

FILES = (
    "module_0002.jit_f.before_optimizations.txt",
    "module_0002.jit_f.cpu_after_optimizations.txt",
    "host/module_0004.jit_g.before_optimizations.txt",
)


def pack(root: Path, name: str) -> Path:
    """The folder `root` as an archive; the name says which kind."""
    path = root.parent / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(root.rglob("*")):
                archive.write(file, file.relative_to(root.parent))
        return path
    with path.open("wb") as raw, tarfile.open(fileobj=raw, mode=_tar_mode(name)) as tar:
        tar.add(root, arcname="./dump")
    return path


def _tar_mode(name: str) -> str:
    for suffixes, mode in (((".gz", ".tgz"), "w:gz"), ((".bz2",), "w:bz2"), ((".xz",), "w:xz")):
        if name.endswith(suffixes):
            return mode
    return "w:"


@pytest.mark.parametrize("name", ["d.tar", "d.tar.gz", "d.tgz", "d.tar.bz2", "d.tar.xz", "d.zip"])
def test_an_archive_reads_like_the_folder(write: Write, name: str) -> None:
    root = write(*FILES)
    dump = open_dump(pack(root, name))
    assert [module.title for module in dump.modules] == [
        "dump/module_0002.jit_f",
        "dump/host/module_0004.jit_g",
    ]
    sources = [stage.source for module in dump.modules for stage in module.stages]
    assert len(sources) == 3
    for source in (*sources, *reversed(sources)):
        assert source.read_text() == module_text()
        assert source.read_head(9) == b"HloModule"


def test_an_archive_inside_a_folder_counts_as_a_folder(write: Write) -> None:
    root = write(*FILES)
    pack(root, "d.tar.gz").rename(root / "old.tar.gz")
    (root / "broken.zip").write_bytes(b"PK nothing")
    dump = open_dump(root)
    assert "old.tar.gz/dump/module_0002.jit_f" in [module.title for module in dump.modules]
    assert any("broken.zip: not a readable zip archive" in note for note in dump.notes)


@pytest.mark.parametrize(
    ("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files(write: Write, suffix: str, compress: Callable[[bytes], bytes]) -> None:
    packed = compress(module_text().encode())
    root = write((f"module_0001.jit_f.before_optimizations.txt.{suffix}", packed), ("b.hlo", packed))
    dump = open_dump(root)
    assert [module.stages[0].kind for module in dump.modules] == [Kind.BEFORE_OPTIMIZATIONS, Kind.PLAIN]
    for module in dump.modules:
        assert module.stages[0].source.read_text() == module_text()


def test_a_file_that_expands_too_far_is_refused(write: Write) -> None:
    bomb = gzip.compress(b"HloModule x\n" + b" " * (8 << 20))
    assert len(bomb) < 20_000
    source = open_dump(write(("module_0001.a.before_optimizations.txt.gz", bomb))).modules[0].stages[0].source
    with pytest.raises(DumpError, match=r"txt\.gz: expands to more than 1 MiB; this is not read"):
        source.read_bytes(Limits(file_bytes=1 << 20))
    assert len(source.read_bytes(Limits(file_bytes=16 << 20))) > 8 << 20


def test_an_archive_that_expands_too_far_is_refused(write: Write) -> None:
    path = pack(write(("a.hlo", b"HloModule x\n" + b" " * (8 << 20))), "d.tar.gz")
    with pytest.raises(DumpError, match=r"d\.tar\.gz: expands to more than 1 MiB"):
        open_dump(path, Limits(archive_bytes=1 << 20))


@pytest.mark.parametrize("name", ["d.zip", "d.tar"])
def test_a_member_that_expands_too_far_is_refused(write: Write, name: str) -> None:
    path = pack(write(("module_0001.a.before_optimizations.txt", b"HloModule a\n" + b" " * (8 << 20))), name)
    source = open_dump(path).modules[0].stages[0].source
    with pytest.raises(DumpError, match="this is not read"):
        source.read_bytes(Limits(file_bytes=1 << 20))


@pytest.mark.parametrize("name", ["d.zip", "d.tar.gz"])
def test_too_many_members_are_refused(write: Write, name: str) -> None:
    path = pack(write(*(f"{i}.hlo" for i in range(20))), name)
    with pytest.raises(DumpError, match="more than 10 entries"):
        open_dump(path, Limits(members=10))


@pytest.mark.parametrize("name", ["d.tar", "d.tar.gz", "d.tar.xz", "d.tar.bz2", "d.zip"])
@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.9])
def test_a_damaged_archive_is_one_line(write: Write, name: str, keep: float) -> None:
    noise = os.urandom(4000)
    path = pack(write("a.hlo", ("b.bin", noise), "c.hlo"), name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    contents: list[str] | str
    try:
        contents = [module.stages[0].source.read_text() for module in open_dump(path).modules]
    except DumpError as error:
        contents = str(error)
    if isinstance(contents, str):
        assert path.name in contents
        assert "\n" not in contents
    else:
        # only an uncompressed tar, cut off behind a member, can still be read so far
        assert name == "d.tar"
        assert set(contents) == {module_text()}


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_a_damaged_compressed_file_is_one_line(write: Write, suffix: str) -> None:
    compress = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[suffix]
    packed = compress(module_text().encode() + os.urandom(5000))
    name = f"module_0001.a.before_optimizations.txt.{suffix}"
    source = open_dump(write((name, packed[:-40]))).modules[0].stages[0].source
    with pytest.raises(DumpError, match="damaged"):
        source.read_bytes()


def test_entries_of_a_tar_that_are_no_files_or_have_unsafe_names_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "evil.tar"
    content = module_text().encode()
    with tarfile.open(path, "w") as tar:
        for name in ("../../escape.hlo", "/absolute.hlo", "good.hlo"):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("link.hlo")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    dump = open_dump(path)
    assert [module.title for module in dump.modules] == ["good.hlo"]
    assert len(dump.notes) == 3
    assert not (tmp_path.parent / "escape.hlo").exists()


def test_unsafe_names_of_a_zip_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../escape.hlo", module_text())
        archive.writestr("good.hlo", module_text())
    dump = open_dump(path)
    assert [module.title for module in dump.modules] == ["good.hlo"]
    assert len(dump.notes) == 1


def test_a_changed_archive_is_read_anew(write: Write) -> None:
    root = write("a.hlo")
    path = pack(root, "d.tar.gz")
    source = open_dump(path).modules[0].stages[0].source
    (root / "a.hlo").write_text(module_text(opcode="abs"), encoding="utf-8")
    pack(root, "d.tar.gz")
    assert "abs(" in source.read_text()


def test_a_file_that_is_gone_is_named(write: Write) -> None:
    root = write("a.hlo")
    source = open_dump(root).modules[0].stages[0].source
    (root / "a.hlo").unlink()
    with pytest.raises(DumpError, match=r"a\.hlo: no such file or directory"):
        source.read_text()


def test_bytes_that_are_no_text_show_as_escapes(write: Write) -> None:
    root = write(("a.hlo", b"\xef\xbb\xbfHloModule caf\xc3\xa9 \xff"))
    assert Source(str(root / "a.hlo")).read_text() == "HloModule café \\xff"


def packed(files: dict[str, bytes]) -> bytes:
    """A zip archive of files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def test_an_archive_in_an_archive_counts_as_a_folder(write: Write) -> None:
    """Up to a depth; a damaged one is a note, and nothing is unpacked under its own name."""
    inner = packed({"step/x.hlo": module_text().encode(), "../evil.hlo": b"x"})
    outer = packed({"dumps/inner.zip": inner, "bad.zip": b"PK\x03\x04damaged"})
    dump = open_dump(write(("all.zip", outer)) / "all.zip")
    [module] = dump.modules
    assert module.title == "dumps/inner.zip/step/x.hlo"
    assert str(module.stages[0].source).endswith("all.zip!dumps/inner.zip!step/x.hlo")
    assert load_stage(module, module.stages[0]).name == "jit_f"
    assert any("bad.zip: not a readable zip archive" in note for note in dump.notes)
    assert any("'../evil.hlo'" in note for note in dump.notes)


def test_archives_in_archives_end(write: Write) -> None:
    content = module_text().encode()
    for _ in range(6):
        content = packed({"x.zip": content})
    with pytest.raises(DumpError, match="no HLO"):
        open_dump(write(("all.zip", content)) / "all.zip")


def test_archives_in_archives_share_a_limit(write: Write) -> None:
    text = module_text().encode()
    root = write(("all.zip", packed({f"{n}.zip": packed({f"{n}.hlo": text}) for n in range(100)})))
    dump = open_dump(root / "all.zip", Limits(file_bytes=16 << 10))
    assert 0 < len(dump.modules) < 100
    assert any("archives in archives of more than 16 KiB" in note for note in dump.notes)


def test_a_name_need_not_say_that_it_is_an_archive(write: Write) -> None:
    root = write(("download", packed({"x.hlo": module_text().encode()})))
    assert [module.title for module in open_dump(root / "download").modules] == ["x.hlo"]


def test_a_pipe_is_read_once_and_kept() -> None:
    """What a shell makes of `<(command)`: each worker could not read it again."""
    ends = os.pipe()
    os.write(ends[1], module_text().encode())
    os.close(ends[1])
    path = f"/dev/fd/{ends[0]}"
    for _ in range(2):
        [module] = open_dump(path).modules
        assert load_stage(module, module.stages[0]).path == path
    os.close(ends[0])
