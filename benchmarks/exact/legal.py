"""Legal pairs for the exact arbiter: a program and what real XLA made of it, at every stage, in every way."""

from __future__ import annotations

import hashlib
import pickle
import re
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.exact.subjects import Subject
from benchmarks.verdicts.programs import NEEDED_PASSES
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ShapeIndex, leaves
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage

#: Passes disabled per program, one at a time.
DISABLED = 4
#: Passes of a compilation after which the program is looked at; of those in dumps all are.
STAGES = 6
#: Optimisation levels of XLA, besides the usual one.
LEVELS = (0, 1)
#: Seconds for one compilation.
_TIMEOUT = 120

#: Ways in which the other program of a pair was made, and what is added for stages on the way.
_EVERY_PASS, _BEFORE_AND_AFTER = "dump: every pass", "dump: before and after"
_DISABLED = "pass disabled"
_PASSES = ": passes"

_COMPARED = PrintOptions(metadata=False, backend_config=True)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two programs that are the same function.

    Attributes:
        way: how the tested one was made.
        detail: of it: the pass.
        reference: as it should be.
        tested: the other one.
        key: the same for pairs that need not be proved twice.
    """

    way: str
    detail: str
    reference: Module
    tested: Module
    key: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A pair that could not be had, with the reason."""

    way: str
    detail: str
    reason: str


class Compilations:
    """What XLA makes of programs, kept on disk.

    Args:
        folder: where.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def stages(self, module: Module, spec: str, passes: str = "") -> list[tuple[str, str]] | str:
        """Label and text of the stages behind the first one; why there are none.

        Args:
            module: the program.
            spec: of the backend.
            passes: regular expression of those after which the program is kept, besides the last stage.
        """
        text = module.to_text()
        path = self._folder / _digest(text) / f"{_digest(f'{spec} {passes}')}.pickle"
        if path.exists():
            known: list[tuple[str, str]] | str = pickle.loads(zlib.decompress(path.read_bytes()))
            return known
        found = self._compiled(module, spec, passes)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(pickle.dumps(found), 1))
        return found

    def _compiled(self, module: Module, spec: str, passes: str) -> list[tuple[str, str]] | str:
        # Older versions of XLA cannot read the tables of source positions.
        plain = replace(module, stack_frames=None)
        with tempfile.TemporaryDirectory() as temporary:
            try:
                backend = get_backend(f"{spec}{',' if ':' in spec else ':'}timeout={_TIMEOUT}")
                backend.dumping(Path(temporary), passes or "^$").compile(plain)  # type: ignore[attr-defined]
                (dumped,) = open_dump(temporary).modules
                return [(_label(s), s.source.read_text()) for s in dumped.stages[1:]]
            except (HlotoolError, ValueError) as error:
                return f"{type(error).__name__}: {error}"[:500]


def legal_pairs(
    subject: Subject, compilations: Compilations, other_python: str, ways: str = ""
) -> Iterator[Pair | Missing]:
    """All pairs of a program; reading the program itself may raise.

    Args:
        subject: the program.
        compilations: of XLA.
        other_python: interpreter with another version of jaxlib; empty for none.
        ways: regular expression; what is made in other ways is left out, and not compiled.
    """
    for pair in _pairs(subject, compilations, other_python, ways):
        if re.search(ways, pair.way):
            yield pair


def _pairs(
    subject: Subject, compilations: Compilations, other_python: str, ways: str
) -> Iterator[Pair | Missing]:
    reference = subject.module
    for stage in [] if subject.dumped is None else subject.dumped.stages[1:]:
        way = _EVERY_PASS if stage.kind is Kind.PASS else _BEFORE_AND_AFTER
        if subject.dumped is not None and re.search(ways, way):
            yield _of_dump(way, subject.dumped, stage, reference)
    for way, spec, passes in _ways(other_python):
        if re.search(ways, way) or re.search(ways, way + _PASSES):
            yield from _compiled(reference, compilations, way, spec, passes)
    for name in _disabled(subject, compilations) if re.search(ways, _DISABLED) else ():
        for found in _compiled(reference, compilations, _DISABLED, f"xla:disable={name}", ""):
            yield replace(found, detail=name)


def _ways(other_python: str) -> Iterator[tuple[str, str, str]]:
    """Way, spec of the backend, passes to keep."""
    yield "XLA, usual level", "xla", ".*"
    for level in LEVELS:
        yield f"XLA, level {level}", f"xla:opt={level}", ""
    if other_python:
        yield "another jaxlib", f"xla:python={other_python}", ".*"


def _compiled(
    reference: Module, compilations: Compilations, way: str, spec: str, passes: str
) -> Iterator[Pair | Missing]:
    found = compilations.stages(reference, spec, passes)
    if isinstance(found, str):
        yield Missing(way, "", found)
        return
    last = found[-1:]
    for label, text in (*_some(found[:-1], reference.name), *last):
        is_last = label == last[0][0]
        try:
            tested = parse_module(text, label)
        except HlotoolError as error:
            yield Missing(way, label, str(error))
            continue
        if signature(tested) != signature(reference):
            yield Missing(way, label, "StableHLO has no such parameters or results: flattened")
            continue
        yield _pair(way if is_last else way + _PASSES, "" if is_last else label, reference, tested)


def signature(module: Module) -> list[list[ShapeIndex]]:
    """The structure of the parameters and of the result."""
    shapes = [*(p.shape for p in module.entry.parameters), module.entry.root.shape]
    return [[index for index, _ in leaves(shape)] for shape in shapes]


def _some(stages: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """A few different ones, others for each program, the same every time."""
    different = list({text: (label, text) for label, text in stages}.values())
    return sorted(different, key=lambda s: _digest(f"{name} {s[0]}"))[:STAGES]


def _of_dump(way: str, dumped: DumpModule, stage: Stage, reference: Module) -> Pair | Missing:
    detail = stage.label if way == _EVERY_PASS else ""
    try:
        return _pair(way, detail, reference, load_stage(dumped, stage))
    except HlotoolError as error:
        return Missing(way, detail, str(error))


def _pair(way: str, detail: str, reference: Module, tested: Module) -> Pair:
    return Pair(way, detail, reference, tested, _digest(print_module(tested, _COMPARED)))


def _disabled(subject: Subject, compilations: Compilations) -> list[str]:
    """Some of the passes that change the program: others for each program, the same every time."""
    found = compilations.stages(subject.module, "xla", ".*")
    if isinstance(found, str):
        return []
    passes = {m[1] for label, _ in found[:-1] if (m := re.search(r"\.after_([^.]+)\.before_", label))}
    names = passes - NEEDED_PASSES - {"pipeline-start"}
    return sorted(names, key=lambda n: _digest(f"{subject.name} {n}"))[:DISABLED]


def _label(stage: Stage) -> str:
    return f"{stage.sequence}:{stage.label}" if stage.kind is Kind.PASS else stage.label


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]
