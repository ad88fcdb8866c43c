"""Where texts and protos lie: files, members of archives, remote objects, parts of these; listings.

A `Source` is a small frozen record, so it travels to worker processes as it is; nothing is open until it is
read. Whatever is read is bounded: a file that expands beyond `Limits` is an error, not a full memory. What
lies in no file of its own (pipes, archives in archives) is kept as one for the worker processes.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from hlotool.errors import DumpError
from hlotool.sources import archives
from hlotool.sources.archives import is_archive, is_archive_inside, list_archive
from hlotool.sources.file_names import promises_hlo
from hlotool.sources.open_files import (
    DEFAULT_LIMITS,
    File,
    Limits,
    Stamp,
    copy_bounded,
    open_file,
    stamp,
    unreadable,
)
from hlotool.system.files import passing_folder
from hlotool.system.urls import below, is_url, name_of
from hlotool.system.user_input import size_text

if TYPE_CHECKING:
    from hlotool.sources.wrapped import Wrapped


#: What absl logging writes to stderr; a log that merged stderr into stdout has such lines amid the HLO.
_ABSL_LINE = re.compile(rb"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\s:]+:\d+\].*\n?", re.MULTILINE)


class Source(Struct, frozen=True):
    """Something that can be read, by name.

    Attributes:
        path: of the file or remote object.
        member: name inside the archive, empty when `path` is no archive.
        span: start and end in bytes, when only a part of the content is meant.
        is_log: the part was printed to a log, where other lines may stand between its own.
        item: number of a program that is wrapped in the content, counted from 0.
        shown: what messages call the file, where that is not its path.
        version: of a remote object, as the listing told it; see `hlotool.system.store_objects`.
        problem: why it cannot be read, where the listing saw that.
    """

    path: str
    member: str = ""
    span: tuple[int, int] | None = None
    is_log: bool = False
    item: int | None = None
    shown: str = ""
    version: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.file_text}#{self.item + 1}" if self.item else self.file_text

    @property
    def file_text(self) -> str:
        """What stands in front of a line number: of a wrapped program the file that it stands in."""
        path = self.shown or self.path
        whole = f"{path}!{self.member}" if self.member else path
        return f"{whole}@{self.span[0]}" if self.span and self.span[0] else whole

    @property
    def file(self) -> File:
        """What is opened to read it."""
        return File(self.path, self.version)

    @property
    def name(self) -> str:
        """The last part of the path: what `parse_name` understands."""
        return name_of(self.member or self.path.replace(os.sep, "/"))

    def read_bytes(self, limits: Limits = DEFAULT_LIMITS) -> bytes:
        """The content, decompressed.

        Raises:
            DumpError: it is gone, may not be read, is damaged, or exceeds `limits.file_bytes`.
        """
        with self._named():
            if self.item is not None:
                return _wrapped(self.file, self.member, limits, stamp(self.file))[self.item].read()
            if self.span is None:
                return archives.read(self.file, self.member, limits)
            part = _whole(self.file, self.member, limits, stamp(self.file))[slice(*self.span)]
        return _ABSL_LINE.sub(b"", part) if self.is_log else part

    def read_text(self, limits: Limits = DEFAULT_LIMITS) -> str:
        """The content as text; bytes that are no UTF-8 appear as `\\xNN`."""
        return decode(self.read_bytes(limits))

    def read_head(self, size: int, limits: Limits = DEFAULT_LIMITS) -> bytes:
        """The first `size` bytes at most, without expanding the rest where that can be avoided."""
        if self.span is None and self.item is None:
            with self._named():
                return archives.read_head(self.file, self.member, size, limits)
        return self.read_bytes(limits)[:size]

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors call a file that hlotool made by the name under which the user knows its content.

        Raises:
            DumpError: of what the listing saw.
        """
        if self.problem:
            raise DumpError(f"{self.path}: {self.problem}")
        try:
            yield
        except DumpError as error:
            if not self.shown:
                raise
            raise DumpError(str(error).replace(self.path, self.shown)) from error

    def wrapped(self, number: int) -> Source:
        """Program `number` of those that are wrapped in the content of this source."""
        return replace(self, item=number)

    def part(self, start: int, end: int, is_log: bool = False) -> Source:
        """The bytes from `start` to `end` of the content of this source, which must not be a part itself."""
        return replace(self, span=(start, end), is_log=is_log)


@lru_cache(maxsize=1)
def _whole(file: File, member: str, limits: Limits, known: Stamp) -> bytes:
    """The content that parts are cut from: a log may have hundreds, read one after the other."""
    return archives.read(file, member, limits)


@lru_cache(maxsize=1)
def _wrapped(file: File, member: str, limits: Limits, known: Stamp) -> tuple[Wrapped, ...]:
    """The programs that are wrapped in the content, in the same way."""
    from hlotool.sources.wrapped import wrapped_texts

    return wrapped_texts(archives.read(file, member, limits))


def decode(content: bytes) -> str:
    """UTF-8 text, a byte order mark removed; other bytes appear as `\\xNN`."""
    return content.decode("utf-8-sig", errors="backslashreplace")


#: What standard input is called on the command line, and in messages.
PATH, SHOWN = "-", "<stdin>"
_STDIN = "/dev/stdin"


def is_pipe(path: str) -> bool:
    """Whether `path` names what this process has open: standard input, or a shell's `<(command)`."""
    return path == _STDIN or os.path.dirname(path) in ("/dev/fd", "/proc/self/fd")


def stdin_source(limits: Limits) -> Source:
    """Standard input as something to read, as often as it is asked for.

    Raises:
        DumpError: it holds more than `limits.file_bytes`.
    """
    return Source(_spooled(sys.stdin, limits), shown=SHOWN)


def pipe_source(path: str, limits: Limits) -> Source:
    """What `is_pipe` knows, likewise; raises DumpError also when it is not open."""
    if path == _STDIN:
        return stdin_source(limits)
    return Source(_spooled(path, limits), shown=path)


@cache
def _spooled(stream: Any, limits: Limits) -> str:
    """The path of a file with all of a stream, or of a pipe of that name, which can be read only once."""
    handle, path = tempfile.mkstemp(dir=_folder())
    with open(handle, "wb") as copy:
        if isinstance(stream, str):
            with open_file(File(stream), limits) as raw:
                copy_bounded(raw, copy, limits.file_bytes, stream)
        else:
            copy_bounded(getattr(stream, "buffer", stream), copy, limits.file_bytes, SHOWN)
    return path


def unpacked(archive: Source, limits: Limits) -> str:
    """The path of a file with the content of an archive that lies in another one; raises DumpError."""
    return _unpacked(archive, limits, stamp(archive.file))


@cache
def _unpacked(archive: Source, limits: Limits, known: Stamp) -> str:
    content = archive.read_bytes(limits)
    handle, path = tempfile.mkstemp(".zip" if content.startswith(b"PK") else ".tar", dir=_folder())
    with open(handle, "wb") as copy:
        copy.write(content)
    return path


#: Removed when the process ends.
_folder = cache(passing_folder)


#: How many archives may lie one in the other.
_DEEPEST_ARCHIVE = 3


class Listing(Struct):
    """Files under a path.

    Attributes:
        files: path relative to the dump (with `/`) and where to read it, sorted by path.
        notes: what was passed over, one line each.
        is_single_file: the path is one file, not a collection.
        takes_stablehlo: files of MLIR count, too: in a dump they are what its HLO was made from.
        takes_documents: texts of any name count, too: in a folder that has neither HLO nor StableHLO.
        unpacked_bytes: of the archives that lie in an archive.
    """

    files: list[tuple[str, Source]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_single_file: bool = False
    takes_stablehlo: bool = False
    takes_documents: bool = False
    unpacked_bytes: int = 0

    def take_more(self) -> bool:
        """Let StableHLO count, then any text; False where nothing is left, as a single file always counts."""
        if self.is_single_file or self.takes_documents:
            return False
        self.takes_stablehlo, self.takes_documents = True, self.takes_stablehlo
        return True


def list_files(path: str, limits: Limits) -> Listing:
    """List `path`, `-` for standard input; raises DumpError when it does not exist or cannot be read."""
    if path == PATH:
        return Listing([(SHOWN, stdin_source(limits))], is_single_file=True)
    if is_pipe(path):
        return Listing([(os.path.basename(path), pipe_source(path, limits))], is_single_file=True)
    if is_url(path):
        return _list_url(path, limits)
    if is_archive(path):
        return _list_archive(File(path), limits)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        return _list_folder(path, limits)
    if stat.S_ISREG(mode):
        if is_archive_inside(File(path), limits):
            return _list_archive(File(path), limits)
        return Listing([(os.path.basename(path), Source(path))], is_single_file=True)
    raise DumpError(f"{path}: neither a file nor a directory")


def _list_archive(file: File, limits: Limits, shown: str = "", depth: int = _DEEPEST_ARCHIVE) -> Listing:
    names, skipped = list_archive(file, limits)
    listing = Listing()
    for name in skipped:
        listing.notes.append(f"{shown or file}: passed over {name!r}: a link, a device or an unsafe name")
    for name in names:
        member = Source(file.path, name, shown=shown, version=file.version)
        if depth and is_archive(name):
            _add_archive(member, name, listing, limits, depth - 1)
        else:
            listing.files.append((name, member))
    listing.files.sort(key=lambda file: file[0])
    return listing


def _list_url(url: str, limits: Limits) -> Listing:
    from hlotool.system.store_objects import look, objects_below

    found = look(url)
    if found.is_folder:
        inner = (
            (below(url, one.url), Source(one.url, version=one.version))
            for one in objects_below(url, limits.members)
        )
        return _listed(inner, Listing(), limits)
    file = File(url, found.version)
    if is_archive(url) or is_archive_inside(file, limits):
        return _list_archive(file, limits)
    return Listing([(name_of(url), Source(url, version=found.version))], is_single_file=True)


def _list_folder(root: str, limits: Limits) -> Listing:
    try:
        os.listdir(root)
    except OSError as error:
        raise unreadable(root, error) from error
    listing = Listing()
    inner = _walk(root, listing.notes)
    return _listed(inner, listing, limits)


def _listed(found: Iterable[tuple[str, Source]], listing: Listing, limits: Limits) -> Listing:
    """The files of a folder, by their path in it; archives among them count as folders."""
    for relative, source in found:
        if is_archive(source.path):
            _add_archive(source, relative, listing, limits)
        else:
            listing.files.append((relative, source))
    listing.files.sort(key=lambda file: file[0])
    return listing


def _add_archive(
    archive: Source, relative: str, listing: Listing, limits: Limits, depth: int = _DEEPEST_ARCHIVE
) -> None:
    """An archive inside a folder or another archive counts as a folder; a damaged one becomes a note."""
    path = archive.path
    try:
        if not archive.member:
            inner = _list_archive(archive.file, limits)
        else:
            path = unpacked(archive, limits)
            listing.unpacked_bytes += os.path.getsize(path)
            if listing.unpacked_bytes > limits.file_bytes:
                most = size_text(limits.file_bytes)
                raise DumpError(f"{archive}: archives in archives of more than {most}; this is not read")
            inner = _list_archive(File(path), limits, str(archive), depth)
            listing.unpacked_bytes += inner.unpacked_bytes
    except DumpError as error:
        listing.notes.append(str(error).replace(path, str(archive)))
        return
    listing.files += [(f"{relative}/{name}", source) for name, source in inner.files]
    listing.notes += inner.notes


def _walk(root: str, notes: list[str]) -> Iterator[tuple[str, Source]]:
    """Regular files below `root`, each by its path from there, with `/`.

    Links to folders are not followed, hidden folders are left alone. What is no regular file cannot be read
    where its name promises HLO, and is a note else.
    """

    def note(error: OSError) -> None:
        notes.append(str(unreadable(str(error.filename), error)))

    for folder, folders, files in os.walk(root, onerror=note):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        below_root = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if below_root == "." else f"{below_root}/"
        if not (folders or files) and prefix and promises_hlo(below_root):
            yield below_root, Source(folder, problem="an empty folder")
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield prefix + name, Source(path)
            elif promises_hlo(name):
                yield prefix + name, Source(path, problem="not a regular file")
            else:
                notes.append(f"{path}: passed over: not a regular file")
