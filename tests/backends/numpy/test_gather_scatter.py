"""gather and scatter: every attribute, bounds, duplicates, types of indices, in-place updates."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.differential import Array, check, parse, run, slow

from hlotool.backends.numpy.executables import check_arguments
from hlotool.backends.numpy.kernels import scatter
from hlotool.lab.conformance.generators.cases import random_array


def braces(values: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def dims(sizes: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, sizes)) + "]"


@dataclass(frozen=True)
class Gather:
    """A gather: sizes of operand and indices, the attributes."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    slices: tuple[int, ...]
    offset: tuple[int, ...]
    collapsed: tuple[int, ...]
    start_map: tuple[int, ...]
    vector_dim: int
    batching: tuple[int, ...] = ()
    indices_batching: tuple[int, ...] = ()

    def result(self) -> tuple[int, ...]:
        batch = iter([n for d, n in enumerate(self.indices) if d != self.vector_dim])
        gone = self.collapsed + self.batching
        window = iter([n for d, n in enumerate(self.slices) if d not in gone])
        rank = len(self.indices) - (self.vector_dim < len(self.indices)) + len(self.offset)
        return tuple(next(window) if d in self.offset else next(batch) for d in range(rank))

    def text(self, kind: str = "s32", index_kind: str = "s32") -> str:
        attributes = [
            f"offset_dims={braces(self.offset)}",
            f"collapsed_slice_dims={braces(self.collapsed)}",
            f"start_index_map={braces(self.start_map)}",
            f"index_vector_dim={self.vector_dim}",
            f"slice_sizes={braces(self.slices)}",
        ]
        if self.batching:
            attributes.append(f"operand_batching_dims={braces(self.batching)}")
            attributes.append(f"start_indices_batching_dims={braces(self.indices_batching)}")
        return f"""HloModule gathering
ENTRY e {{
  x = {kind}{dims(self.operand)} parameter(0)
  i = {index_kind}{dims(self.indices)} parameter(1)
  ROOT g = {kind}{dims(self.result())} gather(x, i), {", ".join(attributes)}
}}"""


GATHERS = {
    "rows": Gather((9, 4), (5,), (1, 4), (1,), (0,), (0,), 1),
    "rows, window first": Gather((9, 4), (5,), (1, 4), (0,), (0,), (0,), 1),
    "columns": Gather((9, 4), (5,), (9, 1), (0,), (1,), (1,), 1),
    "elements": Gather((9, 4), (5, 2), (1, 1), (), (0, 1), (0, 1), 1),
    "elements, map swapped": Gather((9, 4), (5, 2), (1, 1), (), (0, 1), (1, 0), 1),
    "vector first": Gather((9, 4), (2, 5), (1, 1), (), (0, 1), (0, 1), 0),
    "vector in the middle": Gather((9, 4), (3, 2, 5), (1, 1), (), (0, 1), (0, 1), 1),
    "windows": Gather((9, 8), (5, 2), (3, 2), (1, 2), (), (0, 1), 1),
    "windows between batch dimensions": Gather((9, 8), (5, 3, 2), (3, 2), (0, 2), (), (1, 0), 2),
    "partial window from 0": Gather((9, 8), (5,), (1, 3), (1,), (0,), (0,), 1),
    "one start": Gather((9, 8), (2,), (3, 2), (0, 1), (), (0, 1), 0),
    "scalar index": Gather((9, 8), (), (1, 8), (0,), (0,), (0,), 0),
    "kept unit dimension": Gather((9, 8), (5,), (1, 8), (1, 2), (), (0,), 1),
    "batching": Gather((3, 9, 4), (3, 5, 1), (1, 1, 4), (2,), (1,), (1,), 2, (0,), (0,)),
    "batching, other order": Gather((9, 3, 4), (5, 3), (1, 1, 2), (1,), (0,), (0,), 2, (1,), (1,)),
    "two batching": Gather((2, 9, 3), (3, 5, 2, 1), (1, 1, 1), (), (1,), (1,), 3, (0, 2), (2, 0)),
    "no components": Gather((9, 8), (5, 0), (3, 2), (1, 2), (), (), 1),
    "no windows": Gather((9, 4), (0,), (1, 4), (1,), (0,), (0,), 1),
    "rank 3": Gather((5, 6, 7), (4, 2), (2, 6, 1), (1, 2), (2,), (2, 0), 1),
}


def starts(rng: np.random.Generator, shape: tuple[int, ...], kind: str = "s32") -> Array:
    """Starts inside the operands and some outside."""
    values = rng.integers(0 if kind.startswith("u") else -3, 11, shape)
    return values.astype(random_array(rng, kind, ()).dtype)


@pytest.mark.xla
@pytest.mark.parametrize("name", GATHERS)
def test_gather(name: str) -> None:
    case = GATHERS[name]
    rng = np.random.default_rng(1)
    check(case.text(), [random_array(rng, "s32", case.operand), starts(rng, case.indices)])


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["s8", "u32", "u64", *slow("u8", "s16", "u16", "s64")])
def test_gather_with_indices_of_every_type(kind: str) -> None:
    case = GATHERS["windows"]
    rng = np.random.default_rng(2)
    indices = random_array(rng, kind, case.indices)
    indices[:2] = [[1, 2], [6, 6]]
    check(case.text(index_kind=kind), [random_array(rng, "s32", case.operand), indices])


@pytest.mark.parametrize("kind", ["s4", "u4"])
def test_gather_with_sub_byte_indices(kind: str) -> None:
    rng = np.random.default_rng(3)
    x, indices = random_array(rng, "s32", (9, 4)), random_array(rng, kind, (5,))
    (result,) = run(GATHERS["rows"].text(index_kind=kind), [x, indices])
    np.testing.assert_array_equal(result, x[np.clip(indices.astype(int), 0, 8)])


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["pred", "s4", "bf16", "f8e4m3fn", "f64", "c64"])
def test_gather_of_every_kind_of_type(kind: str) -> None:
    case = GATHERS["windows"]
    rng = np.random.default_rng(4)
    check(case.text(kind), [random_array(rng, kind, case.operand), starts(rng, case.indices)])


@pytest.mark.parametrize("name", GATHERS)
def test_gather_in_chunks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = GATHERS[name]
    rng = np.random.default_rng(5)
    arguments = [random_array(rng, "s32", case.operand), starts(rng, case.indices)]
    (whole,) = run(case.text(), arguments)
    monkeypatch.setattr(scatter, "_CHUNK", 2)
    (parts,) = run(case.text(), arguments)
    np.testing.assert_array_equal(whole, parts)


@dataclass(frozen=True)
class Scatter:
    """A scatter: sizes, the attributes."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    updates: tuple[int, ...]
    window: tuple[int, ...]
    inserted: tuple[int, ...]
    start_map: tuple[int, ...]
    vector_dim: int
    batching: tuple[int, ...] = ()
    indices_batching: tuple[int, ...] = ()
    combine: str = field(default="ROOT r = {kind}[] add(b, a)")

    def text(self, kind: str = "s32", index_kind: str = "s32", combine: str = "") -> str:
        attributes = [
            f"update_window_dims={braces(self.window)}",
            f"inserted_window_dims={braces(self.inserted)}",
            f"scatter_dims_to_operand_dims={braces(self.start_map)}",
            f"index_vector_dim={self.vector_dim}",
            "to_apply=combine",
        ]
        if self.batching:
            attributes.append(f"input_batching_dims={braces(self.batching)}")
            attributes.append(f"scatter_indices_batching_dims={braces(self.indices_batching)}")
        return f"""HloModule scattering
combine {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  {(combine or self.combine).format(kind=kind)}
}}
ENTRY e {{
  x = {kind}{dims(self.operand)} parameter(0)
  i = {index_kind}{dims(self.indices)} parameter(1)
  u = {kind}{dims(self.updates)} parameter(2)
  ROOT s = {kind}{dims(self.operand)} scatter(x, i, u), {", ".join(attributes)}
}}"""


SCATTERS = {
    "rows": Scatter((9, 4), (5,), (5, 4), (1,), (0,), (0,), 1),
    "rows, window first": Scatter((9, 4), (5,), (4, 5), (0,), (0,), (0,), 1),
    "columns": Scatter((9, 4), (5,), (9, 5), (0,), (1,), (1,), 1),
    "elements": Scatter((9, 4), (50, 2), (50,), (), (0, 1), (0, 1), 1),
    "elements, map swapped": Scatter((9, 4), (50, 2), (50,), (), (0, 1), (1, 0), 1),
    "vector first": Scatter((9, 4), (2, 50), (50,), (), (0, 1), (0, 1), 0),
    "windows": Scatter((9, 8), (5, 2), (5, 3, 2), (1, 2), (), (0, 1), 1),
    "windows between": Scatter((9, 8), (5, 3, 2), (3, 5, 2, 3), (0, 2), (), (1, 0), 2),
    "one window": Scatter((9, 8), (2,), (3, 2), (0, 1), (), (0, 1), 0),
    "scalar index": Scatter((9, 8), (), (8,), (0,), (0,), (0,), 0),
    "smaller window": Scatter((9, 8), (5,), (5, 3), (1,), (0,), (0,), 1),
    "batching": Scatter((3, 9, 4), (3, 5, 1), (3, 5, 4), (2,), (1,), (1,), 2, (0,), (0,)),
    "two batching": Scatter((2, 9, 3), (3, 5, 2, 1), (3, 5, 2), (), (1,), (1,), 3, (0, 2), (2, 0)),
    "no updates": Scatter((9, 4), (0,), (0, 4), (1,), (0,), (0,), 1),
    "whole array": Scatter((9, 4), (0,), (9, 4), (0, 1), (), (), 0),
}

COMBINERS = {
    "add": "ROOT r = {kind}[] add(b, a)",
    "maximum": "ROOT r = {kind}[] maximum(a, b)",
    "overwrite": "ROOT r = {kind}[] copy(b)",
    "keep": "ROOT r = {kind}[] copy(a)",
    "subtract": "ROOT r = {kind}[] subtract(a, b)",
    "general": "t = {kind}[] add(a, a)\n  ROOT r = {kind}[] add(t, b)",
}


@pytest.mark.xla
@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("combine", ["general", *slow(*COMBINERS)])
def test_scatter(name: str, combine: str) -> None:
    case = SCATTERS[name]
    rng = np.random.default_rng(6)
    arguments = [
        random_array(rng, "s32", case.operand),
        starts(rng, case.indices),
        random_array(rng, "s32", case.updates),
    ]
    check(case.text(combine=COMBINERS[combine]), arguments)


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["s8", "u32", "u64", *slow("u8", "s16", "s64")])
def test_scatter_with_indices_of_every_type(kind: str) -> None:
    case = SCATTERS["windows"]
    rng = np.random.default_rng(7)
    indices = random_array(rng, kind, case.indices)
    indices[:2] = [[1, 2], [6, 6]]
    x, u = (random_array(rng, "s32", shape) for shape in (case.operand, case.updates))
    check(case.text(index_kind=kind), [x, indices, u])


@pytest.mark.xla
@pytest.mark.parametrize("kind", ["pred", "s4", "bf16", "f32", *slow("u8", "f16", "f64")])
@pytest.mark.parametrize("combine", ["add", "maximum", *slow("overwrite", "general")])
def test_scatter_of_every_kind_of_type(kind: str, combine: str) -> None:
    case = SCATTERS["elements"]
    rng = np.random.default_rng(8)
    arguments = [
        random_array(rng, kind, case.operand),
        starts(rng, case.indices),
        random_array(rng, kind, case.updates),
    ]
    # At most ten updates meet in one element; narrow types round differently at each of them.
    check(case.text(kind, combine=COMBINERS[combine]), arguments, steps=10, scale=64)


@pytest.mark.xla
@pytest.mark.parametrize("combine", ["add", "overwrite", "general"])
def test_scatter_of_complex_numbers(combine: str) -> None:
    case = SCATTERS["elements"]
    rng = np.random.default_rng(8)
    x, u = random_array(rng, "c64", case.operand), random_array(rng, "c64", case.updates)
    check(case.text("c64", combine=COMBINERS[combine]), [x, starts(rng, case.indices), u], steps=10, scale=64)


@pytest.mark.xla
def test_zeros_and_nan_under_maximum() -> None:
    x = np.array([0.0, -0.0, -0.0, 1.0, 5.0], np.float32)
    indices = np.array([[0], [1], [2], [3], [0], [4], [4]], np.int32)
    updates = np.array([-0.0, 0.0, -0.0, np.nan, -0.0, 2.0, 7.0], np.float32)
    case = Scatter((5,), (7, 1), (7,), (), (0,), (0,), 1)
    check(case.text("f32", combine=COMBINERS["maximum"]), [x, indices, updates])


@pytest.mark.xla
def test_several_operands() -> None:
    text = """HloModule pairs
combine {
  a = f32[] parameter(0)
  c = s32[] parameter(1)
  b = f32[] parameter(2)
  d = s32[] parameter(3)
  less = pred[] compare(b, a), direction=LT
  v = f32[] select(less, b, a)
  n = s32[] select(less, d, c)
  ROOT t = (f32[], s32[]) tuple(v, n)
}
ENTRY e {
  x = f32[6] parameter(0)
  n = s32[6] parameter(1)
  i = s32[40,1] parameter(2)
  u = f32[40] parameter(3)
  m = s32[40] parameter(4)
  ROOT s = (f32[6], s32[6]) scatter(x, n, i, u, m), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=combine
}"""
    rng = np.random.default_rng(9)
    x, u = (rng.integers(0, 9, n).astype(np.float32) for n in (6, 40))
    check(text, [x, np.zeros(6, np.int32), starts(rng, (40, 1)), u, np.arange(40, dtype=np.int32)])


def test_many_updates_of_one_element_are_applied_in_order() -> None:
    case = Scatter((2,), (300, 1), (300,), (), (0,), (0,), 1)
    updates = np.arange(300, dtype=np.int32)
    (result,) = run(
        case.text(combine=COMBINERS["general"]), [np.ones(2, np.int32), np.zeros((300, 1), np.int32), updates]
    )
    value = np.ones(1, np.int32)
    for update in updates:
        value = value + value + update
    assert result.tolist() == [value[0], 1]


def test_scatter_updates_a_dying_operand_in_place() -> None:
    """A loop that scatters into a large carried buffer must not copy it at each step."""
    from support.differential import parse

    from hlotool.backends.numpy import NumpyBackend

    text = """HloModule in_place
combine {
  a = s32[] parameter(0)
  ROOT b = s32[] parameter(1)
}
ENTRY e {
  i = s32[1,1] parameter(0)
  u = s32[1] parameter(1)
  zero = s32[] constant(0)
  x = s32[1000] broadcast(zero), dimensions={}
  y = s32[1000] add(x, x)
  ROOT s = s32[1000] scatter(y, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=combine
}"""
    buffers: dict[str, int] = {}

    def probe(instruction: object, value: Array) -> None:
        buffers[instruction.name] = value.__array_interface__["data"][0]  # type: ignore[attr-defined]

    executable = NumpyBackend().compile(parse(text))
    result = executable.run([np.array([[3]], np.int32), np.array([7], np.int32)], probe)
    assert result[3] == 7
    assert np.count_nonzero(result) == 1
    assert buffers["y"] == buffers["s"]


def test_scatter_leaves_its_operand_alone_when_it_is_used_again() -> None:
    text = (
        SCATTERS["rows"]
        .text(combine=COMBINERS["overwrite"])
        .replace("ROOT s =", "s =")
        .replace("to_apply=combine", "to_apply=combine\n  ROOT d = s32[9,4] subtract(s, x)")
    )
    x = np.arange(36, dtype=np.int32).reshape(9, 4)
    (result,) = run(text, [x, np.array([2] * 5, np.int32), np.full((5, 4), 100, np.int32)])
    expected = np.zeros_like(x)
    expected[2] = 100 - x[2]
    np.testing.assert_array_equal(result, expected)


def test_gather_of_a_dynamic_dimension_takes_what_there_is() -> None:
    text = """HloModule dynamic
ENTRY e {
  x = s32[4,<=6] parameter(0)
  i = s32[3] parameter(1)
  ROOT g = s32[3,<=6] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,6}
}"""
    x = np.arange(8, dtype=np.int32).reshape(4, 2)
    (result,) = run(text, [x, np.array([3, 0, 9], np.int32)])
    np.testing.assert_array_equal(result, x[[3, 0, 3]])


def test_arguments_have_the_dtype_that_numpy_is_quick_with() -> None:
    module = parse("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }")
    pickled = pickle.loads(pickle.dumps(np.ones(3, np.float32)))
    (argument,) = check_arguments(module, [pickled])
    assert argument.dtype is np.dtype(np.float32)
