"""Results of XLA for the quick cases, kept in files: they are checked where jaxlib is absent, too.

    PYTHONPATH=tests python -m differential.store

writes `stored/jaxlib-VERSION.npz` for the jaxlib that is installed. Files of older versions stay: what XLA
computed once remains right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from differential.running import DEFAULT, on_xla, result_shapes
from support.differential import Array

from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ArrayShape
from hlotool.lab.conformance.generators.cases import QUICK, Case, case
from hlotool.parser.reader import parse_module

FOLDER = Path(__file__).resolve().parent / "stored"


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A case with what XLA gave for it."""

    case: Case
    results: list[Array]


def write(path: Path, version: str, stored: Sequence[Stored]) -> None:
    """All texts as JSON and all arrays one behind the other, arguments before results."""
    texts = [
        {"number": s.case.number, "opcode": s.case.opcode, "text": s.case.module.to_text()} for s in stored
    ]
    arrays = [array for s in stored for array in (*s.case.arguments, *s.results)]
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    head = json.dumps({"jaxlib": version, "cases": texts}).encode()
    np.savez_compressed(path, head=np.frombuffer(head, np.uint8), data=np.frombuffer(data, np.uint8))


def read(path: Path) -> Iterator[Stored]:
    """The cases of a file; the shapes in their texts say how long each array is."""
    with np.load(path) as file:
        head, data = json.loads(file["head"].tobytes()), file["data"].tobytes()
    position = 0

    def take(shape: ArrayShape) -> Array:
        nonlocal position
        dtype = dtype_of(shape.element_type)
        array = np.frombuffer(data, dtype, shape.size, position) if shape.size else np.empty(0, dtype)
        position += array.nbytes
        return array.reshape(shape.dims)

    for row in head["cases"]:
        module = parse_module(row["text"])
        parameters = [p.shape for p in module.entry.parameters]
        arguments = [take(shape) for shape in parameters if isinstance(shape, ArrayShape)]
        read_case = Case(row["number"], row["opcode"], module, arguments)
        yield Stored(read_case, [take(shape) for shape in result_shapes(read_case)])
    assert position == len(data), f"{len(data) - position} bytes are left in {path.name}"


def files() -> list[Path]:
    """One file per jaxlib version."""
    return sorted(FOLDER.glob("jaxlib-*.npz"))


@cache
def _newest() -> dict[int, Stored]:
    return {stored.case.number: stored for stored in read(files()[-1])}


def stored_answer(case: Case) -> list[Array] | None:
    """What XLA once gave for the same program on the same arguments; None where it was not asked."""
    known = _newest().get(case.number)
    return known.results if known is not None and _content(known.case) == _content(case) else None


def _content(case: Case) -> tuple[str, list[bytes]]:
    return case.module.to_text(), [argument.tobytes() for argument in case.arguments]


def main() -> None:
    """Measure with the jaxlib that is installed, through its default code generators."""
    from importlib.metadata import version

    cases = [case(number) for number in range(QUICK)]
    found = []
    for start in range(0, QUICK, 50):
        for measured, results in on_xla(cases[start : start + 50], DEFAULT):
            if not isinstance(results, list):
                raise SystemExit(f"{measured}\n{results}")
            found.append(Stored(measured, results))
    FOLDER.mkdir(exist_ok=True)
    write(FOLDER / f"jaxlib-{version('jaxlib')}.npz", version("jaxlib"), found)


if __name__ == "__main__":
    main()
