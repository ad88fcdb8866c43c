"""Is a missing barrier, wait or fence seen? Each one of many kernels removed in turn.

    python -m benchmarks.gpu_ptx.dumps --python PYTHON --seed 1 --out FOLDER
    python -m benchmarks.gpu_ptx.synchronisation --dumps FOLDER --seed 1 [--kernels 20] [--json FILE]

What is removed and not seen is looked into: from a record of every access of shared memory it is decided
whether, in that execution, two threads touched one byte, one of them to write another value, between two
barriers that are still there. Where they did not, what was removed orders nothing there.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_ptx.truth import input_sets, run, stage
from hlotool.backends.gpu_ptx.races import Races
from hlotool.errors import HlotoolError, KernelFault
from hlotool.parser.reader import parse_module
from hlotool.system.resources import TooSlow, time_limit

#: What orders accesses of memory.
_ORDERS = re.compile(
    r"(?:@!?%\w+\s+)?(?:bar\.sync|barrier\.sync|bar\.warp\.sync|cp\.async\.wait_\w+|wgmma\.wait_group"
    r"|wgmma\.fence|membar|fence|mbarrier\.(?:try_)?wait)\b[^;]*;"
)
_SECONDS = 60.0


@dataclass
class Row:
    """What became of a kernel without one barrier.

    Attributes:
        seen: kind of the fault; empty where there was none.
        conflict: two threads that touch one byte without an order, by the record; empty for none.
    """

    program: str
    kernel: str
    line: int
    removed: str
    seen: str
    conflict: str = ""


def rows(folder: Path, seed: int, work: Path, known: set[str]) -> Iterator[Row]:
    """Of all kernels of a dump that are not `known`."""
    path = stage(folder, "before_optimizations.txt")
    arguments = next(iter(input_sets(parse_module(path.read_text(), str(path)), seed)))
    for ptx in sorted(folder.glob("*.ptx")):
        text = ptx.read_text()
        for found in _ORDERS.finditer(text):
            entry = text.rfind(".entry ", 0, found.start())
            kernel = text[entry + len(".entry ") : text.find("(", entry)].strip()
            if text[entry : text.find("\n}", entry)] in known:
                continue
            target = work / "without"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
            (target / ptx.name).write_text(text[: found.start()] + text[found.end() :])
            line = text.count("\n", 0, found.start()) + 1
            row = Row(folder.name, kernel, line, " ".join(found[0].split()), "")
            try:
                with time_limit(_SECONDS), recorded(kernel) as record:
                    run(target, arguments)
                row.conflict = record.conflict()
            except KernelFault as error:
                row.seen = f"{error.kind}: {error.message}"
            except TooSlow:
                row.seen = "endless"
            yield row
        known |= {text[m.start() : text.find("\n}", m.start())] for m in re.finditer(r"\.entry ", text)}


class _Record:
    """Accesses of shared memory by the blocks of a kernel, between their barriers."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self._found = ""
        #: Of each machine that runs it, which stays alive so that its place is its own.
        self._held: dict[int, tuple[Any, dict[str, list[Any]]]] = {}

    def access(self, races: Any, offsets: Any, width: int, writes: bool, values: Any = None) -> None:
        """The active threads access `width` bytes each; to write what is there already is nothing."""
        machine = races._machine
        if machine.kernel.name != self.kernel:
            return
        threads = machine.active_threads
        offsets = np.broadcast_to(offsets, threads.shape)
        if values is not None:
            words = machine.shared.words[8 * width][offsets >> (width.bit_length() - 1)]
            _, firsts = np.unique(offsets, return_index=True)
            chosen = firsts[(words != values)[firsts]]
            offsets, threads = offsets[chosen], threads[chosen]
        _, held = self._held.setdefault(id(machine), (machine, {"reads": [], "writes": []}))
        for step in range(width):
            held["writes" if writes else "reads"].append(np.stack([offsets + step, threads]))

    def joined(self, races: Any, blocks: Any) -> None:
        """A barrier is complete in these blocks: what they did before is behind them."""
        machine = races._machine
        if id(machine) not in self._held:
            return
        _, held = self._held[id(machine)]
        here = np.zeros(machine.blocks, np.bool_)
        here[blocks] = True
        self._look(machine, held, here)
        for kind, parts in held.items():
            held[kind] = [part[:, ~here[machine.block[part[1]]]] for part in parts]

    def _look(self, machine: Any, held: dict[str, list[Any]], here: Any) -> None:
        """Whether threads of these blocks touch one byte of which another one is the writer."""
        empty = np.zeros((2, 0), np.int64)
        reads, writes = (np.concatenate([empty, *held[kind]], axis=1) for kind in ("reads", "writes"))
        writes = writes[:, here[machine.block[writes[1]]]]
        reads = reads[:, here[machine.block[reads[1]]]]
        size = machine.shared.data.size
        low, high = np.full(size, 1 << 30), np.full(size, -1)
        np.minimum.at(low, writes[0], writes[1])
        np.maximum.at(high, writes[0], writes[1])
        touched = np.concatenate([reads, writes], axis=1)
        others = (high[touched[0]] >= 0) & (
            (low[touched[0]] != touched[1]) | (high[touched[0]] != touched[1])
        )
        if others.any():
            at = touched[:, others][:, 0]
            across = machine.warp[touched[1][others]] != machine.warp[low[touched[0][others]]]
            across |= machine.warp[touched[1][others]] != machine.warp[high[touched[0][others]]]
            where = "of different warps" if across.any() else "of one warp"
            self._found = f"threads {low[at[0]]}, {at[1]} and {high[at[0]]} at byte {at[0]}, {where}"

    def conflict(self) -> str:
        """What was found, the accesses behind the last barrier included."""
        for machine, held in self._held.values():
            self._look(machine, held, np.ones(machine.blocks, np.bool_))
        return self._found


@contextmanager
def recorded(kernel: str) -> Iterator[_Record]:
    """Record what a kernel does with shared memory."""
    record = _Record(kernel)
    reads, writes, joined = Races.reads, Races.writes, Races.joined

    def own_reads(self: Races, offsets: Any, width: int) -> None:
        reads(self, offsets, width)
        record.access(self, offsets, width, False)

    def own_writes(self: Races, offsets: Any, width: int, values: Any = None) -> None:
        writes(self, offsets, width, values)
        record.access(self, offsets, width, True, values)

    def own_joined(self: Races, blocks: Any, number: int | None) -> None:
        record.joined(self, blocks)
        joined(self, blocks, number)

    Races.reads, Races.writes, Races.joined = own_reads, own_writes, own_joined  # type: ignore[method-assign]
    try:
        yield record
    finally:
        Races.reads, Races.writes, Races.joined = reads, writes, joined  # type: ignore[method-assign]


def main() -> int:
    """Remove, execute, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dumps", type=Path, required=True, help="of benchmarks.gpu_ptx.dumps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folders = sorted(path for path in given.dumps.iterdir() if path.is_dir())
    random.Random(given.seed).shuffle(folders)
    found: list[Row] = []
    known: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        for folder in folders:
            if len({(row.program, row.kernel) for row in found}) >= given.kernels:
                break
            try:
                found += rows(folder, given.seed, Path(name), known)
            except (HlotoolError, ValueError) as error:
                print(f"left out: {folder.name}: {str(error)[:160]}", file=sys.stderr)
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in found], indent=1))
    ordering = [row for row in found if row.seen or row.conflict]
    kernels = {(row.program, row.kernel) for row in found}
    print(f"{len(kernels)} kernels of {len({row.program for row in found})} programs: {len(found)} removed,")
    print(f"{len(ordering)} order something, {sum(bool(row.seen) for row in ordering)} of them seen")
    for row in found:
        if not row.seen:
            print(f"not seen: {row.program}: {row.kernel}, line {row.line}: {row.removed}: {row.conflict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
