"""Laws against brute force: what is proved equal of programs on bytes is equal for all pairs of bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.faults.families import family_of
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.equivalence import same_to_the_bit
from hlotool.search.mutation.mutants import KINDS, draw
from hlotool.values.npz import arrays_in

FAMILIES = ("tie", "branch", "sign of remainder", "integers", "arithmetic", "constants", "indexing")
_KINDS = [kind for kind in KINDS if family_of(kind) in FAMILIES]
_STEPS = 9


def program(seed: int, dims: str) -> str:
    """A random program on two arrays of bytes: masks, choices, quotients, remainders, sums that wrap."""
    rng = np.random.default_rng(seed)
    lines = [f"x = s8[{dims}] parameter(0)", f"y = s8[{dims}] parameter(1)"]
    numbers, masks = ["x", "y"], list[str]()

    def constant() -> str:
        name = f"c{len(lines)}"
        lines.append(f"{name}s = s8[] constant({int(rng.choice([-3, -2, -1, 0, 1, 2, 3, 5, 7, 100]))})")
        lines.append(f"{name} = s8[{dims}] broadcast({name}s), dimensions={{}}")
        return name

    def number() -> str:
        return constant() if rng.random() < 0.4 else str(rng.choice(numbers))

    def add(kind: str, text: str) -> str:
        name = f"v{len(lines)}"
        lines.append(f"{name} = {kind}[{dims}] {text}")
        return name

    for _ in range(_STEPS):
        mask = add("pred", f"compare({rng.choice(numbers)}, {number()}), "
                           f"direction={rng.choice(['LT', 'LE', 'GT', 'GE', 'EQ', 'NE'])}")  # fmt: skip
        if masks and rng.random() < 0.6:
            mask = add("pred", f"{rng.choice(['and', 'or', 'xor'])}({mask}, {rng.choice(masks)})")
        masks.append(mask)
        opcode = str(rng.choice(["add", "subtract", "multiply", "remainder", "divide", "negate", "maximum"]))
        operands = str(rng.choice(numbers)) + ("" if opcode == "negate" else f", {number()}")
        numbers.append(add("s8", f"{opcode}({operands})"))
        numbers.append(
            add("s8", f"select({rng.choice(masks)}, {rng.choice(numbers)}, {rng.choice(numbers)})")
        )
    lines.append(f"ROOT r = s8[{dims}] copy({numbers[-1]})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


def result(module: Module, values: tuple[np.ndarray, ...]) -> np.ndarray:
    (found,) = arrays_in(NumpyBackend().compile(module).run(values))
    return found


def proved(seed: int) -> Iterator[tuple[Module, Module]]:
    """Programs and mutants of them that are called equivalent, both for all pairs of bytes."""
    small, large = (parse_module(program(seed, dims)) for dims in ("2", "65536"))
    for mutant in draw(small, 25, seed, _KINDS):
        if same_to_the_bit(mutant):
            yield large, mutant.kind.plant(large, mutant.site, mutant.seed)


@pytest.mark.parametrize("part", range(2))
def test_no_pair_of_bytes_shows_what_is_proved_equivalent(part: int) -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    values = np.repeat(every, 256), np.tile(every, 256)
    count = 0
    for seed in range(5 * part, 5 * part + 5):
        for right, mutant in proved(seed):
            np.testing.assert_array_equal(result(mutant, values), result(right, values))
            count += 1
    assert count > 10
