"""What a file is, judged by its content: for names that say nothing, and for names that lie.

A profiler keeps in its `.xplane.pb` the HloProto of each program that ran, as a statistic of an event's
description, in the plane `/host:metadata`. They are found by the wire format: a profile may be large, and
little of it is wanted.

XLA: tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from hlotool.errors import DumpError
from hlotool.parser.proto.schema import fields, varint
from hlotool.sources.file_names import DumpName, Format, Kind, parse_name, promises_hlo
from hlotool.sources.locations import Listing, Source
from hlotool.sources.mlir import function_name, is_mlir, mlir_programs
from hlotool.sources.open_files import Limits
from hlotool.sources.pages import pairs_of
from hlotool.sources.records import DumpFile
from hlotool.sources.sections import is_mended, looks_like_hlo, mended, module_name, split_log, split_modules
from hlotool.sources.wrapped import Wrapped, is_as_printed, wrapped_texts

#: As much of a file as is looked at.
HEAD_BYTES = 1 << 16

_TEXT_PROTO_MODULE = re.compile(rb"^\s*(?:hlo_module|hlo)\s*:?\s*\{")
#: Each of the messages read here begins with another one (or, HloModuleProto, with its name), so the number
#: of messages that open one in the other before the first string tells them apart. HloProto and the small
#: form of HloUnoptimizedSnapshot look alike; the reader of PLAIN protos takes either. The large form of the
#: latter begins with its length.
_NESTING = {0: Kind.PLAIN, 1: Kind.PLAIN, 2: Kind.SNAPSHOT}


def sniff(head: bytes) -> tuple[Kind, Format]:
    """Kind and format of a file that begins with `head`: PLAIN, SNAPSHOT, or UNKNOWN."""
    if is_text(head):
        if _TEXT_PROTO_MODULE.match(head):
            return Kind.UNOPTIMIZED_SNAPSHOT, Format.TEXT_PROTO
        if is_mlir(head):
            return Kind.PLAIN, Format.MLIR
        return (Kind.PLAIN, Format.TEXT) if looks_like_hlo(head) else (Kind.UNKNOWN, Format.OTHER)
    if is_mlir(head):
        return Kind.PLAIN, Format.MLIR
    kind = _NESTING.get(_proto_nesting(head), Kind.UNKNOWN)
    if kind is Kind.UNKNOWN and _proto_nesting(head, has_length=True) == 1:
        kind = Kind.UNOPTIMIZED_SNAPSHOT
    return kind, Format.PROTO if kind is not Kind.UNKNOWN else Format.OTHER


def is_text(head: bytes) -> bool:
    """Whether a file that begins with `head` is a text."""
    return b"\0" not in head[:4096] and not any(c < 9 for c in head[:256])


def _proto_nesting(head: bytes, has_length: bool = False) -> int:
    """How many messages are opened, each as field 1 of the one around it, before a plausible module name.

    -1 where there is no such name. With `has_length` the outermost message stands behind its length.
    """
    try:
        at, depth = varint(head)[0] if has_length else 0, 0
        if head[at : at + 1] == _ENTRY_NAME and _is_nameless(head[at:]):
            return 0
        while depth <= max(_NESTING) and head[at : at + 1] == b"\x0a":
            start, length = varint(head, at + 1)
            content = head[start : start + length]
            if len(content) == length and content and _is_name(content):
                return depth
            if content[:1] == _ENTRY_NAME and _is_nameless(content):
                return depth + 1
            at, depth = start, depth + 1
    except ValueError:
        pass
    return -1


#: The tags of a module's second and third field: the name of its entry, and its computations.
_ENTRY_NAME, _COMPUTATION = b"\x12", b"\x1a"


def _is_nameless(content: bytes) -> bool:
    """Whether a module without a name begins like this."""
    start, length = varint(content, 1)
    after = content[start + length : start + length + 1]
    return after == _COMPUTATION and _is_name(content[start : start + length])


def _is_name(content: bytes) -> bool:
    """Whether it is a name and no message: these begin with the tag of a field, a control character."""
    try:
        return content[0] >= 0x20 and len(content) < 4096 and bool(content.decode())
    except UnicodeDecodeError:
        return False


def is_document(source: Source, limits: Limits) -> bool:
    """Whether a file that has no HLO of its own may quote some."""
    head = source.read_head(4096, limits)
    return is_text(head) or is_mended(head) or is_mlir(head)


def broken(path: str, source: Source, is_damaged: bool = False) -> DumpFile | None:
    """A file of a folder whose name promises HLO that was not found: reading it says what is wrong.

    Args:
        path: in the folder.
        source: the file.
        is_damaged: it is not even what its name says.
    """
    if not (promises_hlo(source.name) or is_damaged):
        return None
    name = parse_name(source.name)
    return DumpFile(path, source, replace(name, kind=Kind.PLAIN, module_number=None))


def _is_proto(content: bytes) -> bool:
    """Whether the bytes are fields of a message, whatever it means."""
    try:
        return all(True for _ in fields(content, 0, len(content)))
    except ValueError:
        return False


def files_in(
    path: str, source: Source, name: DumpName, limits: Limits, listing: Listing
) -> Iterator[DumpFile]:
    """What a file holds that may be, or hold, programs."""
    head = source.read_head(HEAD_BYTES, limits)
    if is_profile(head):
        yield from _of_profile(path, source, name, limits)
        return
    kind, form = sniff(head)
    is_several = form is Format.MLIR and is_text(head) and _has_several(source.read_bytes(limits))
    if form in (Format.PROTO, Format.TEXT_PROTO, Format.MLIR) and not is_several:
        found = replace(name, kind=kind, format=form)
        yield DumpFile(path, source, _placed(found, module_name(head), listing.is_single_file))
        return
    if name.kind is Kind.PLAIN and name.format is Format.PROTO:
        yield DumpFile(path, source, name)
        return
    content = source.read_bytes(limits)
    if blocks := split_log(content):
        inside = [(b.name, source.part(b.start, b.end, is_log=True), b.is_complete) for b in blocks]
        yield from _blocks("" if listing.is_single_file else path, source, inside, listing.notes)
        return
    if not is_as_printed(content) and (programs := wrapped_texts(content)):
        yield from _wrapped(path, source, name, content, programs, listing)
        return
    parts = split_modules(content)
    if not parts:
        is_damaged = source.name.endswith(".pb") and not is_text(head) and not _is_proto(content)
        damaged = None if listing.is_single_file else broken(path, source, is_damaged)
        yield damaged or DumpFile(path, source, replace(name, kind=Kind.ARTEFACT, format=Format.OTHER))
    for i, part in enumerate(parts):
        whole = len(parts) == 1
        ends = whole and not content[part.end :].strip()
        part_name = module_name(content[part.start : min(part.end, part.start + HEAD_BYTES)])
        part_source = source if ends else source.part(part.start, part.end)
        plain = replace(name, kind=Kind.PLAIN, format=Format.TEXT)
        plain = _placed(plain, part_name, listing.is_single_file)
        yield DumpFile(path if whole else f"{path}#{i + 1}", part_source, plain)


def _has_several(content: bytes) -> bool:
    """Whether a text of MLIR is more than one program."""
    return len(list(itertools.islice(mlir_programs(mended(content)), 2))) > 1


def _placed(name: DumpName, own_name: str, explicit: bool) -> DumpName:
    """A file of a numbered module with an unknown suffix becomes a named stage of that module.

    Asked for by its name, it is a program for itself: so are the files that `reduce` and `extract` write.
    """
    if explicit and name.kind is Kind.PLAIN:
        name = replace(name, module_number=None)
    if name.kind is not Kind.PLAIN or name.module_number is None:
        return replace(name, module_name=name.module_name or own_name)
    stem = own_name if name.change is None else f"{own_name}.cl_{name.change}"
    label = name.rest.removeprefix(f"{stem}.").rpartition(".")[0]
    return replace(name, kind=Kind.NAMED, module_name=own_name, label=label)


def _of_profile(path: str, source: Source, name: DumpName, limits: Limits) -> Iterator[DumpFile]:
    """The programs of a profile."""
    try:
        spans = programs_in(source.read_bytes(limits))
    except ValueError as error:
        raise DumpError(f"{source}: a damaged profile: {error}") from error
    if not spans:
        yield DumpFile(path, source, replace(name, kind=Kind.ARTEFACT, format=Format.OTHER))
    for i, span in enumerate(spans):
        inside = source.part(*span)
        kind, form = sniff(inside.read_head(HEAD_BYTES, limits))
        if form is Format.PROTO:
            found = replace(name, kind=kind, format=form, module_number=None)
            yield DumpFile(path if len(spans) == 1 else f"{path}#{i + 1}", inside, found)


def _wrapped(
    path: str, source: Source, name: DumpName, content: bytes, programs: Sequence[Wrapped], listing: Listing
) -> Iterator[DumpFile]:
    """The programs that are wrapped in a text, or the files that a log holds below its prefixes."""
    inside = [source.wrapped(number) for number in range(len(programs))]
    if programs[0].name:
        blocks = [(one.name, own, one.is_complete) for one, own in zip(programs, inside, strict=True)]
        yield from _blocks("" if listing.is_single_file else path, source, blocks, listing.notes)
        return
    kinds = pairs_of(content, programs)
    for i, (one, own) in enumerate(zip(programs, inside, strict=True)):
        kind, form = sniff(one.content) if b"\0" in one.content else (Kind.PLAIN, Format.TEXT)
        if form is Format.OTHER:
            continue  # bytes of something else
        form = Format.MLIR if is_mlir(one.content) else form
        shown = path if len(programs) == 1 else f"{path}#{i + 1}"
        own_name = function_name(one.content) if form is Format.MLIR else module_name(one.content)
        number, kind, own_name = kinds.get(i, (None, kind, own_name))
        found = replace(name, kind=kind, format=form, module_name=own_name, module_number=number)
        yield DumpFile(shown, own, found)


def _blocks(
    folder: str, source: Source, blocks: Iterable[tuple[str, Source, bool]], notes: list[str]
) -> Iterator[DumpFile]:
    """The files that a log holds: name, where to read it, whether it is whole.

    A name that comes again belongs to another process or run.
    """
    runs: dict[tuple[int | None, str], list[set[str]]] = {}
    for given, inside, is_complete in blocks:
        if not is_complete:
            notes.append(f"{source}: the log ends within {given}")
        name = parse_name(given)
        seen = runs.setdefault((name.module_number, name.module_name or name.rest), [set()])
        if given in seen[-1]:
            seen.append(set())
        seen[-1].add(given)
        run = f"run {len(seen)}" if len(seen) > 1 else ""
        path = "/".join(filter(None, [folder, run, given]))
        yield DumpFile(path, inside, name)


# HLO in a profile: the programs that an `.xplane.pb` holds beside its events.
#
# The profiler keeps the HloProto of each program that ran as a statistic of an event's description, in the
# plane `/host:metadata`. They are found by the wire format: a profile may be large, and little of it is
# wanted.
#
# XLA: tsl/profiler/protobuf/xplane.proto.

Span = tuple[int, int]

_PLANES, _PLANE_NAME, _EVENT_DESCRIPTIONS, _MAP_VALUE, _STATISTICS, _BYTES = 1, 2, 4, 2, 5, 6
#: An XSpace begins with its first plane, a plane with its number (if not 0) and its name.
_PROFILE = re.compile(
    rb"\x0a[\x00-\xff]{1,5}?(?:\x08[\x00-\xff]{1,10}?)?"
    rb"\x12[\x01-\x40](?:/host:|/device:|Task Environment|#Chip)"
)
_METADATA = b"/host:metadata"


def is_profile(head: bytes) -> bool:
    """Whether a file that begins with `head` is a profile."""
    return _PROFILE.match(head) is not None


def programs_in(content: bytes) -> list[Span]:
    """Where the HloProtos of a profile begin and end, each program once.

    Raises:
        ValueError: it is damaged.
    """
    found: dict[bytes, Span] = {}
    for plane in _inside(content, (0, len(content)), _PLANES):
        if any(content[slice(*name)] == _METADATA for name in _inside(content, plane, _PLANE_NAME)):
            for start, end in _programs(content, plane):
                found.setdefault(content[start:end], (start, end))
    return list(found.values())


def _programs(content: bytes, plane: Span) -> Iterator[Span]:
    for entry in _inside(content, plane, _EVENT_DESCRIPTIONS):
        for event in _inside(content, entry, _MAP_VALUE):
            for statistic in _inside(content, event, _STATISTICS):
                yield from _inside(content, statistic, _BYTES)


def _inside(content: bytes, message: Span, number: int) -> Iterator[Span]:
    """The contents of a field, of a message or text, of a message."""
    return (span for field, span in fields(content, *message) if field == number)
