"""Functions of complex numbers at zeros, infinities, NaN and ordinary values, against the numpy reference."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import leaves
from support.fusion_steps import COMPLEX_ULPS
from support.fusion_text import Value
from support.kernels import emulator, needs_compiler, on_numpy
from support.random_fusions import close

from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.generators.cases import corner_values
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

#: Those that are defined by other functions and arithmetic amplify what these differ by.
_CORNERS = tuple(opcode for opcode in COMPLEX_ULPS if opcode not in ("multiply", "power", "atan2"))


def _text(opcode: str, kind: str, size: int) -> str:
    result = ELEMENT_TYPES[kind].real_part.value if opcode == "abs" else kind
    operands = "a, b" if opcode in ("divide", "multiply", "power", "atan2") else "a"
    return f"{result}[{size}] {opcode}({operands})"


@pytest.mark.parametrize("kind", ["c64", "c128"])
def test_functions(kind: str) -> None:
    corners, rng = corner_values(kind), np.random.default_rng(0)
    scale = np.exp(2 * rng.standard_normal(300))
    ordinary = ((rng.standard_normal(300) + 1j * rng.standard_normal(300)) * scale).astype(
        DTYPES[ELEMENT_TYPES[kind]]
    )
    a = np.concatenate([np.repeat(corners, len(corners)), ordinary])
    b = np.concatenate([np.tile(corners, len(corners)), ordinary[::-1]])
    lines = [f"v{n} = {_text(opcode, kind, len(a))}" for n, opcode in enumerate(_CORNERS)]
    shapes = ", ".join(line.split()[2] for line in lines)
    names = ", ".join(f"v{n}" for n in range(len(lines)))
    parameters = [f"{name} = {kind}[{len(a)}] parameter({n})" for n, name in enumerate("ab")]
    body = "\n".join([*parameters, *lines, f"ROOT r = ({shapes}) tuple({names})"])
    module = parse_module(f"HloModule complex\nENTRY main {{\n{body}\n}}\n")
    executable = emulator().compile(module)
    assert executable.notes == ()
    wrong = {}
    for opcode, ours, theirs in zip(_CORNERS, leaves(executable.run([a, b])), on_numpy(module, [a, b])):
        result = ELEMENT_TYPES[kind].real_part.value if opcode == "abs" else kind
        far = ~close(ours, theirs, Value(opcode, result, ours.shape, COMPLEX_ULPS[opcode]))
        if far.any():
            wrong[opcode] = [(a[i], b[i], ours[i], theirs[i]) for i in np.flatnonzero(far)[:3]]
    assert wrong == {}
