"""Laws against brute force: what is proved equal of programs on bytes is equal for all pairs of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import ml_dtypes
import numpy as np
import pytest
from support.byte_programs import float_program, loop_program, low_bits_program

from hlotool.backends.numpy import NumpyBackend
from hlotool.faults import FaultKind
from hlotool.faults.families import family_of
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.equivalence import same_to_the_bit
from hlotool.search.mutation.mutants import KINDS, draw
from hlotool.values.npz import arrays_in

FAMILIES = ("tie", "branch", "sign of remainder", "integers", "arithmetic", "constants", "indexing")
_KINDS = [kind for kind in KINDS if family_of(kind) in FAMILIES]
_LOOPS = [kind for kind in KINDS if family_of(kind) in (*FAMILIES, "loop bound", "loops")]
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


def narrowing_program(seed: int, dims: str) -> str:
    """A random program on two arrays of bytes in words of two, of which the end keeps some bits."""
    rng = np.random.default_rng(seed)
    lines = [f"{n}8 = s8[{dims}] parameter({k}) {n} = s16[{dims}] convert({n}8)" for k, n in enumerate("xy")]
    numbers = ["x", "y"]
    for _ in range(_STEPS):
        at = len(lines)
        lines.append(
            f"c{at}s = s16[] constant({int(rng.choice([-256, -1, 0, 1, 3, 15, 255, 256, 300, 4096]))})"
        )
        lines.append(f"c{at} = s16[{dims}] broadcast(c{at}s), dimensions={{}}")
        other = f"c{at}" if rng.random() < 0.5 else str(rng.choice(numbers))
        opcode = str(
            rng.choice(["add", "subtract", "multiply", "and", "or", "xor", "negate", "not", "maximum"])
        )
        operands = str(rng.choice(numbers)) + ("" if opcode in ("negate", "not") else f", {other}")
        lines.append(f"v{at} = s16[{dims}] {opcode}({operands})")
        lines.append(f"m{at} = pred[{dims}] compare({rng.choice(numbers)}, {other}), direction=LT")
        lines.append(f"w{at} = s16[{dims}] select(m{at}, v{at}, {rng.choice(numbers)})")
        kind = rng.choice(["s8", "u8", "s4", "u16", "s16"])
        lines.append(f"k{at} = {kind}[{dims}] convert(w{at}) z{at} = s16[{dims}] convert(k{at})")
        numbers += [f"v{at}", f"w{at}", f"z{at}"]
    lines.append(f"ROOT r = {rng.choice(['s8', 'u8', 's4', 'u16'])}[{dims}] convert({numbers[-2]})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


def proved(
    seed: int, written: Callable[[int, str], str] = program, kinds: Sequence[FaultKind] = _KINDS
) -> Iterator[tuple[Module, Module]]:
    """Programs and mutants of them that are called equivalent, both for all pairs of bytes."""
    small, large = (parse_module(written(seed, dims)) for dims in ("2", "65536"))
    for mutant in draw(small, 25, seed, kinds):
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


def test_what_a_narrower_type_keeps_is_the_same_for_all_pairs_of_bytes() -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    values = np.repeat(every, 256), np.tile(every, 256)
    count = 0
    for seed in (7016, 7017):
        for right, mutant in proved(seed, narrowing_program):
            np.testing.assert_array_equal(result(mutant, values), result(right, values))
            count += 1
    assert count > 5


def test_remainders_by_powers_of_two_are_the_same_for_all_pairs_of_bytes() -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    values = np.repeat(every, 256), np.tile(every, 256)
    count = 0
    for seed in range(9100, 9102):
        for right, mutant in proved(seed, low_bits_program):
            np.testing.assert_array_equal(result(mutant, values), result(right, values))
            count += 1
    assert count > 5


def test_choices_are_the_same_for_all_pairs_of_floats_of_a_byte() -> None:
    """Up to signs of zeros: NaN where it is NaN."""
    every = np.arange(-128, 128, dtype=np.int8).view(ml_dtypes.float8_e5m2)
    values = np.repeat(every, 256), np.tile(every, 256)
    count = 0
    for seed in range(9100, 9103):
        for right, mutant in proved(seed, float_program):
            one, other = (result(module, values).astype(np.float32) for module in (mutant, right))
            np.testing.assert_array_equal(one, other)
            count += 1
    assert count > 10


def test_what_loops_do_is_the_same_for_all_pairs_of_bytes() -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    values = np.repeat(every, 256), np.tile(every, 256)
    count = 0
    for seed in range(9100, 9103):
        for right, mutant in proved(seed, loop_program, _LOOPS):
            np.testing.assert_array_equal(result(mutant, values), result(right, values))
            count += 1
    assert count > 5
