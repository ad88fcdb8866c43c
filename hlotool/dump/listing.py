"""All files under a path: a file, a folder, an archive, a remote folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from hlotool.dump import remote
from hlotool.dump.compression import Limits
from hlotool.dump.containers import is_archive, list_archive, unreadable
from hlotool.dump.source import Source
from hlotool.dump.stdin import PATH, SHOWN, stdin_source
from hlotool.errors import DumpError


@dataclass(slots=True)
class Listing:
    """Files under a path.

    Attributes:
        files: path relative to the dump (with `/`) and where to read it, sorted by path.
        notes: what was passed over, one line each.
        is_single_file: the path is one file, not a collection.
        takes_stablehlo: files of MLIR count, too: in a folder that has HLO they are what it was made from.
    """

    files: list[tuple[str, Source]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_single_file: bool = False
    takes_stablehlo: bool = False


def list_files(path: str, limits: Limits) -> Listing:
    """List `path`, `-` for standard input; raises DumpError when it does not exist or cannot be read."""
    if path == PATH:
        return Listing([(SHOWN, stdin_source(limits))], is_single_file=True)
    if is_archive(path):
        return _list_archive(path, limits)
    if remote.is_remote(path):
        return _list_remote(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        return _list_folder(path, limits)
    if stat.S_ISREG(mode):
        return Listing([(os.path.basename(path), Source(path))], is_single_file=True)
    raise DumpError(f"{path}: neither a file nor a directory")


def _list_archive(path: str, limits: Limits) -> Listing:
    names, skipped = list_archive(path, limits)
    notes = [f"{path}: passed over {name!r}: a link, a device or an unsafe name" for name in skipped]
    return Listing(sorted((name, Source(path, name)) for name in names), notes)


def _list_remote(url: str) -> Listing:
    base = url.rstrip("/")
    found = remote.list_files(url)
    if found == [url]:
        return Listing([(base.rpartition("/")[2], Source(url))], is_single_file=True)
    return Listing([(name.removeprefix(base).lstrip("/"), Source(name)) for name in found])


def _list_folder(root: str, limits: Limits) -> Listing:
    try:
        os.listdir(root)
    except OSError as error:
        raise unreadable(root, error) from error
    listing = Listing()
    for path in _walk(root, listing.notes):
        relative = os.path.relpath(path, root).replace(os.sep, "/")
        if is_archive(path):
            _add_archive(path, relative, listing, limits)
        else:
            listing.files.append((relative, Source(path)))
    listing.files.sort(key=lambda file: file[0])
    return listing


def _add_archive(path: str, relative: str, listing: Listing, limits: Limits) -> None:
    """An archive inside a folder counts as a folder; a damaged one becomes a note."""
    try:
        inner = _list_archive(path, limits)
    except DumpError as error:
        listing.notes.append(str(error))
        return
    listing.files += [(f"{relative}/{name}", source) for name, source in inner.files]
    listing.notes += inner.notes


def _walk(root: str, notes: list[str]) -> Iterator[str]:
    """Regular files below `root`; links to folders are not followed, hidden folders are left alone."""

    def note(error: OSError) -> None:
        notes.append(str(unreadable(str(error.filename), error)))

    for folder, folders, files in os.walk(root, onerror=note):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield path
            else:
                notes.append(f"{path}: passed over: not a regular file")
