"""Open what a user has: a dump directory, one file of it, an archive of it, a pasted log, a URL."""

from __future__ import annotations

import logging
import os
from collections import Counter
from dataclasses import replace

from hlotool.dump import remote
from hlotool.dump.classify import classify
from hlotool.dump.compression import DEFAULT_LIMITS, Limits
from hlotool.dump.grouping import group
from hlotool.dump.listing import Listing, list_files
from hlotool.dump.names import Kind, parse_name
from hlotool.dump.records import Dump, DumpFile, DumpModule, Stage
from hlotool.dump.source import Source
from hlotool.errors import DumpError

_logger = logging.getLogger(__name__)

_FLAGS = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text"'


def open_dump(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Dump:
    """Find the modules under `path`.

    Args:
        path: a file (HLO text or proto, a snapshot, a log), a folder (searched recursively), a .tar, .tar.gz,
            .tar.bz2, .tar.xz or .zip archive, or a URL that fsspec understands.
        limits: how much may be read.

    Returns:
        the modules; contents are read later, through their sources.

    Raises:
        DumpError: the path does not exist or cannot be read, or nothing under it can be replayed.
    """
    path = os.fspath(path)
    listing = list_files(path, limits)
    files = classify(listing, limits)
    modules, artefacts = group(files, listing.notes)
    _logger.info("%s: %d files, %d modules", path, len(files), len(modules))
    if not modules:
        raise DumpError(_nothing_found(path, listing, files))
    if listing.is_single_file and not remote.is_remote(path):
        modules = [_with_companions(path, module, limits) for module in modules]
    return Dump(path, tuple(modules), tuple(artefacts), tuple(listing.notes))


def _nothing_found(path: str, listing: Listing, files: list[DumpFile]) -> str:
    if listing.is_single_file:
        return f"{path}: not HLO: neither HLO text nor an XLA proto"
    if not files:
        why = f" ({listing.notes[0]})" if listing.notes else ""
        return f"{path}: empty{why}; a dump is written with {_FLAGS}"
    endings = Counter(os.path.splitext(file.name.text)[1] or "without suffix" for file in files)
    found = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(4))
    return f"{path}: no HLO among {len(files)} files ({found}); a usable dump is written with {_FLAGS}"


def _with_companions(path: str, module: DumpModule, limits: Limits) -> DumpModule:
    """A stage that was opened by its file name, with what lies beside it and can fill in its constants."""
    if module.number is None or len(module.stages) != 1:
        return module
    [asked] = module.stages
    neighbours = _neighbours(path, module.number)
    found, _ = group(classify(neighbours, limits), [])
    whole = next((m for m in found if (m.name, m.timestamp) == (module.name, module.timestamp)), module)
    same = [stage for stage in whole.stages if _same_stage(stage, asked)]
    own = same[0] if same and asked.text else asked
    companions = tuple(stage for stage in whole.stages if not _same_stage(stage, asked))
    return replace(module, stages=(own,), companions=companions, stablehlo=whole.stablehlo)


def _same_stage(one: Stage, other: Stage) -> bool:
    return (one.kind, one.sequence, one.label) == (other.kind, other.sequence, other.label)


def _neighbours(path: str, number: int) -> Listing:
    """Files of the same module number in the folder of `path`, and the StableHLO below it."""
    folder = os.path.dirname(path) or "."
    listing = Listing()
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        name = parse_name(entry.name)
        if name.module_number != number:
            continue
        if entry.is_dir(follow_symlinks=False):
            mlir = os.path.join(entry.path, "module.mlir")
            listing.files += [(f"{entry.name}/module.mlir", Source(mlir))] if os.path.isfile(mlir) else []
        elif entry.is_file() and name.kind not in (Kind.ARTEFACT, Kind.UNKNOWN):
            listing.files.append((entry.name, Source(entry.path)))
    return listing
