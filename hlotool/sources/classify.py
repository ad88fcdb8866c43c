"""From listed files to dump files: contents decide where names say nothing.

What looks into files is imported when a name says nothing: those of a dump tell it all.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hlotool.errors import DumpError
from hlotool.sources.file_names import DumpName, Kind, parse_name
from hlotool.sources.locations import Listing, Source
from hlotool.sources.open_files import Limits
from hlotool.sources.records import DumpFile

_STABLEHLO = (".mlir", ".mlirbc")
_STAGES = (Kind.BEFORE_OPTIMIZATIONS, Kind.PASS, Kind.NAMED, Kind.AFTER_OPTIMIZATIONS, Kind.FUSION)


def classify(listing: Listing, limits: Limits) -> list[DumpFile]:
    """What each file of the listing is.

    Raises:
        DumpError: a single file that was asked for by name is unreadable. Inside a folder such a file becomes
            a module that cannot be read where its name promises HLO, else a note of the listing.
    """
    found: list[DumpFile] = []
    for path, source in listing.files:
        try:
            found += _classify_file(path, source, limits, listing)
        except DumpError as error:
            if listing.is_single_file:
                raise
            from hlotool.sources.content import broken

            if damaged := broken(path, source):
                found.append(damaged)
            else:
                listing.notes.append(str(error))
    return found


def _classify_file(path: str, source: Source, limits: Limits, listing: Listing) -> Iterator[DumpFile]:
    name = parse_name(source.name)
    if name.kind in _STAGES:
        yield DumpFile(path, source, name if name.module_name else _named_by_content(name, source, limits))
    elif _may_hold_modules(name, listing) or _is_document(name, source, limits, listing):
        from hlotool.sources.content import files_in

        yield from files_in(path, source, name, limits, listing)
    else:
        yield DumpFile(path, source, name)


def _may_hold_modules(name: DumpName, listing: Listing) -> bool:
    """Whether the content has to be looked at; any file is, when the user asked for just that one."""
    if name.kind in (Kind.UNKNOWN, Kind.PLAIN):
        return True
    is_wanted = listing.is_single_file or (listing.takes_stablehlo and name.text.endswith(_STABLEHLO))
    return is_wanted and name.kind in (Kind.ARTEFACT, Kind.STABLEHLO)


def _is_document(name: DumpName, source: Source, limits: Limits, listing: Listing) -> bool:
    """Whether a file of a folder that has no HLO of its own may quote some."""
    if not listing.takes_documents or name.module_number is not None:
        return False
    from hlotool.sources.content import is_document

    return is_document(source, limits)


def _named_by_content(name: DumpName, source: Source, limits: Limits) -> DumpName:
    """The module's name from the HLO itself, for file names that had no room for it."""
    from hlotool.sources.content import HEAD_BYTES
    from hlotool.sources.sections import module_name

    return replace(name, module_name=module_name(source.read_head(HEAD_BYTES, limits)))
