"""Open what a user has: a dump directory, one file of it, an archive of it, a pasted log, a URL.

Of what is unrecognized (taken for HLO and none) an error says how the HLO of the same program is had. The
arguments that lie beside a program that was asked for by name belong to it.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hlotool.errors import DumpError
from hlotool.sources.archives import is_archive
from hlotool.sources.classify import classify
from hlotool.sources.compilation import with_unfinished
from hlotool.sources.file_names import DumpName, Kind, parse_folder, parse_name
from hlotool.sources.grouping import group
from hlotool.sources.locations import PATH, Listing, Source, list_files
from hlotool.sources.open_files import DEFAULT_LIMITS, Limits
from hlotool.sources.records import Dump, DumpFile, DumpModule, Stage
from hlotool.system.paths import inside, is_file
from hlotool.system.urls import folder_of, is_url, joined, name_of, taken_in

_logger = logging.getLogger(__name__)

_FLAGS = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text"'


def open_dump(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> Dump:
    """Find the modules under `path`.

    Args:
        path: a file (HLO text or proto, a snapshot, a log), a folder (searched recursively), a .tar, .tar.gz,
            .tar.bz2, .tar.xz or .zip archive, a URL that fsspec understands, or `-` for standard input.
        limits: how much may be read.

    Returns:
        the modules; contents are read later, through their sources.

    Raises:
        DumpError: the path does not exist or cannot be read, or nothing under it can be replayed.
    """
    path = taken_in(os.fspath(path))
    listing = list_files(path, limits)
    is_dump = any(parse_name(source.name).module_number is not None for _, source in listing.files)
    listing.takes_stablehlo = not is_dump
    files = classify(listing, limits)
    modules, artefacts = group(files, listing.notes)
    while not modules and listing.take_more():
        files = classify(listing, limits)
        modules, artefacts = group(files, listing.notes)
    if modules and not (is_dump or listing.takes_documents or listing.is_single_file or _is_bundle(listing)):
        from hlotool.sources.documents import quoted

        if more := quoted(listing, files, limits):
            modules, artefacts = group([*files, *more], [])
    _logger.info("%s: %d files, %d modules", path, len(files), len(modules))
    if not modules:
        raise DumpError(_nothing_found(path, listing, files))
    if not listing.is_single_file:
        modules = with_unfinished(modules, artefacts)
    elif path != PATH:
        modules = [_asked_for(path, module, limits) for module in modules]
    return Dump(path, tuple(modules), tuple(artefacts), tuple(listing.notes))


def open_dumps(
    paths: Sequence[str],
    limits: Limits = DEFAULT_LIMITS,
    unusable: Callable[[str, DumpError], None] | None = None,
) -> list[Dump]:
    """Find the modules under several paths.

    Files of one folder that have the names of a dump are one dump, as if nothing else lay in their folder: so
    `DIR/*.txt` means what `DIR` means. Any other path is a dump for itself.

    Args:
        paths: as `open_dump` takes them.
        limits: how much may be read.
        unusable: is told of each path that cannot be used, instead of an error.

    Raises:
        DumpError: as `open_dump` does, for any of them.
    """
    paths = list(_without_companions([*map(taken_in, paths)]))
    together = _files_of_dumps(paths)
    found: dict[str, Dump] = {}
    for path in paths:
        folder = os.path.dirname(path)
        is_part = path in together.get(folder, ())
        key = folder or "." if is_part else path
        try:
            if key not in found:
                found[key] = (
                    _open_files(folder, together[folder], limits) if is_part else open_dump(path, limits)
                )
        except DumpError as error:
            if unusable is None:
                raise
            unusable(path, error)
    return list(found.values())


#: What `hlotool exec --keep` writes beside the dump of a process, under its name.
_COMPANIONS = (".json", ".executions")


def _without_companions(paths: Sequence[str]) -> Iterator[str]:
    """The paths without what a shell's pattern catches besides the dumps of processes."""
    given = set(map(os.path.normpath, paths))
    for path in paths:
        stem, suffix = os.path.splitext(path)
        if not (suffix in _COMPANIONS and os.path.normpath(stem) in given and os.path.isdir(stem)):
            yield path


def open_usable(paths: Sequence[str], unusable: Callable[[str, DumpError], None]) -> list[Dump]:
    """Find the modules under several paths, of which some may hold none.

    Args:
        paths: as `open_dump` takes them.
        unusable: is told of each path that cannot be used.

    Raises:
        DumpError: no path can be used.
    """
    problems: list[DumpError] = []

    def note(path: str, error: DumpError) -> None:
        problems.append(error)
        unusable(path, error)

    found = open_dumps(paths, unusable=note if len(paths) > 1 else None)
    if not found and problems:
        raise problems[0] if len(problems) == 1 else DumpError("; ".join(map(str, problems)))
    return found


def _files_of_dumps(paths: Sequence[str]) -> dict[str, list[str]]:
    """By folder, those of `paths` that are opened together.

    These are stages, captures and artefacts of numbered modules, where there are at least two. What a shell's
    pattern catches besides, in the same folder, is looked at as in a folder.
    """
    local = [p for p in dict.fromkeys(paths) if not (p == PATH or is_archive(p) or is_url(p))]
    names = {path: _name_of(path) for path in local}
    numbered = [p for p, name in names.items() if name.module_number is not None]
    certain = Counter(os.path.dirname(p) for p in numbered if names[p].kind is not Kind.UNKNOWN)
    found: dict[str, list[str]] = {}
    for path, name in names.items():
        folder = os.path.dirname(path)
        if certain[folder] <= 1 or name.kind is Kind.PLAIN:
            continue
        is_folder = name.module_number is None and name.timestamp is None and os.path.isdir(path)
        # A folder is opened by itself anyway: to look into it here would be to open it twice.
        if not is_folder and not (name.kind is Kind.UNKNOWN and _is_program(path)):
            found.setdefault(folder, []).append(path)
    return found


def _name_of(path: str) -> DumpName:
    """The name of a file, or of a folder without a number that a frontend wrote."""
    folder = parse_folder(os.path.basename(path))
    is_timed = folder.module_number is None and folder.timestamp is not None
    return folder if is_timed and os.path.isdir(path) else parse_name(folder.text)


def _is_program(path: str) -> bool:
    """Whether a file whose name does not tell holds HLO."""
    try:
        return bool(open_dump(path).modules)
    except DumpError:
        return False


def _open_files(folder: str, paths: Sequence[str], limits: Limits) -> Dump:
    """Files of one folder, and folders of StableHLO among them, as the dump that they are a part of."""
    listing = Listing()
    for path in paths:
        name, inner = os.path.basename(path), list_files(path, limits)
        prefix = "" if inner.is_single_file else f"{name}/"
        listing.files += [(prefix + inside, source) for inside, source in inner.files]
        listing.notes += inner.notes
    files = classify(listing, limits)
    modules, artefacts = group(files, listing.notes)
    if not modules:
        raise DumpError(_nothing_found(folder or ".", listing, files))
    whole = [_with_companions(folder, module, limits) for module in modules]
    return Dump(folder or ".", tuple(whole), tuple(artefacts), tuple(listing.notes))


def _is_bundle(listing: Listing) -> bool:
    """Whether it is a repro bundle, whose own documents speak of its programs."""
    return any(source.name == "repro.toml" for _, source in listing.files)


def _nothing_found(path: str, listing: Listing, files: list[DumpFile]) -> str:
    if listing.is_single_file:
        [(_, source)] = listing.files
        return f"{path}: not HLO: {what_it_is(source)}"
    if not files:
        why = f" ({listing.notes[0]})" if listing.notes else ""
        return f"{path}: empty{why}; a dump is written with {_FLAGS}"
    endings = Counter(os.path.splitext(file.name.text)[1] or "without suffix" for file in files)
    found = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(4))
    only_arrays = endings.keys() <= {".npz", ".npy"}
    hint = "hlotool diff A B compares arrays" if only_arrays else f"a usable dump is written with {_FLAGS}"
    return f"{path}: no HLO among {len(files)} files ({found}); {hint}"


def _asked_for(path: str, module: DumpModule, limits: Limits) -> DumpModule:
    """A module of a file that was opened by its name: one program, whatever the name, with its arguments."""
    if not module.stages and len(module.others) == 1:
        module = replace(module, stages=module.others, others=())
    module = replace(module, arguments=arguments_beside(path))
    return _with_companions(folder_of(path) if is_url(path) else os.path.dirname(path), module, limits)


def _with_companions(folder: str, module: DumpModule, limits: Limits) -> DumpModule:
    """Stages that were opened by their file names, with what lies beside them and can fill in constants."""
    if module.number is None or not module.stages:
        return module
    found, _ = group(classify(_neighbours(folder or ".", module), limits), [])
    own_files = {stage.source.name for stage in module.stages}
    wholes = (m for m in found if any(s.source.name in own_files for s in (*m.stages, *m.others)))
    [whole] = with_unfinished([next(wholes, module)])
    known = {_slot(stage): stage for stage in (*whole.stages, *whole.others)}
    own = tuple(known.get(_slot(stage), stage) if stage.text else stage for stage in module.stages)
    slots = set(map(_slot, own))
    companions = tuple(stage for stage in whole.stages if _slot(stage) not in slots)
    # Of what is there nothing was left out: it is the history as far as it goes.
    unfinished = "" if companions else whole.unfinished
    return replace(
        module, stages=own, companions=companions, stablehlo=whole.stablehlo, unfinished=unfinished
    )


def _slot(stage: Stage) -> tuple[Kind, int | None, str]:
    """What tells a stage from the others of its module."""
    return stage.kind, stage.sequence, stage.label


def _is_beside(name: str, module: DumpModule) -> bool:
    """Whether a file or folder may belong to `module`, or to one that could claim the same StableHLO."""
    file, folder = parse_name(name), parse_folder(name)
    names = (file.module_name, folder.module_name) if module.name else ()
    return file.module_number == module.number or module.name in names


def _neighbours(folder: str, module: DumpModule) -> Listing:
    """Files in `folder` of modules of that number or name, and the StableHLO below it."""
    if is_url(folder):
        return _remote_neighbours(folder, module)
    listing = Listing()
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not _is_beside(entry.name, module):
            continue
        if entry.is_dir(follow_symlinks=False):
            mlir = os.path.join(entry.path, "module.mlir")
            listing.files += [(f"{entry.name}/module.mlir", Source(mlir))] if os.path.isfile(mlir) else []
        elif entry.is_file() and parse_name(entry.name).kind not in (Kind.ARTEFACT, Kind.UNKNOWN):
            listing.files.append((entry.name, Source(entry.path)))
    return listing


def _remote_neighbours(folder: str, module: DumpModule) -> Listing:
    """The same for an object store."""
    from hlotool.system.store_objects import objects_in

    listing = Listing()
    for one in objects_in(folder, lambda name: _is_beside(name, module)):
        name = parse_name(name_of(one.url))
        if one.is_folder:
            mlir = joined(one.url, "module.mlir")
            listing.files += [(f"{name.text}/module.mlir", Source(mlir))] if is_file(mlir) else []
        elif name.kind not in (Kind.ARTEFACT, Kind.UNKNOWN):
            listing.files.append((name.text, Source(one.url, version=one.version)))
    return listing


# The arguments that lie beside a program that was asked for by name.

#: Of the files of a repro bundle, which has `repro.toml`, by what the name of the program begins with.
_BUNDLED = {"repro": "inputs.npz", "pass": "pass_inputs.npz", "kernel": "kernel_inputs.npz"}


def arguments_beside(path: str) -> str:
    """The .npz that belongs to the program in `path`, empty where there is none.

    It has the program's name (`X.npz` for `X.hlo`, as `reduce` and `extract` write it), or the one that a
    repro bundle gives it.
    """
    folder, name = (folder_of(path), name_of(path)) if is_url(path) else os.path.split(path)
    names = [f"{os.path.splitext(name)[0]}.npz"]
    if is_file(inside(folder, "repro.toml")):
        names.append(_BUNDLED.get(name.partition(".")[0], ""))
    found = (inside(folder, own) for own in names if own)
    return next(filter(is_file, found), "")


# What is taken for HLO and is none: how the HLO of the same program is had.

#: As much of a file as is looked at.
_HEAD_BYTES = 1 << 14
_MADE_FROM = "the HLO that it was made from is dumped with"
_DUMP = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text"'
_UNPACK = "unpack it, and name what is in it"
#: What a binary file begins with.
_MAGIC = (
    (b"\x28\xb5\x2f\xfd", f"compressed by zstd; {_UNPACK}"),
    (b"\x04\x22\x4d\x18", f"compressed by lz4; {_UNPACK}"),
    (b"7z\xbc\xaf\x27\x1c", f"an archive of 7-Zip; {_UNPACK}"),
    (b"Rar!", f"an archive of RAR; {_UNPACK}"),
    (b"\x80\x04", "a pickle, which is not opened; a compiled function gives its HLO as compiled.as_text()"),
    (b"\x80\x05", "a pickle, which is not opened; a compiled function gives its HLO as compiled.as_text()"),
    (b"\x93NUMPY", "an array of NumPy: it can be the --inputs of a program"),
    (b"\x7fELF", f"machine code; its HLO is dumped with {_DUMP}"),
    (b"BC\xc0\xde", f"bitcode of LLVM; its HLO is dumped with {_DUMP}"),
    (b"\x89PNG", "a picture; the text is needed"),
    (b"\xff\xd8\xff", "a picture; the text is needed"),
    (b"%PDF", "a PDF; the text is needed"),
)
_PYTHON = "a Python program; what it compiles is replayed by `hlotool exec -- python FILE`"
_NO_STABLEHLO = f"MLIR, but no StableHLO; the HLO is dumped with {_DUMP}"
#: Texts that quote programs, and are none.
_DOCUMENTS = (".md", ".rst", ".html", ".ipynb")
#: Lines that only a text of that kind has.
_LINES = (
    (r"\{ ?lambda\b", "a jaxpr; its HLO is jax.jit(f).lower(*arguments).as_text('hlo')"),
    (
        r"; ModuleID =|target triple =|define [^\n]*@",
        f"LLVM IR; {_MADE_FROM} {_DUMP}",
    ),
    (r"\.version \d+\.\d+\n", f"PTX; {_MADE_FROM} {_DUMP}"),
    (r"(?:di)?graph [^\n(]*\{", f"a graph for drawing; the text of the HLO is dumped with {_DUMP}"),
    (
        r"IR \{",
        "the graph of a tensor of PyTorch/XLA; its HLO is torch_xla._XLAC._get_xla_tensors_hlo(tensors)",
    ),
    (r"graph\([^\n]*(?:\n[^\n]*){0,40}aten::", f"a graph of TorchScript; its HLO is dumped with {_DUMP}"),
    (
        r"(?:node|graph_def) \{\n",
        "a graph of TensorFlow; its HLO is f.experimental_get_compiler_ir(*arguments)(stage='hlo')",
    ),
    (
        r"(?:import|from) (?:jax|tensorflow|torch|torch_xla|flax|keras)\b",
        _PYTHON,
    ),
    (r"(?:module|func(?:\.func)?)\b(?:[ \t]+\w+)?[ \t]*[@{]", _NO_STABLEHLO),
)
_STRANGERS = [(re.compile(rf"^[ \t]*(?:{line})", re.MULTILINE), what) for line, what in _LINES]


def what_it_is(source: Source) -> str:
    """What a file is that holds no HLO, and how to get at some."""
    try:
        head = source.read_head(_HEAD_BYTES)
    except DumpError as error:
        return str(error)
    if not head:
        return "it is empty"
    from hlotool.sources.sections import mended

    text = mended(head)
    known = [what for magic, what in _MAGIC if head.startswith(magic)]
    known += [what for line, what in _STRANGERS if line.search(text) is not None]
    wrong = {_PYTHON: source.name.endswith(_DOCUMENTS), _NO_STABLEHLO: "stablehlo." in text}
    known = [what for what in known if not wrong.get(what)]
    return (known or ["neither HLO text nor an XLA proto"])[0]
