"""Elementwise instructions evaluated together, block by block: the bits are those of one by one.

A run under the eyes of a probe executes one instruction after the other: that is what runs without a probe
are compared with. Blocks are made tiny, so that small arrays have many of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.blockwise import blocks_in, groups, same_bits
from support.differential import parse

from hlotool.backends.numpy import NumpyBackend, blocks, grouping
from hlotool.backends.numpy.blocks import block_indices
from hlotool.backends.numpy.grouping import MAY_RETURN_OPERAND
from hlotool.backends.numpy.registry import RULES
from hlotool.errors import BackendCrashed, HlotoolError, Unsupported
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.opcodes import OPCODES, Class
from hlotool.lab.conformance.generators.cases import random_array

CORPUS = Path(__file__).resolve().parents[3] / "corpus"


@pytest.fixture(autouse=True)
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "_LARGE", 4)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 28)


def array(kind: str, dims: tuple[int, ...], seed: int) -> Any:
    return random_array(np.random.default_rng(seed), kind, dims)


CHAIN = """HloModule chain
ENTRY e {
  x = f32[6,5] parameter(0)
  y = f32[6,5] parameter(1)
  a = f32[6,5] add(x, y)
  b = f32[6,5] multiply(a, x)
  half = f32[] constant(0.5)
  halves = f32[6,5] broadcast(half), dimensions={}
  c = f32[6,5] maximum(b, halves)
  ROOT r = f32[6,5] exponential(c)
}"""


def test_a_chain_is_one_group() -> None:
    assert groups(CHAIN) == [["add", "multiply", "maximum", "exponential"]]
    same_bits(parse(CHAIN), [array("f32", (6, 5), 0), array("f32", (6, 5), 1)])


def test_values_read_elsewhere_are_results_of_the_group() -> None:
    text = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY e {
  x = f32[6,5] parameter(0)
  square = f32[6,5] multiply(x, x)
  positive = pred[6,5] compare(square, x), direction=GT
  zero = f32[] constant(0)
  total = f32[6] reduce(square, zero), dimensions={1}, to_apply=sum
  totals = f32[6,5] broadcast(total), dimensions={0}
  scaled = f32[6,5] divide(square, totals)
  chosen = f32[6,5] select(positive, scaled, x)
  ROOT r = (f32[6,5], f32[6]) tuple(chosen, total)
}"""
    assert groups(text) == [["multiply", "compare"], ["divide", "select"]]
    same_bits(parse(text), [array("f32", (6, 5), 0)])


def test_groups_of_unlike_dimensions_do_not_mix() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[6,5] parameter(0)
  y = f32[7] parameter(1)
  a = f32[6,5] negate(x)
  b = f32[7] negate(y)
  c = f32[6,5] sine(a)
  d = f32[7] sine(b)
  ROOT r = (f32[6,5], f32[7]) tuple(c, d)
}"""
    assert sorted(groups(text)) == [["negate", "sine"], ["negate", "sine"]]
    same_bits(parse(text), [array("f32", (6, 5), 0), array("f32", (7,), 1)])


def test_what_depends_on_a_group_comes_behind_it() -> None:
    """The transpose reads the group, and the group's dimensions read the transpose."""
    text = """HloModule m
ENTRY e {
  x = f32[5,5] parameter(0)
  a = f32[5,5] negate(x)
  t = f32[5,5] transpose(a), dimensions={1,0}
  b = f32[5,5] add(a, t)
  ROOT r = f32[5,5] subtract(b, t)
}"""
    assert groups(text) == [["negate"], ["add", "subtract"]]
    same_bits(parse(text), [array("f32", (5, 5), 0)])


def test_dead_instructions_are_left_out() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  dead = f32[8] negate(x)
  ROOT r = f32[8] reverse(x), dimensions={0}
}"""
    assert groups(text) == []
    same_bits(parse(text), [array("f32", (8,), 0)])


def test_scalar_operands() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[9] parameter(0)
  p = pred[] parameter(1)
  low = f32[] constant(-0.5)
  high = f32[] constant(0.5)
  c = f32[9] clamp(low, x, high)
  ROOT r = f32[9] select(p, c, x)
}"""
    assert groups(text) == [["clamp", "select"]]
    for predicate in (False, True):
        same_bits(parse(text), [array("f32", (9,), 0), np.bool_(predicate)])


REUSE = """HloModule m
less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}}
ENTRY e {{
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  s = f32[4,4] sort(x), dimensions={{1}}, to_apply=less
  {lines}
}}"""


@pytest.mark.parametrize(
    "lines",
    [
        "a = f32[4,4] add(s, y)\n  ROOT r = f32[4,4] multiply(a, s)",
        "a = f32[4,4] add(s, y)\n  b = f32[4,4] multiply(a, s)\n  ROOT r = (f32[4,4], f32[4,4]) tuple(a, b)",
        # The convert is another name for `s`, which the first result must not overwrite.
        "c = f32[4,4] convert(s)\n  a = f32[4,4] add(s, y)\n  b = f32[4,4] subtract(a, c)\n"
        "  ROOT r = (f32[4,4], f32[4,4]) tuple(a, b)",
        "n = f32[4,4] negate(s)\n  t = f32[4,4] transpose(s), dimensions={1,0}\n"
        "  ROOT r = f32[4,4] add(n, t)",
        "ROOT r = (f32[4,4], f32[4,4]) tuple(s, s)",
        "n = f32[4,4] negate(s)\n  ROOT r = (f32[4,4], f32[4,4]) tuple(s, n)",
    ],
)
def test_results_overwrite_only_what_nobody_reads(lines: str) -> None:
    same_bits(parse(REUSE.format(lines=lines)), [array("f32", (4, 4), 0), array("f32", (4, 4), 1)])


def test_a_dying_operand_becomes_the_result() -> None:
    group = next(blocks_in(parse(REUSE.format(lines="ROOT a = f32[4,4] add(s, y)"))))
    held, dying = np.ones((4, 4), np.float32), np.ones((4, 4), np.float32)
    address = dying.ctypes.data
    values = [dying, held]
    del dying
    assert group(values, None).ctypes.data == address
    assert held.tolist() == np.ones((4, 4)).tolist()


@pytest.mark.parametrize("layout", ["C", "F", "broadcast", "strided"])
@pytest.mark.parametrize("other", ["C", "F"])
def test_memory_orders(layout: str, other: str) -> None:
    def arranged(how: str, seed: int) -> Any:
        plain = array("f32", (6, 5), seed)
        if how == "broadcast":
            return np.broadcast_to(plain[:1], (6, 5))
        if how == "strided":
            return np.repeat(plain, 2, axis=1)[:, ::2]
        return np.array(plain, order=how)  # type: ignore[call-overload]

    same_bits(parse(CHAIN), [arranged(layout, 0), arranged(other, 1)])


def test_a_crash_names_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(values: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setitem(RULES, "exponential", lambda instruction, lowering: broken)
    executable = NumpyBackend().compile(parse(CHAIN))
    with pytest.raises(BackendCrashed, match=r"ValueError at exponential %r .*line 10.*: broken"):
        executable.run([np.ones((6, 5), np.float32)] * 2)


@pytest.mark.parametrize(
    "dims", [(1,), (7,), (1, 1), (3, 100), (100, 3), (2, 3, 4), (1, 50, 1), (4, 4, 4, 4)]
)
@pytest.mark.parametrize("elements", [1, 2, 7, 16, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_blocks_cover_every_element_once(dims: tuple[int, ...], elements: int, reverse: bool) -> None:
    row_major = tuple(range(len(dims)))
    orders = [row_major, row_major[::-1]] if reverse else [row_major]
    count = np.zeros(dims, np.int64)
    for index in block_indices(dims, orders, elements):
        assert count[index].size <= elements
        count[index] += 1
    assert (count == 1).all()


@given(st.data())
def test_random_programs(data: st.DataObject) -> None:
    dims = data.draw(st.sampled_from(["8", "3,4", "2,3,4"]))
    kind = data.draw(st.sampled_from(["f32", "bf16", "s32", "u8", "s4"]))
    lines = [f"  v{i} = {kind}[{dims}] parameter({i})" for i in range(2)]
    for number in range(2, data.draw(st.integers(3, 12))):
        one, two = (f"v{data.draw(st.integers(0, number - 1))}" for _ in range(2))
        form = data.draw(
            st.sampled_from(["add", "multiply", "maximum", "negate", "convert", "reverse", "select"])
        )
        operands = {"negate": one, "convert": one, "reverse": one, "select": f"p{number}, {one}, {two}"}
        if form == "select":
            lines.append(f"  p{number} = pred[{dims}] compare({two}, {one}), direction=LT")
        last = ", dimensions={0}" if form == "reverse" else ""
        lines.append(f"  v{number} = {kind}[{dims}] {form}({operands.get(form, f'{one}, {two}')}){last}")
    count = len([line for line in lines if line.startswith("  v")])
    chosen = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    shapes = ", ".join([f"{kind}[{dims}]"] * len(chosen))
    lines.append(f"  ROOT r = ({shapes}) tuple({', '.join(f'v{i}' for i in chosen)})")
    module = parse("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}")
    sizes = tuple(map(int, dims.split(",")))
    same_bits(module, [array(kind, sizes, seed) for seed in range(2)])


def _operand_types(opcode: str, kind: str, count: int) -> list[str]:
    if opcode == "select":
        return ["pred", kind, kind]
    if opcode == "stochastic-convert":
        return [kind, "u32"]
    return [kind] * count


_RESULTS = {"compare": "pred", "is-finite": "pred", "complex": "c64", "stochastic-convert": "s32"}
_ATTRIBUTES = {
    "compare": ", direction=LT",
    "reduce-precision": ", exponent_bits=5, mantissa_bits=4",
}


def _one(opcode: str, kind: str) -> str:
    """A module of one instruction."""
    row = OPCODES[opcode]
    kinds = _operand_types(opcode, kind, row.min_operands)
    result = "c128" if (opcode, kind) == ("complex", "f64") else _RESULTS.get(opcode, kind)
    if kind == "c64" and opcode in ("abs", "real", "imag"):
        result = "f32"
    parameters = "\n".join(f"  v{n} = {k}[40] parameter({n})" for n, k in enumerate(kinds))
    names = ", ".join(f"v{n}" for n in range(len(kinds)))
    tail = _ATTRIBUTES.get(opcode, "")
    return f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT r = {result}[40] {opcode}({names}){tail}\n}}"


@pytest.mark.parametrize(
    "opcode", [n for n, row in OPCODES.items() if row.opcode_class is Class.ELEMENTWISE and n != "map"]
)
def test_every_elementwise_kernel(opcode: str) -> None:
    """Its bits do not depend on blocks, and its result is a new array unless it is known to be none."""
    tried = 0
    for kind in ("pred", "s32", "u8", "s4", "f32", "f64", "bf16", "f8e5m2", "c64"):
        text = _one(opcode, kind)
        try:
            module = parse(text)
            executable = NumpyBackend().compile(module)
        except Unsupported:
            continue
        tried += 1
        arguments = list(generate_inputs(module, seed=1).values)
        same_bits(module, arguments)
        if opcode not in MAY_RETURN_OPERAND:
            result = executable.run(arguments, probe=lambda instruction, value: None)
            assert not any(np.shares_memory(np.asarray(result), a) for a in arguments)
    assert tried


def corpus_modules() -> list[Path]:
    return sorted(CORPUS.glob("*/*/*.before_optimizations.txt")) + sorted(
        CORPUS.glob("*/*/*after_optimizations.txt")
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", corpus_modules(), ids=lambda p: f"{p.parent.name}-{p.name[:24]}")
def test_corpus(path: Path) -> None:
    try:
        module = parse(path.read_text(encoding="utf-8"))
        arguments = list(generate_inputs(module, seed=0).values)
        same_bits(module, arguments)
    except HlotoolError as error:
        pytest.skip(str(error))
