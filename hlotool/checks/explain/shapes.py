"""In what two shapes that a message names differ."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPE = r"(?P<type>pred|[su]\d{1,2}|bf16|f\d\w*|c64|c128|bool|u?int\d+|b?float\d+\w*|complex\d+)"
#: HLO and JAX (`f32[2,3]{1,0}`, `float32[2,3]`), MLIR, NumPy's tuples and the lists of TensorFlow.
_FORMS = (
    re.compile(rf"\b{_TYPE}\[(?P<dims>[\d,<= ?]*)\](?P<layout>\{{\d[^}}]*\}})?"),
    re.compile(r"\b(?:tensor|vector|memref)<(?P<dims>(?:(?:\d+|\?)x)*)(?P<type>[a-z]\w*)(?P<layout>)"),
    re.compile(r"(?<![\w.])\((?P<dims>\d+(?:, ?\d+)*),?\)(?P<type>)(?P<layout>)"),
    re.compile(r"(?<![\w.])\[(?P<dims>\d+(?:,? ?\d+)+)\](?P<type>)(?P<layout>)"),
)


#: Of HLO or MLIR; tensors of PyTorch's tracer, which differ in their devices, too.
_INSTRUCTION = re.compile(r"FakeTensor\(|%?[\w.\-]+ = (?:\(?[a-z]\w*\[|\"?\w+\.\w+)|\) -> ")


@dataclass(frozen=True, slots=True)
class _Shape:
    type: str
    dimensions: tuple[str, ...]
    layout: str


def difference(message: str) -> str:
    """The one thing in which the two shapes of `message` differ; empty where there is none such."""
    if _INSTRUCTION.search(message):
        return ""  # the shapes of one operation and of what it reads
    for form in _FORMS:
        found = [_Shape(m["type"], _dimensions(m["dims"]), m["layout"] or "") for m in form.finditer(message)]
        if len(found) == 2 and found[0] != found[1]:
            return _difference(*found)
    return ""


def _dimensions(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in re.split("[,x]|(?<=[0-9]) (?=[0-9])", text) if part.strip())


def _difference(a: _Shape, b: _Shape) -> str:
    if a.dimensions == b.dimensions:
        if a.type != b.type:
            return f"the element types are {a.type} and {b.type}, the dimensions are the same"
        return f"only the layouts differ: {a.layout} and {b.layout}" if a.layout and b.layout else ""
    if a.type != b.type:
        return ""
    if len(a.dimensions) != len(b.dimensions):
        return f"the numbers of dimensions are {len(a.dimensions)} and {len(b.dimensions)}"
    sizes = zip(a.dimensions, b.dimensions, strict=True)
    differing = [n for n, (one, other) in enumerate(sizes) if one != other]
    if len(differing) > 1:
        return ""
    [n] = differing
    return f"dimension {n} is {a.dimensions[n]} and {b.dimensions[n]}, all else is the same"
