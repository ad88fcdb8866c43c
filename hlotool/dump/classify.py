"""From listed files to dump files: contents decide where names say nothing; logs are cut into blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hlotool.dump.compression import Limits
from hlotool.dump.listing import Listing
from hlotool.dump.names import DumpName, Format, Kind, parse_name
from hlotool.dump.records import DumpFile
from hlotool.dump.sections import Section, looks_like_hlo, split_log, split_modules
from hlotool.dump.source import Source
from hlotool.errors import DumpError
from hlotool.parse.proto.wire import varint

# What a file is, judged by its content: for names that say nothing, and for names that lie.

#: As much of a file as is looked at.
HEAD_BYTES = 1 << 16

_TEXT_PROTO_MODULE = re.compile(rb"^\s*(?:hlo_module|hlo)\s*:?\s*\{")
_HEADER_NAME = re.compile(rb"^HloModule[ \t]+%?([^\s,]+)", re.MULTILINE)
#: Each of the messages read here begins with another one (or, HloModuleProto, with its name), so the number
#: of messages that open one in the other before the first string tells them apart. HloProto and the small
#: form of HloUnoptimizedSnapshot look alike; the reader of PLAIN protos takes either. The large form of the
#: latter begins with its length.
_NESTING = {0: Kind.PLAIN, 1: Kind.PLAIN, 2: Kind.SNAPSHOT}


def sniff(head: bytes) -> tuple[Kind, Format]:
    """Kind and format of a file that begins with `head`: PLAIN, SNAPSHOT, or UNKNOWN."""
    if _is_text(head):
        if _TEXT_PROTO_MODULE.match(head):
            return Kind.UNOPTIMIZED_SNAPSHOT, Format.TEXT_PROTO
        return (Kind.PLAIN, Format.TEXT) if looks_like_hlo(head) else (Kind.UNKNOWN, Format.OTHER)
    kind = _NESTING.get(_proto_nesting(head), Kind.UNKNOWN)
    if kind is Kind.UNKNOWN and _proto_nesting(head, has_length=True) == 1:
        kind = Kind.UNOPTIMIZED_SNAPSHOT
    return kind, Format.PROTO if kind is not Kind.UNKNOWN else Format.OTHER


def module_name(head: bytes) -> str:
    """The name on the HloModule line, or empty."""
    found = _HEADER_NAME.search(head)
    return found.group(1).decode("utf-8", errors="backslashreplace") if found else ""


def _is_text(head: bytes) -> bool:
    return b"\0" not in head[:4096] and not any(c < 9 for c in head[:256])


def _proto_nesting(head: bytes, has_length: bool = False) -> int:
    """How many messages are opened, each as field 1 of the one around it, before a plausible module name.

    -1 where there is no such name. With `has_length` the outermost message stands behind its length.
    """
    try:
        at, depth = varint(head)[0] if has_length else 0, 0
        while depth <= max(_NESTING) and head[at : at + 1] == b"\x0a":
            start, length = varint(head, at + 1)
            content = head[start : start + length]
            if len(content) == length and content and _is_name(content):
                return depth
            at, depth = start, depth + 1
    except ValueError:
        pass
    return -1


def _is_name(content: bytes) -> bool:
    return len(content) < 4096 and all(32 < c != 127 for c in content)


_STAGES = (Kind.BEFORE_OPTIMIZATIONS, Kind.PASS, Kind.NAMED, Kind.AFTER_OPTIMIZATIONS, Kind.FUSION)


def classify(listing: Listing, limits: Limits) -> list[DumpFile]:
    """What each file of the listing is.

    Raises:
        DumpError: a single file that was asked for by name is unreadable. Inside a folder such a file becomes
            a note of the listing.
    """
    found: list[DumpFile] = []
    for path, source in listing.files:
        try:
            found += _classify_file(path, source, limits, listing)
        except DumpError as error:
            if listing.is_single_file:
                raise
            listing.notes.append(str(error))
    return found


def _classify_file(path: str, source: Source, limits: Limits, listing: Listing) -> Iterator[DumpFile]:
    name = parse_name(source.name)
    if name.kind in _STAGES:
        yield DumpFile(path, source, name if name.module_name else _named_by_content(name, source, limits))
    elif _may_hold_modules(name, listing.is_single_file):
        yield from _by_content(path, source, name, limits, listing)
    else:
        yield DumpFile(path, source, name)


def _may_hold_modules(name: DumpName, explicit: bool) -> bool:
    """Whether the content has to be looked at; any file is, when the user asked for just that one."""
    return name.kind in (Kind.UNKNOWN, Kind.PLAIN) or (explicit and name.kind is Kind.ARTEFACT)


def _named_by_content(name: DumpName, source: Source, limits: Limits) -> DumpName:
    """The module's name from the HLO itself, for file names that had no room for it."""
    return replace(name, module_name=module_name(source.read_head(HEAD_BYTES, limits)))


def _by_content(
    path: str, source: Source, name: DumpName, limits: Limits, listing: Listing
) -> Iterator[DumpFile]:
    head = source.read_head(HEAD_BYTES, limits)
    kind, form = sniff(head)
    if form in (Format.PROTO, Format.TEXT_PROTO):
        found = replace(name, kind=kind, format=form)
        yield DumpFile(path, source, _placed(found, module_name(head), listing.is_single_file))
        return
    if name.kind is Kind.PLAIN and name.format is Format.PROTO:
        yield DumpFile(path, source, name)
        return
    content = source.read_bytes(limits)
    if blocks := split_log(content):
        yield from _blocks("" if listing.is_single_file else path, source, blocks, listing.notes)
        return
    parts = split_modules(content)
    if not parts:
        yield DumpFile(path, source, replace(name, kind=Kind.ARTEFACT, format=Format.OTHER))
    for i, part in enumerate(parts):
        whole = len(parts) == 1
        part_name = module_name(content[part.start : min(part.end, part.start + HEAD_BYTES)])
        part_source = source if whole else source.part(part.start, part.end)
        plain = replace(name, kind=Kind.PLAIN, format=Format.TEXT)
        plain = _placed(plain, part_name, listing.is_single_file)
        yield DumpFile(path if whole else f"{path}#{i + 1}", part_source, plain)


def _placed(name: DumpName, own_name: str, explicit: bool) -> DumpName:
    """A file of a numbered module with an unknown suffix becomes a named stage of that module.

    Asked for by its name, it is a program for itself: so are the files that `reduce` and `extract` write.
    """
    if explicit and name.kind is Kind.PLAIN:
        name = replace(name, module_number=None)
    if name.kind is not Kind.PLAIN or name.module_number is None:
        return replace(name, module_name=name.module_name or own_name)
    label = name.rest.removeprefix(f"{own_name}.").rpartition(".")[0]
    return replace(name, kind=Kind.NAMED, module_name=own_name, label=label)


def _blocks(folder: str, source: Source, blocks: list[Section], notes: list[str]) -> Iterator[DumpFile]:
    """The files that a log holds. A name that comes again belongs to another process or run."""
    runs: dict[tuple[int | None, str], list[set[str]]] = {}
    for block in blocks:
        if not block.is_complete:
            notes.append(f"{source}: the log ends within {block.name}")
        name = parse_name(block.name)
        seen = runs.setdefault((name.module_number, name.module_name or name.rest), [set()])
        if block.name in seen[-1]:
            seen.append(set())
        seen[-1].add(block.name)
        run = f"run {len(seen)}" if len(seen) > 1 else ""
        path = "/".join(filter(None, [folder, run, block.name]))
        yield DumpFile(path, source.part(block.start, block.end, is_log=True), name)
