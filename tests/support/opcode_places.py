"""The places that know an opcode: which of them have to, and which of those do not.

    python -m support.opcode_places OPCODE

names each place that lacks it, one a line, and exits 1 where there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hlotool.ir.opcodes import OPCODES, Class, OpcodeRow, Trait
from hlotool.ir.types import TypeClass


@dataclass(frozen=True)
class Place:
    """Where something has to stand about an opcode.

    Attributes:
        where: the file.
        what: has to stand there.
        asked: of which opcodes, by the facts in the table.
        known: the opcodes that are there, asked when it is needed.
    """

    where: str
    what: str
    asked: Callable[[OpcodeRow], bool]
    known: Callable[[], Any]


def _in(module: str, *names: str) -> Callable[[], set[str]]:
    return lambda: {opcode for name in names for opcode in getattr(import_module(module), name)}


def _registered(loaded: str, module: str, *names: str) -> Callable[[], set[str]]:
    def known() -> set[str]:
        import_module(loaded)
        return _in(module, *names)()

    return known


def _specified() -> set[str]:
    return {path.stem for path in import_module("hlotool.lab.conformance.spec_files").spec_files()}


def _is_elementwise(row: OpcodeRow) -> bool:
    return row.opcode_class is Class.ELEMENTWISE


def _is_function(row: OpcodeRow) -> bool:
    return Trait.TRANSCENDENTAL in row.traits and row.max_operands == 1


def _rounds(row: OpcodeRow) -> bool:
    is_conversion = bool(row.traits & {Trait.CONVERTS, Trait.STATES_SHAPE})
    return (
        _is_elementwise(row) and bool(row.traits & {Trait.TRANSCENDENTAL, Trait.ROUNDS}) and not is_conversion
    )


def _of_floats(row: OpcodeRow) -> bool:
    return TypeClass.FLOATING in row.families and Trait.INTEGER not in row.traits


#: Functions whose results on machine numbers have no known bounds.
_OF_ANY_RANGE = frozenset(
    ["acos", "acosh", "asin", "asinh", "atanh", "cbrt", "cosh", "log-plus-one", "sinh", "tan"]
)

PLACES = (
    Place(
        "hlotool/ir/shapes/",
        "a shape rule; elementwise opcodes of one and two operands have theirs by their class",
        lambda row: True,
        _registered("hlotool.ir.shape_inference", "hlotool.ir.shapes.base", "INFER_RULES", "CHECK_RULES"),
    ),
    Place(
        "backends/numpy/kernels/",
        "a kernel",
        lambda row: row.name not in ("constant", "parameter"),
        _registered("hlotool.backends.numpy", "hlotool.backends.numpy.registry", "RULES"),
    ),
    Place(
        "backends/numpy/executions/rounding_errors.py",
        "a row of ROWS: how far results may be off",
        _rounds,
        _in("hlotool.backends.numpy.executions.rounding_errors", "ROWS"),
    ),
    Place(
        "backends/field/rules/",
        "a meaning; functions without laws have theirs by their trait",
        _of_floats,
        _registered("hlotool.backends.field.executable", "hlotool.backends.field.registry", "MEANINGS"),
    ),
    Place(
        "backends/cuda/codegen/",
        "a line of C++",
        _is_elementwise,
        _in("hlotool.backends.cuda.codegen.rules", "OPCODES"),
    ),
    Place(
        "hlotool/lab/fuzz/programs/",
        "a step, or a reason in `limits.LEFT_OUT`",
        lambda row: True,
        lambda: (
            _registered("hlotool.lab.fuzz.programs.drawn", "hlotool.lab.fuzz.programs.graph", "STEPS")()
            | _in("hlotool.lab.fuzz.programs.limits", "LEFT_OUT")()
        ),
    ),
    Place("hlotool/lab/conformance/spec/", "cases", lambda row: True, _specified),
    Place(
        "hlotool/facts/ranges.py",
        "domain, image, direction and inverse",
        _is_function,
        _in("hlotool.facts.ranges", "FUNCTIONS"),
    ),
    Place(
        "hlotool/facts/machine_rules.py",
        "the range of its results on machine numbers",
        lambda row: _is_function(row) and row.name not in _OF_ANY_RANGE,
        _in("hlotool.facts.machine_rules", "_RULES"),
    ),
)


def missing(opcode: str) -> Iterator[str]:
    """What has to stand somewhere about an opcode, and does not."""
    if opcode not in OPCODES:
        yield f"hlotool/ir/opcode_table.py: {opcode} needs a row"
        return
    for place in PLACES:
        if place.asked(OPCODES[opcode]) and opcode not in place.known():
            yield f"{place.where}: {opcode} needs {place.what}"


def main() -> int:
    """Print what is missing of the opcode that the command line names."""
    found = list(missing(sys.argv[1]))
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
