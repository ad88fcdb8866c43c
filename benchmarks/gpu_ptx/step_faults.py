"""Does `run` see what is wrong around the kernels? Faults in a dump's steps, launches and places of values.

    python -m benchmarks.gpu_ptx.dumps --python PYTHON --seed 1 --out FOLDER
    python -m benchmarks.gpu_ptx.step_faults --dumps FOLDER --seed 1 --count 200 [--json FILE]

Two steps change their places, a step is missing, a grid or a block is smaller or larger, a value lies some
bytes further on or where another one lies, a loop's condition has another bound. As with
`benchmarks.gpu_ptx.mutants`, whether that changes a legal result is decided without the judge.
"""

from __future__ import annotations

import random
import re
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.gpu_ptx.mutants import measure
from benchmarks.gpu_ptx.ptx_mutants import KINDS, statements
from benchmarks.gpu_ptx.truth import stage

_STEP = re.compile(r"^( *)(\d+): (k\w+) ", re.MULTILINE)
_DIMENSIONS = re.compile(r"(grid|threads): \[(\d+), (\d+), (\d+)\]")
_PLACE = re.compile(r" value: <(?P<name>.+?)> \(size=(?P<size>\d+),offset=(?P<offset>\d+)\)(?P<shape>.*)")


def _steps(target: Path) -> tuple[Path, list[str]]:
    path = stage(target, "thunk_sequence.txt")
    return path, path.read_text().splitlines()


def _order(target: Path, rng: random.Random) -> str | None:
    """Exchange two neighbours that no other step is nested in."""
    path, lines = _steps(target)
    found = [_STEP.match(line) for line in lines]
    places = [
        n
        for n, (one, other) in enumerate(pairwise(found))
        if one and other and one[1] == other[1] and not {one[3], other[3]} & {"kWhile", "kConditional"}
    ]
    if not places:
        return None
    at = rng.choice(places)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    path.write_text("\n".join(lines))
    return f"{lines[at + 1].strip()[:60]} after {lines[at].strip()[:60]}"


def _omitted(target: Path, rng: random.Random) -> str | None:
    """Leave out a copy, a memset or a kernel."""
    path, lines = _steps(target)
    wanted = rng.choice(["kCopy", "kMemzero", "kMemset", "kCustomKernel", "kKernel"])
    places = [n for n, line in enumerate(lines) if (found := _STEP.match(line)) and found[3] == wanted]
    if not places:
        return None
    gone = lines.pop(rng.choice(places))
    path.write_text("\n".join(lines))
    return gone.strip()[:100]


def _launch(target: Path, rng: random.Random) -> str | None:
    """One dimension of a grid or a block smaller or larger."""
    path, lines = _steps(target)
    text = "\n".join(lines)
    found = list(_DIMENSIONS.finditer(text))
    if not found:
        return None
    at = rng.choice(found)
    sizes = [int(at[n]) for n in (2, 3, 4)]
    axis = rng.choice([n for n in range(3) if sizes[n] > 1] or [0])
    changed = list(sizes)
    changed[axis] = max(1, rng.choice([sizes[axis] // 2, sizes[axis] - 1, sizes[axis] + 1, 2 * sizes[axis]]))
    if changed == sizes:
        return None
    path.write_text(text[: at.start()] + f"{at[1]}: {changed}" + text[at.end() :])
    return f"{at[0]} -> {changed}"


@dataclass
class _Place:
    """A value in the text of a buffer assignment: its line, and that of its allocation."""

    line: int
    allocation: str
    found: re.Match[str]


def _places(target: Path) -> tuple[Path, list[str], list[_Place]]:
    path = stage(target, "buffer-assignment.txt")
    lines, places, allocation = path.read_text().splitlines(), [], ""
    for number, line in enumerate(lines):
        if line.startswith("allocation "):
            allocation = line
        elif (found := _PLACE.match(line)) and allocation and "thread-local" not in allocation:
            places.append(_Place(number, allocation, found))
    return path, lines, places


def _line(name: _Place, offset: int) -> str:
    found = name.found
    return f" value: <{found['name']}> (size={found['size']},offset={offset}){found['shape']}"


def _shifted(target: Path, rng: random.Random) -> str | None:
    """A value some bytes further on, in its allocation."""
    path, lines, places = _places(target)
    step = rng.choice([4, 16])
    room = [p for p in places if _end(p) + step <= int(p.allocation.split("size ")[1].split(",")[0])]
    if not room:
        return None
    at = rng.choice(room)
    lines[at.line] = _line(at, int(at.found["offset"]) + step)
    path.write_text("\n".join(lines))
    return f"{at.found['name']} by {step}"


def _end(place: _Place) -> int:
    return int(place.found["offset"]) + int(place.found["size"])


def _aliased(target: Path, rng: random.Random) -> str | None:
    """Two values of one size change places, or one lies where the other does."""
    path, lines, places = _places(target)
    pairs = [
        (one, other)
        for one in places
        for other in places
        if one.found["size"] == other.found["size"]
        and (one.allocation, one.found["offset"]) != (other.allocation, other.found["offset"])
    ]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    both = rng.random() < 0.5
    lines[other.line] += "\n" + _line(one, int(other.found["offset"]))
    lines[one.line] = ""
    if both:
        lines[other.line] = _line(one, int(other.found["offset"]))
        lines[one.line] = _line(other, int(one.found["offset"]))
    path.write_text("\n".join(lines))
    return f"{one.found['name']} {'exchanged with' if both else 'lies at'} {other.found['name']}"


def _trips(target: Path, rng: random.Random) -> str | None:
    """Another bound in the kernel of a loop's condition."""
    _, lines = _steps(target)
    conditions = [lines[n + 1] for n, line in enumerate(lines[:-1]) if line.strip() == "condition:"]
    names = {name for line in conditions for name in re.findall(r"\] (\w+) grid", line)}
    paths = [
        p for p in sorted(target.glob("*.ptx")) if any(f".entry {name}(" in p.read_text() for name in names)
    ]
    if not paths:
        return None
    path = rng.choice(paths)
    text = path.read_text()
    found = [s for s in statements(text) if s.opcode.startswith("setp")]
    changed = [(s, new) for s in found if (new := KINDS["constant"](s, rng)) is not None]
    if not changed:
        return None
    s, new = rng.choice(changed)
    path.write_text(text[: s.begin] + new + text[s.end :])
    return f"{path.name}: {' '.join(text[s.begin : s.end].split())} -> {new}"


_KINDS = {
    "order": _order,
    "omitted": _omitted,
    "launch": _launch,
    "shifted": _shifted,
    "aliased": _aliased,
    "trips": _trips,
}


def plant(target: Path, rng: random.Random) -> tuple[str, str] | None:
    """A fault of a kind that is drawn."""
    kind = rng.choice(list(_KINDS))
    what = _KINDS[kind](target, rng)
    return None if what is None else (kind, what)


if __name__ == "__main__":
    sys.exit(measure(plant, __doc__, 200))
