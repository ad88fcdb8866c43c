"""Every reader of hlotool as a function of bytes, with files that it accepts and how to damage them."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from benchmarks.hostile import damage

CORPUS = ROOT / "corpus"

#: Texts that the caller brings, as further seeds of the readers of pages and of StableHLO.
BROUGHT: list[bytes] = []

#: Larger files make the campaign slow, and "a small file takes no time" is a claim about small ones.
_LARGEST = 60_000


@dataclass(frozen=True, slots=True)
class Reader:
    """One way into hlotool.

    Attributes:
        name: as the report calls it.
        read: takes the bytes and a folder for files of its own.
        seeds: files that are read without complaint.
        damage: makes a hostile file of one.
    """

    name: str
    read: Callable[[bytes, Path], object]
    seeds: Callable[[], list[bytes]]
    damage: damage.Damage


def _files(*patterns: str) -> list[bytes]:
    found = itertools.chain.from_iterable(sorted(CORPUS.glob(pattern)) for pattern in patterns)
    contents = [path.read_bytes() for path in found if path.is_file() and path.stat().st_size <= _LARGEST]
    assert contents, patterns
    return contents


@cache
def _texts() -> list[bytes]:
    return _files("modules/**/*.hlo", "jax/*/*.txt", "tf/*/*.txt")[:400]


def _short_texts() -> list[bytes]:
    """For archives, which is what is damaged there; reading long texts would take all the time."""
    return sorted(_texts(), key=len)[:100]


@cache
def _protos() -> list[bytes]:
    from hlotool.errors import HlotoolError
    from hlotool.parser.proto.module import write_module_proto
    from hlotool.parser.reader import parse_module

    made = []
    for text in _texts()[::4]:
        try:
            made.append(write_module_proto(parse_module(text.decode())))
        except HlotoolError:
            continue
    return made


def _npz() -> list[bytes]:
    return _files("*/*/inputs.npz", "*/*/outputs.npz")


def _zips() -> list[bytes]:
    return [_zip(_short_texts()[at : at + 3]) for at in range(0, 60, 3)]


def _zip(texts: list[bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for number, text in enumerate(texts):
            made.writestr(f"module_{number:04}.f.before_optimizations.txt", text)
    return target.getvalue()


def _tars() -> list[bytes]:
    made = []
    for at in range(0, 60, 3):
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w") as tar:
            for number, text in enumerate(_short_texts()[at : at + 3]):
                info = tarfile.TarInfo(f"module_{number:04}.f.before_optimizations.txt")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
        made.append(target.getvalue())
    return made


def _gz() -> list[bytes]:
    return [gzip.compress(text) for text in _texts()[:60]]


def _mlir() -> list[bytes]:
    return _files("*/*/*/module.mlir", "*/*/module.mlir")


def _stablehlo() -> list[bytes]:
    """StableHLO as JAX writes it, alone and amid other lines."""
    from hlotool.sources.mlir import is_mlir

    return _mlir() + _files("found/stablehlo*") + [text for text in BROUGHT if is_mlir(text)]


def _abbreviated() -> list[bytes]:
    """Texts whose header is shortened as people shorten it: an attribute ends in dots, or all of them do."""
    made = []
    for text in _texts()[::5]:
        header, end, body = text.partition(b"\n")
        name, comma, attributes = header.partition(b", ")
        if comma:
            key = attributes.partition(b"=")[0]
            made += [name + rest + end + body for rest in (b", " + key + b"={...}", b", ..., " + attributes)]
    return made


def _snapshots() -> list[bytes]:
    return _files("**/*snapshot*.pb")


def _hlo_snapshots() -> list[bytes]:
    """Programs as HloSnapshot: with an argument and a result each, of the module's own types or not."""
    from hlotool.parser.proto.schema import message_class

    made = []
    for content in _protos()[:40]:
        snapshot = message_class("HloSnapshot")()
        snapshot.hlo.ParseFromString(content)
        for literal in (snapshot.arguments.add(), snapshot.result):
            literal.shape.element_type = 11  # F32
            literal.shape.dimensions.append(2)
            literal.f32s.extend((1.0, 2.0))
        made.append(snapshot.SerializeToString())
    return made


def _bundles() -> list[bytes]:
    facts = """kind = "pass"
title = "a"
[failure]
verdict = "wrong"
signature = "value of output 0"
reason = "r"
evidence = ["one", "two"]
[run]
reference = "numpy"
backend = "numpy"
command = ""
[culprit]
pass = "algsimp"
[versions]
hlotool = "0.1.0"
"""
    return [facts.encode()]


def _journals() -> list[bytes]:
    import tempfile

    from hlotool.system.cache import Journal

    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "a.jsonl")
        for number in range(20):
            journal.add(f"k{number}", {"rows": [number, "text", None, 1.5]})
        journal.close()
        return [journal.path.read_bytes()]


def _found() -> list[bytes]:
    """HLO as people paste and log it: the rest of `corpus/found` has readers of its own here."""
    return [c for c in _files("found/*.*") if b"\0" not in c]


def _pages() -> list[bytes]:
    return _found() + BROUGHT


def bring(folder: Path) -> None:
    """Let the texts below a folder be seeds, too."""
    found = (path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    BROUGHT.extend(
        content for content in found if content and len(content) <= _LARGEST and b"\0" not in content
    )


def _profiles() -> list[bytes]:
    return _files("found/*.xplane.pb")


def _configurations() -> list[bytes]:
    text = """[check]
skip = ["host-callback"]
[[check.ignore]]
rule = "recompilation"
module = "jit_(warmup|init)"
instruction = "a.*"
reason = "two sizes are meant"
"""
    return [text.encode()]


def _arrays() -> list[bytes]:
    made = []
    for array in (np.arange(12.0).reshape(3, 4), np.zeros((0, 3), np.int8), np.float16(1), np.ones(5, "c8")):
        target = io.BytesIO()
        np.save(target, array)
        made.append(target.getvalue())
    return made


def _read_text(content: bytes, folder: Path) -> object:
    from hlotool.ir.printer import print_module
    from hlotool.ir.verifier import verify
    from hlotool.parser.reader import parse_module
    from hlotool.sources.locations import decode

    module = parse_module(decode(content))
    verify(module)
    return print_module(module)


def _check_text(content: bytes, folder: Path) -> object:
    from hlotool.checks.catalogue import all_rules
    from hlotool.checks.programs import findings_of
    from hlotool.parser.reader import parse_module
    from hlotool.sources.locations import decode

    return list(findings_of(parse_module(decode(content)), list(all_rules().values())))


def _read_proto(content: bytes, folder: Path) -> object:
    from hlotool.ir.printer import print_module
    from hlotool.ir.verifier import verify
    from hlotool.parser.proto.module import parse_module_proto

    module = parse_module_proto(content)
    verify(module)
    return print_module(module)


def _read_snapshot(content: bytes, folder: Path) -> object:
    from hlotool.parser.proto.executions import parse_unoptimized_snapshot

    return parse_unoptimized_snapshot(content)


def _read_hlo_snapshot(content: bytes, folder: Path) -> object:
    from hlotool.parser.proto.executions import parse_snapshot

    return parse_snapshot(content)


def _read_stablehlo(content: bytes, folder: Path) -> object:
    """By our own reader alone: XLA's importer is no part of this process."""
    from hlotool.ir.printer import print_module
    from hlotool.ir.verifier import verify
    from hlotool.parser.mlir.reader import parse_mlir
    from hlotool.sources.locations import decode

    module = parse_mlir(decode(content))
    verify(module)
    return print_module(module)


def _read_page(content: bytes, folder: Path) -> object:
    """What is quoted in a page, each program by the reader of its language, and which two are a pair."""
    from hlotool.errors import HloSyntaxError, HlotoolError
    from hlotool.parser.mlir.reader import parse_mlir
    from hlotool.parser.reader import parse_cut, parse_module
    from hlotool.sources.locations import decode
    from hlotool.sources.mlir import is_mlir
    from hlotool.sources.pages import pairs_of
    from hlotool.sources.wrapped import wrapped_texts

    programs = wrapped_texts(content)
    for program in programs:
        text = decode(program.read())
        with contextlib.suppress(HlotoolError):
            try:
                parse_mlir(text) if is_mlir(program.content) else parse_module(text)
            except HloSyntaxError as error:
                parse_cut(text, None, error)
    return pairs_of(content, programs)


def _through_dump(name: str) -> Callable[[bytes, Path], object]:
    """What `run` does before it runs: find out what a path holds, load each stage."""

    def read(content: bytes, folder: Path) -> object:
        from hlotool.sources.directory import open_dump
        from hlotool.sources.loading import load_stage

        path = folder / name
        path.write_bytes(content)
        for module in open_dump(path).modules:
            for stage in module.stages:
                load_stage(module, stage, may_compile=False)
        return None

    return read


def _read_arrays(name: str) -> Callable[[bytes, Path], object]:
    def read(content: bytes, folder: Path) -> object:
        from hlotool.inputs.captured import read_arrays
        from hlotool.parser.reader import parse_module

        path = folder / name
        path.write_bytes(content)
        return read_arrays(path, parse_module("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }"))

    return read


def _read_mlir(content: bytes, folder: Path) -> object:
    from hlotool.parser.mlir_constants import read_mlir_constants
    from hlotool.sources.locations import decode

    program = read_mlir_constants(decode(content))
    return [program.values(constant) for constant in program.constants]


def _read_bundle(content: bytes, folder: Path) -> object:
    from hlotool.blame.repro.bundle import FACTS, PROGRAM, read_bundle

    (folder / PROGRAM).write_bytes(_texts()[0])
    (folder / FACTS).write_bytes(content)
    return read_bundle(folder)


def _read_journal(content: bytes, folder: Path) -> object:
    from hlotool.system.cache import Journal

    (folder / "journal").write_bytes(content)
    return Journal(folder / "journal").read()


def _read_configuration(content: bytes, folder: Path) -> object:
    from hlotool.interface.cli.configuration import find_configuration, values_of
    from hlotool.interface.cli.main import build_parser

    path = folder / "hlotool.toml"
    path.write_bytes(content)
    found = find_configuration(str(path))
    return found and values_of(found, "check", build_parser().commands)


def _read_log(content: bytes, folder: Path) -> object:
    from hlotool.checks.explain.messages import recognize
    from hlotool.sources.locations import decode

    return recognize(decode(content))


READERS = {
    reader.name: reader
    for reader in (
        Reader("text", _read_text, _texts, damage.text),
        Reader("proto", _read_proto, _protos, damage.proto),
        Reader("unoptimized snapshot", _read_snapshot, _snapshots, damage.proto),
        Reader("snapshot", _read_hlo_snapshot, _hlo_snapshots, damage.proto),
        Reader("file of unknown kind", _through_dump("x"), lambda: _texts() + _protos(), damage.bits),
        Reader("found text", _through_dump("x"), _found, damage.text),
        Reader("page", _read_page, _pages, damage.spliced(_pages)),
        Reader("header", _read_text, _abbreviated, damage.first_lines),
        Reader("StableHLO", _read_stablehlo, _stablehlo, damage.spliced(_stablehlo)),
        Reader("profile", _through_dump("x.xplane.pb"), _profiles, damage.proto),
        Reader("rules of check", _check_text, _texts, damage.text),
        Reader("configuration", _read_configuration, _configurations, damage.text),
        Reader("zip", _through_dump("x.zip"), _zips, damage.zipped),
        Reader("tar", _through_dump("x.tar"), _tars, damage.tarred),
        Reader("gzip", _through_dump("x.txt.gz"), _gz, damage.bits),
        Reader("npz", _read_arrays("x.npz"), _npz, damage.zipped),
        Reader("npy", _read_arrays("x.npy"), _arrays, damage.bits),
        Reader("MLIR constants", _read_mlir, _mlir, damage.text),
        Reader("bundle", _read_bundle, _bundles, damage.text),
        Reader("journal", _read_journal, _journals, damage.bits),
        Reader("log", _read_log, lambda: _files("../tests/checks/logs/*"), damage.text),
    )
}
