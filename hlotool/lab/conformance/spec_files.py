"""Reads `spec/*.hlo`: what each opcode must do, as data.

A file holds cases separated by `// -----`. A case is a small module (or, mostly, a single instruction whose
operands are given as shapes and so become parameters) under comment lines:

    // case: a short title
    // input: {1, -0.0, nan}        one line per parameter, HLO literal text of the parameter's shape
    // expect: {1, 0, nan}          one line per array or token of the result, in tuple order
    // expect-error: Unsupported: part of the message
    // source: where the expected value comes from (see SOURCES)
    // tolerance: exact             or bits (NaN payloads count), `2 ulp`, `2 ulp of leaf`; default exact
    // devices: 2 replicas          or partitions; `input[1]` and `expect[1]` are those of device 1
    // xla: cannot run: why XLA's CPU compiler does not execute this
    // xla: differs: id of the rule in departures.toml that says why
    // departs: {1, 0, 0}           what XLA gives then, where the rule has no predicate

`python -m spec.measure` adds the `expect` lines that are missing, from real XLA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.lowering import literal_value
from hlotool.ir.arrays import Array
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, leaves
from hlotool.lab.conformance.agreement import EXACT, Tolerance
from hlotool.parser.reader import parse_literal, parse_module, parse_shape

FOLDER = Path(__file__).with_name("spec")
SEPARATOR = "// -----"
CANNOT_RUN = "cannot run: "
DIFFERS = "differs: "

#: Measured at run time, with the inputs as parameters.
CPU = "measured on XLA CPU (jaxlib 0.10.2)"
#: Measured at compile time, with the inputs as constants.
EVALUATOR = "measured on XLA's evaluator (jaxlib 0.10.2)"
#: Its last release that runs whole programs on the evaluator.
OLD_EVALUATOR = "measured on XLA's evaluator (jaxlib 0.4.13)"
#: What `source` may say (joined by `; `) besides the section of XLA's documentation in the opcode table.
SOURCES = (CPU, EVALUATOR, OLD_EVALUATOR, "IEEE 754")

_KEYS = ("case", "input", "expect", "expect-error", "source", "tolerance", "devices", "xla", "departs")
_LINE = re.compile(rf"// ({'|'.join(_KEYS)})(?:\[(\d+)\])?: (.*)")


@dataclass(frozen=True, slots=True)
class SpecCase:
    """One case of a spec file.

    Attributes:
        opcode: the file's name, which the case is about.
        title: what it shows.
        line: of its title in the file.
        text: the module.
        fields: values of the comment lines by key, `input[1]` and the like included, in order.
    """

    opcode: str
    title: str
    line: int
    text: str
    fields: dict[str, list[str]]

    def __str__(self) -> str:
        return f"{self.opcode}: {self.title}"

    @property
    def module(self) -> Module:
        """The parsed module."""
        return parse_module(self.text, f"{self.opcode}.hlo")

    def one(self, key: str) -> str | None:
        """The value of a key that stands at most once."""
        values = self.fields.get(key, [])
        if len(values) > 1:
            raise ValueError(f"{self}: {len(values)} lines of {key!r}")
        return values[0] if values else None

    @property
    def tolerance(self) -> Tolerance:
        """How far a result may be from what is expected."""
        text = self.one("tolerance")
        return EXACT if text is None else Tolerance.parse(text)

    @property
    def is_from_evaluator(self) -> bool:
        """Whether the expected value is what XLA's evaluator gives."""
        return EVALUATOR in (self.one("source") or "")

    @property
    def error(self) -> tuple[str, str] | None:
        """Name of the error's type, part of its message."""
        text = self.one("expect-error")
        if text is None:
            return None
        name, _, message = text.partition(": ")
        return name, message

    @property
    def grid(self) -> DeviceGrid:
        """The devices that execute it."""
        text = self.one("devices")
        if text is None:
            return DeviceGrid(1, 1)
        count, kind = text.split()
        return DeviceGrid(int(count), 1) if kind.startswith("replica") else DeviceGrid(1, int(count))

    @property
    def cannot_run_on_xla(self) -> str | None:
        """Why XLA's CPU compiler does not execute it."""
        return self._xla(CANNOT_RUN)

    @property
    def rule(self) -> str | None:
        """The rule by which XLA's CPU code gives something else."""
        return self._xla(DIFFERS)

    def _xla(self, prefix: str) -> str | None:
        note = self.one("xla")
        return note.removeprefix(prefix) if note is not None and note.startswith(prefix) else None

    def arguments(self, module: Module, device: int = 0) -> list[Any]:
        """One value per parameter of the entry."""
        texts = self._of_device("input", device)
        parameters = module.entry.parameters
        if len(texts) != len(parameters):
            raise ValueError(f"{self}: {len(texts)} inputs for {len(parameters)} parameters")
        return [value_of(text, p.shape) for text, p in zip(texts, parameters)]

    def expected(self, module: Module, device: int = 0) -> list[Any]:
        """One value per leaf of the result."""
        return self._results("expect", module, device)

    def departing(self, module: Module, device: int = 0) -> list[Any] | None:
        """What XLA's CPU code gives by `rule`, one value per leaf; None where the rule has a predicate."""
        return self._results("departs", module, device) if self._of_device("departs", device) else None

    def _results(self, key: str, module: Module, device: int) -> list[Any]:
        texts = self._of_device(key, device)
        shapes = result_leaves(module)
        if len(texts) != len(shapes):
            raise ValueError(f"{self}: {len(texts)} values of {key} for {len(shapes)} leaves")
        return [value_of(text, shape) for text, shape in zip(texts, shapes)]

    def _of_device(self, key: str, device: int) -> list[str]:
        return self.fields.get(f"{key}[{device}]", self.fields.get(key, []))


def value_of(text: str, shape: Shape) -> Any:
    """The value that HLO literal text stands for; `token` for tokens.

    A value of dynamic size has its actual shape in front of it: `f32[2] {1, 2}`.
    """
    if text == "token":
        return TOKEN
    if isinstance(shape, ArrayShape) and shape.is_dynamic:
        actual, _, text = text.partition(" ")
        shape = parse_shape(actual)
    return literal_value(parse_literal(text, shape))


def result_leaves(module: Module) -> list[Shape]:
    """Shapes of the parts of the result that are no tuples."""
    return [shape for _, shape in leaves(module.entry.root.shape)]


def spec_files() -> list[Path]:
    """All spec files."""
    return sorted(FOLDER.glob("*.hlo"))


def read_spec(path: Path) -> list[SpecCase]:
    """The cases of one file."""
    return [case for block in blocks(path) if (case := read_case(path.stem, *block)) is not None]


def blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines between separators, with the number of the first."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = 0
    for number, line in enumerate([*lines, SEPARATOR]):
        if line == SEPARATOR:
            yield start + 1, lines[start:number]
            start = number + 1


def read_case(opcode: str, first: int, lines: Sequence[str]) -> SpecCase | None:
    """The case in some lines, the first of which has that number; None where there are only comments."""
    fields: dict[str, list[str]] = {}
    line_of_title = first
    for number, line in enumerate(lines):
        if found := _LINE.fullmatch(line):
            key = found[1] if found[2] is None else f"{found[1]}[{found[2]}]"
            fields.setdefault(key, []).append(found[3])
            if key == "case":
                line_of_title = first + number
    text = "\n".join(line for line in lines if not line.startswith("//")).strip()
    if not text:
        return None
    (title,) = fields.get("case") or [f"line {first} has no title"]
    return SpecCase(opcode, title, line_of_title, text + "\n", fields)


def flat_arrays(values: Sequence[Any]) -> list[Array]:
    """The arrays of arguments in tuple order, as XLA takes them."""
    arrays: list[Array] = []
    for value in values:
        if isinstance(value, tuple):
            arrays += flat_arrays(value)
        elif value is not TOKEN:
            arrays.append(value)
    return arrays
