"""All files under a path: a file, a folder, an archive, a URL of one of these."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hlotool.amounts import size_text
from hlotool.dump.compression import Limits
from hlotool.dump.containers import is_archive, is_archive_inside, list_archive
from hlotool.dump.files import File, unreadable
from hlotool.dump.source import Source
from hlotool.dump.spool import PATH, SHOWN, is_pipe, pipe_source, stdin_source, unpacked
from hlotool.errors import DumpError
from hlotool.stores.urls import below, is_url, name_of

#: How many archives may lie one in the other.
_DEEPEST_ARCHIVE = 3


@dataclass(slots=True)
class Listing:
    """Files under a path.

    Attributes:
        files: path relative to the dump (with `/`) and where to read it, sorted by path.
        notes: what was passed over, one line each.
        is_single_file: the path is one file, not a collection.
        takes_stablehlo: files of MLIR count, too: in a folder that has HLO they are what it was made from.
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
    from hlotool.stores.objects import look, objects_below

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
    inner = ((relative, Source(path)) for relative, path in _walk(root, listing.notes))
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


def _walk(root: str, notes: list[str]) -> Iterator[tuple[str, str]]:
    """Regular files below `root`, each by its path from there, with `/`, and by that from here.

    Links to folders are not followed, hidden folders are left alone.
    """

    def note(error: OSError) -> None:
        notes.append(str(unreadable(str(error.filename), error)))

    for folder, folders, files in os.walk(root, onerror=note):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        below_root = os.path.relpath(folder, root).replace(os.sep, "/")
        prefix = "" if below_root == "." else f"{below_root}/"
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield prefix + name, path
            else:
                notes.append(f"{path}: passed over: not a regular file")
