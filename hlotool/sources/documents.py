"""Programs that documents quote, in a folder that has HLO of its own.

A report beside its programs mostly quotes what lies there, cut to what matters, and a folder may be a whole
repository. So a document counts for whole programs only, and one that speaks of a program beside it (`bug.md`
of `bug.hlo`, a README) not for that one; it is never an error, and large ones, and very many, are not read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hlotool.errors import DumpError, HlotoolError
from hlotool.sources.classify import classify
from hlotool.sources.content import HEAD_BYTES, is_text
from hlotool.sources.file_names import Format, Kind
from hlotool.sources.grouping import group
from hlotool.sources.locations import Listing
from hlotool.sources.mlir import is_mlir
from hlotool.sources.open_files import Limits
from hlotool.sources.records import DumpFile
from hlotool.sources.stages import read_stage

#: Bytes of a document, and documents of a folder, that are looked at.
_LARGEST, _MOST = 1 << 20, 2000
#: What every program has somewhere, however it is wrapped; bytes as Python prints them, and base64 of protos.
_QUOTED = re.compile(rb"HloModule|ENTRY\b|stablehlo|mhlo\.|\bfunc\b|\\x[01][0-9a-f]|[A-Za-z0-9+/]{60}")
#: Documents that speak of whatever lies beside them.
_GENERAL = ("readme", "report", "index", "notes")
_BLANKS = re.compile(rb"\s+")
#: Records of this tool quote the programs that they are about.
_OWN_RECORD = b'"schema":"hlotool.'


def quoted(listing: Listing, files: Sequence[DumpFile], limits: Limits) -> list[DumpFile]:
    """The programs of documents among `files` that are whole and lie in no file; `listing` gets notes.

    Args:
        listing: of the folder.
        files: what it holds.
        limits: how much may be read of one.
    """
    candidates = [
        file for file in files if file.name.format is Format.OTHER and file.name.module_number is None
    ]
    if len(candidates) > _MOST:
        listing.notes.append(f"{len(candidates) - _MOST} files are not searched for HLO that they quote")
    small = replace(limits, file_bytes=_LARGEST)
    found = [each for file in candidates[:_MOST] for each in _in_document(file, small)]
    beside: defaultdict[tuple[str, bytes], list[str]] = defaultdict(list)
    for file in files if found else ():
        if file.name.format is not Format.OTHER:
            beside[file.directory, _essence(file, limits)].append(_stem(file))
    kept: list[DumpFile] = []
    for file in found:
        owners = beside[file.directory, _essence(file, limits)]
        if owners and (_stem(file) in owners or _stem(file).lower().startswith(_GENERAL)):
            continue
        if _is_whole(file):
            kept.append(file)
        else:
            listing.notes.append(f"{file.source}: quotes HLO that is not whole; name it to see why")
    return kept


def _in_document(file: DumpFile, limits: Limits) -> Iterator[DumpFile]:
    """What the document quotes."""
    try:
        head = file.source.read_head(HEAD_BYTES, limits)
        content = file.source.read_bytes(limits) if is_text(head) or is_mlir(head) else b""
    except DumpError:
        return
    if not (_QUOTED.search(content) or is_mlir(content)) or _OWN_RECORD in content[:HEAD_BYTES]:
        return
    inner = Listing([(file.path, file.source)], takes_stablehlo=True, takes_documents=True)
    try:
        inside = classify(inner, limits)
    except HlotoolError:
        return
    yield from (each for each in inside if each.name.kind not in (Kind.ARTEFACT, Kind.UNKNOWN))


def _stem(file: DumpFile) -> str:
    """The name up to its first dot."""
    return file.source.name.partition(".")[0]


def _essence(file: DumpFile, limits: Limits) -> bytes:
    """What two prints of one program have in common; what cannot be read has nothing."""
    try:
        return _BLANKS.sub(b"", file.source.read_bytes(limits))
    except DumpError:
        return b""


def _is_whole(file: DumpFile) -> bool:
    """Whether it can be read as a program from its beginning to its end."""
    modules, _ = group([file], [])
    try:
        read = [read_stage(s, reads_literals=False) for m in modules for s in (*m.stages, *m.others)]
    except HlotoolError:
        return False
    return not any(module.cut for module in read)
