"""Programs of `hlotool.lab.fuzz.programs`: how many a minute, whether XLA takes them, what they hold.

    python -m benchmarks.fuzz.drawn [--cases N] [--seed S] [--first I] [--devices N] [--origins WORD…]
                                       [--compile N] [--run N] [--minutes M] [--json FILE]

Draws programs `first` to `first + cases`, mutants of programs of corpus/ among them, prints each, parses the
text and prints it again. The first `--compile` of them are put to XLA's verifier and compiler (jaxlib, CPU;
without LLVM's optimisations, which cost most of the time) in a process of its own that may die. Refusals and
deaths are counted by what XLA says; where a pass made what the verifier refuses, it had taken the program
itself. The first `--run` are computed by the reference, on generated inputs, to
see how many results are finite. Times of drawing are processor time of this process; the load stands beside.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.options import XlaOptions
from hlotool.errors import BackendFailed, HloSyntaxError, HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.fuzz.programs import Drawn, Source
from hlotool.lab.fuzz.programs.idioms import IDIOMS
from hlotool.parser.reader import parse_module

#: Seconds for one compilation: what takes longer has run wild.
_TIMEOUT = 120.0

#: What XLA says where its verifier, which looks after every pass, refuses what one has made. "pipeline-start"
#: would stand there for what it was given.
_AFTER_A_PASS = re.compile(r"\[hlo verifier\].*Failed after (?!pipeline-start)")

#: Numbers and names, which differ between programs that XLA refuses for one reason.
_PARTICULAR = re.compile(r"%?[\w.-]*\d[\w.-]*|\"[^\"]*\"")


@dataclass
class Tally:
    """What was counted.

    Attributes:
        drawn: programs.
        seconds: of this process, to draw them.
        instructions: in all of them.
        origins: how many programs are from each.
        words: how many programs hold each word.
        changed: numbers of programs whose text is another one after parsing it.
        compiled: programs that went to XLA.
        refused: numbers of programs by what XLA said against them.
        died: the same of what it died of.
        spoilt: the same of what the verifier says after a pass: it had taken what was drawn.
        results: of floats that the reference computed: all finite, some, none.
        unable: numbers of programs by what the reference said against them.
    """

    drawn: int = 0
    seconds: float = 0.0
    instructions: int = 0
    origins: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    changed: list[int] = field(default_factory=list)
    compiled: int = 0
    refused: dict[str, list[int]] = field(default_factory=dict)
    died: dict[str, list[int]] = field(default_factory=dict)
    spoilt: dict[str, list[int]] = field(default_factory=dict)
    results: Counter[str] = field(default_factory=Counter)
    unable: dict[str, list[int]] = field(default_factory=dict)

    @property
    def verified(self) -> int:
        """Programs that XLA's verifier took, whether or not it came to an end with them."""
        return self.compiled - sum(map(len, (*self.refused.values(), *self.died.values())))

    @property
    def accepted(self) -> int:
        """Programs that XLA compiled."""
        return self.verified - sum(map(len, self.spoilt.values()))


def real_programs() -> list[Module]:
    """The programs of corpus/ as frontends gave them, in a fixed order."""
    folder = ROOT / "corpus"
    paths = [
        *folder.glob("modules/*.hlo"),
        *folder.glob("jax/**/*before*.txt"),
        *folder.glob("tf/**/*before*.txt"),
    ]
    found = []
    for path in sorted(paths):
        try:
            found.append(parse_module(path.read_text(encoding="utf-8")))
        except HloSyntaxError:
            continue
    return found


def measure(source: Source, numbers: range, compiled: int, run: int, minutes: float) -> Tally:
    """Draw the programs of these numbers, and put so many of them to XLA and to the reference.

    An interruption ends it as the end of the time does: what was counted is reported.
    """
    tally = Tally()
    with suppress(KeyboardInterrupt):
        count(tally, source, numbers, compiled, run, time.monotonic() + 60 * minutes)
    return tally


def count(tally: Tally, source: Source, numbers: range, compiled: int, run: int, end: float) -> None:
    """What `measure` does, into a tally, until an instant of `time.monotonic`."""
    flags = (("xla_backend_optimization_level", 0), ("xla_llvm_disable_expensive_passes", True))
    xla = XlaBackend(XlaOptions(flags=flags, timeout=_TIMEOUT))
    for number in numbers:
        if time.monotonic() > end:
            break
        began = time.process_time()
        drawn = source.draw(number)
        tally.seconds += time.process_time() - began
        tally.drawn += 1
        tally.instructions += sum(1 for _ in drawn.module.instructions())
        tally.origins[drawn.origin] += 1
        tally.words.update(drawn.features)
        text = drawn.module.to_text()
        if parse_module(text).to_text() != text:
            tally.changed.append(number)
        if tally.compiled < compiled:
            tally.compiled += 1
            put_to_xla(xla, drawn, tally)
            if tally.compiled % 200 == 0:
                print(f"{tally.compiled} compiled, {tally.accepted} accepted", file=sys.stderr, flush=True)
        if number - numbers.start < run and drawn.module.replica_count == 1:
            put_to_reference(drawn, tally)


def put_to_xla(xla: XlaBackend, drawn: Drawn, tally: Tally) -> None:
    """Compile one program."""
    replicas = drawn.module.replica_count
    try:
        if replicas > 1:
            xla.compile_devices(drawn.module, DeviceGrid(replicas, 1))
        else:
            xla.compile(drawn.module)
    except BackendFailed as error:
        kept = tally.spoilt if _AFTER_A_PASS.search(str(error)) else tally.died
        kept.setdefault(short(error), []).append(drawn.index)
    except HlotoolError as error:
        tally.refused.setdefault(short(error), []).append(drawn.index)


def put_to_reference(drawn: Drawn, tally: Tally) -> None:
    """Compute one program, and see whether its floats are finite."""
    try:
        arguments = list(generate_inputs(drawn.module, drawn.index).values)
        outputs = NumpyBackend().compile(drawn.module).run(arguments)
    except HlotoolError as error:
        tally.unable.setdefault(short(error), []).append(drawn.index)
        return
    for value in leaves_of(outputs):
        if value.dtype.kind not in "biu" and "int" not in value.dtype.name and value.size:
            finite = np.isfinite(value.astype(np.complex128))
            tally.results["all" if finite.all() else "some" if finite.any() else "none"] += 1


def leaves_of(value: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [np.asarray(value)]


def short(error: Exception) -> str:
    """What is said, without what is particular to the program."""
    return " ".join(_PARTICULAR.sub("#", str(error)).split())[:140]


def table(tally: Tally) -> str:
    """Opcodes by element types: in how many programs."""
    kinds = [k for k in ELEMENT_TYPES if any(w.endswith(f":{k}") for w in tally.words)]
    lines = ["| opcode | programs | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 2) + "|"]
    for opcode in OPCODES:
        if count := tally.words[opcode]:
            cells = [str(tally.words[f"{opcode}:{kind}"] or "") for kind in kinds]
            lines.append(f"| {opcode} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(tally: Tally) -> str:
    """For people."""
    minute = 60 * tally.drawn / tally.seconds
    pairs = sum(1 for w in tally.words if w.partition(":")[2] in ELEMENT_TYPES)
    opcodes = sum(1 for o in OPCODES if tally.words[o])
    idioms = [name for name in IDIOMS if tally.words[f"idiom:{name}"]]
    lines = [
        table(tally),
        "",
        f"{tally.drawn} programs of {tally.instructions / tally.drawn:.1f} instructions, "
        f"{dict(tally.origins)}",
        f"{minute:.0f} programs a minute of processor time in one process; load {os.getloadavg()[0]:.1f}",
        f"{opcodes} of {len(OPCODES)} opcodes, {pairs} pairs of opcode and type, {len(idioms)} of "
        f"{len(IDIOMS)} idioms, {len(tally.words)} words",
        f"printed, parsed, printed: {len(tally.changed)} differ {tally.changed[:10]}",
    ]
    if tally.compiled:
        for who, taken in (("verifier", tally.verified), ("compiler", tally.accepted)):
            lines.append(f"XLA's {who} took {taken} of {tally.compiled} ({taken / tally.compiled:.3%})")
    for what in ("refused", "died", "spoilt", "unable"):
        found: dict[str, list[int]] = getattr(tally, what)
        for message, numbers in sorted(found.items(), key=lambda item: -len(item[1])):
            lines.append(f"  {what} {len(numbers)}: {message} (programs {numbers[:5]})")
    if tally.results:
        lines.append(f"results of floats that are finite: {dict(tally.results)}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """See above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, help="programs to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the source")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--devices", type=int, default=1, help="programs for up to so many devices")
    parser.add_argument("--origins", nargs="*", help="draw from these alone")
    parser.add_argument("--compile", type=int, default=0, help="so many go to XLA")
    parser.add_argument("--run", type=int, default=0, help="so many are computed by the reference")
    parser.add_argument("--minutes", type=float, default=600.0, help="no more are drawn after so many")
    parser.add_argument("--json", type=Path, help="a file for what was counted")
    given = parser.parse_args(arguments)
    source = Source(
        given.seed,
        origins=dict.fromkeys(given.origins, 1.0) if given.origins else None,
        devices=given.devices,
        seeds_of_mutation=real_programs(),
    )
    numbers = range(given.first, given.first + given.cases)
    tally = measure(source, numbers, given.compile, given.run, given.minutes)
    print(report(tally))
    if given.json:
        given.json.write_text(json.dumps(vars(tally), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
