"""Modules that get another number in the middle of their compilation.

A TPU's compiler replaces a program that has 64-bit or complex values by one that has none (X64_elimination),
and the new one has a number of its own: `module_0000.jit_f.cl_1` has the program before optimizations and
the first passes, `module_0003.jit_f.cl_1` the other passes, counted from 0 again, and what is compiled. The
gap is 2 (libtpu 0.0.11 to 0.0.32) or 3 (0.0.42); 0.0.52 keeps the number.

Two such halves are joined only if they belong together beyond doubt: by folder, time, name and change list;
the second starts in the pipeline where the first ends, if passes are dumped; their entries have the same
parameters and results; and no other half fits. Halves that several fit are no whole compilation, and say so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import InputError

_SHAPE = re.compile(r"(\w+)\[([^\]]*)\]")
_SEVERAL = re.compile(r"\bnum_partitions=(?!1\b)")
#: Values that X64_elimination removes.
_WIDE = re.compile(r"\b(?:[su]64|f64|c64|c128)\[")
_ENTRY = "entry_computation_layout={"
_START = "pipeline-start"


@dataclass(frozen=True, eq=False)
class _Half:
    """A module that may be a part of a compilation."""

    module: DumpModule

    @cached_property
    def text(self) -> str:
        """Of its first stage; empty if that cannot be read."""
        try:
            return _text(self.module.stages[0])
        except InputError:
            return ""

    @cached_property
    def signature(self) -> list[tuple[str, str]]:
        """Element types and dimensions of parameters and results."""
        return _SHAPE.findall(_entry(self.text))

    @property
    def number(self) -> int:
        return self.module.number or 0


def joined(modules: Sequence[DumpModule], notes: list[str]) -> list[DumpModule]:
    """The modules, those that are one compilation made one, in the place of the first.

    Args:
        modules: in their order.
        notes: are told of halves that cannot be joined.
    """
    families: defaultdict[tuple[object, ...], list[_Half]] = defaultdict(list)
    for module in modules:
        if module.number is not None and module.stages:
            families[module.directory, module.timestamp, module.name, module.change].append(_Half(module))
    found: dict[DumpModule, DumpModule | None] = {}
    for family in families.values():
        found |= _joined_family(family, notes)
    kept = (found.get(module, module) for module in modules) if found else modules
    return [module for module in kept if module is not None]


def _joined_family(family: Sequence[_Half], notes: list[str]) -> dict[DumpModule, DumpModule | None]:
    """By module what becomes of it; None: it is a part of another one."""
    firsts = [half for half in family if half.module.after is None]
    seconds = [half for half in family if half.module.before is None and half.module.after is not None]
    fitting = {second: {first for first in firsts if _continues(first, second)} for second in seconds}
    found: dict[DumpModule, DumpModule | None] = {}
    while certain := [second for second, possible in fitting.items() if len(possible) == 1]:
        [first] = fitting[certain[0]]
        if sum(possible == {first} for possible in fitting.values()) > 1:
            break
        found |= {first.module: _whole(first.module, certain[0].module), certain[0].module: None}
        del fitting[certain[0]]
        for possible in fitting.values():
            possible.discard(first)
    doubtful: set[_Half] = set()
    for second, possible in fitting.items():
        doubtful |= {second, *possible} if possible else set()
    return found | _in_doubt(sorted(doubtful, key=lambda half: half.number), notes)


def _continues(first: _Half, second: _Half) -> bool:
    """Whether a compilation that began as `first` may have gone on as `second`."""
    if second.number < first.number or any(stage.platform for stage in second.module.stages):
        return False
    last, following = first.module.passes[-1:], second.module.passes[:1]
    repeated = {stage.pipeline for stage in first.module.passes} & {s.pipeline for s in second.module.passes}
    if repeated - {stage.pipeline for stage in last}:
        return False
    # A pipeline begins with its start, unless it began in another module.
    goes_on = bool(repeated) and following[0].pipeline in repeated and following[0].after_pass != _START
    if not (goes_on or _WIDE.search(first.text)):
        return False
    one, other = first.signature, second.signature
    if _SEVERAL.search(first.text.partition("\n")[0]):
        # The partitioner may have divided dimensions in between.
        one, other = ([(kind, str(dims.count(","))) for kind, dims in each] for each in (one, other))
    return bool(one) and one == other


def _whole(first: DumpModule, second: DumpModule) -> DumpModule:
    return replace(
        first,
        stages=(*first.stages, *second.stages),
        others=(*first.others, *second.others),
        captures=(*first.captures, *second.captures),
        stablehlo=first.stablehlo or second.stablehlo,
        artefacts=(*first.artefacts, *second.artefacts),
    )


def _in_doubt(halves: Sequence[_Half], notes: list[str]) -> dict[DumpModule, DumpModule | None]:
    """The halves as they are, with the reason why they are not compared."""
    if not halves:
        return {}
    names = ", ".join(replace(half.module, change=None).title for half in halves)
    notes.append(f"{names}: parts of compilations, and which belong together is not certain")
    why = f"a part of a compilation that changed its number; which of {names} belong together is not certain"
    return {half.module: replace(half.module, incomplete=why) for half in halves}


def _text(stage: Stage) -> str:
    if stage.text is not None:
        return stage.text.read_text()
    from hlotool.ir.printer import print_module
    from hlotool.parse.proto.module import parse_module_proto

    return print_module(parse_module_proto(stage.source.read_bytes(), str(stage.source)))


def _entry(text: str) -> str:
    """What the header says of parameters and results."""
    start = text.find(_ENTRY) + len(_ENTRY)
    if start < len(_ENTRY):
        return ""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start : brace.start()]
    return ""
