"""Adds the `expect` and `departs` lines that are missing in spec files, measured on real XLA.

    PYTHONPATH=tests python -m spec.measure [FILE…]

Cases that already have one, that expect an error, or that XLA cannot run are left alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from support.oracle import OracleUnable
from support.xla import XlaError, oracle

from hlotool.errors import HlotoolError
from hlotool.ir.printed_literals import array_text
from hlotool.ir.types import ArrayShape, Shape
from hlotool.lab.conformance.agreement import DEPARTURES
from hlotool.lab.conformance.running import bind
from hlotool.lab.conformance.spec_files import (
    OLD_EVALUATOR,
    SEPARATOR,
    SpecCase,
    blocks,
    flat_arrays,
    read_case,
    result_leaves,
    spec_files,
)


def measured(case: SpecCase, key: str) -> list[str]:
    """The missing lines of `key`: what XLA gives."""
    module, grid = case.module, case.grid
    devices = range(len(grid))
    if case.is_from_evaluator:
        results = [oracle().run(bind(module, case.arguments(module)).to_text(), [])]
    elif len(grid) == 1:
        results = [oracle().run(case.text, flat_arrays(case.arguments(module)))]
    else:
        arguments = [flat_arrays(case.arguments(module, device)) for device in devices]
        results = oracle(8).run_devices(case.text, arguments, grid.replicas, grid.partitions)
    lines = []
    for device, arrays in zip(devices, results):
        where = f"[{device}]" if len(grid) > 1 else ""
        lines += [f"// {key}{where}: {_text(shape, arrays)}" for shape in result_leaves(module)]
    return lines


def _text(shape: Shape, arrays: list[np.ndarray]) -> str:
    """Literal text of the next array; tokens have none."""
    if not isinstance(shape, ArrayShape):
        return "token"
    return array_text(np.asarray(arrays.pop(0)), shape.element_type)


def measurable(case: SpecCase) -> bool:
    """Whether the jaxlib that is installed can give what is expected."""
    if case.is_from_evaluator:
        return True
    return case.cannot_run_on_xla is None and OLD_EVALUATOR not in (case.one("source") or "")


def missing(case: SpecCase) -> str | None:
    """`expect`, or `departs` where nothing else says what XLA gives by a rule; None where all is there."""
    given = {key.partition("[")[0] for key in case.fields}
    if not given & {"expect", "expect-error"}:
        return "expect"
    is_open = case.rule is not None and DEPARTURES[case.rule].predicate is None
    return "departs" if is_open and "departs" not in given else None


def complete(opcode: str, first: int, lines: list[str]) -> list[str]:
    """One block of a file with its `expect` lines."""
    case = read_case(opcode, first, lines)
    key = missing(case) if case is not None else None
    if case is None or key is None or not measurable(case):
        return lines
    try:
        added = measured(case, key)
    except (XlaError, OracleUnable, ValueError, HlotoolError) as error:
        print(f"{case} (line {case.line}): {error}", file=sys.stderr)
        return lines
    if [line.partition(": ")[2] for line in added] == case.fields.get("expect"):
        return lines  # the options of XLA decide whether it departs here
    comments = max(i for i, line in enumerate(lines) if line.startswith(("// input", "// case", "// expect")))
    return [*lines[: comments + 1], *added, *lines[comments + 1 :]]


def main(names: list[str]) -> None:
    """Complete the named files, or all."""
    for path in map(Path, names) if names else spec_files():
        done = [complete(path.stem, first, lines) for first, lines in blocks(path)]
        text = f"\n{SEPARATOR}\n".join("\n".join(lines) for lines in done) + "\n"
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
