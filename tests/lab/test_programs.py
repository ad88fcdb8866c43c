"""What sources draw: valid, small, repeatable programs of all operations, types and patterns.

That they are valid is what hlotool's verifier says here and XLA in `test_programs_on_xla.py`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from math import prod

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType, array_shapes
from hlotool.ir.verifier import verify
from hlotool.lab.fuzz.programs import Drawn, Source
from hlotool.lab.fuzz.programs.draft import Declined, Shared
from hlotool.lab.fuzz.programs.drawn import finished
from hlotool.lab.fuzz.programs.graph import STEPS, Graph
from hlotool.lab.fuzz.programs.idioms import IDIOMS
from hlotool.lab.fuzz.programs.limits import (
    LEFT_OUT,
    MOST_ELEMENTS,
    MOST_OF_LARGE,
    Preferences,
    compiles,
    objection,
    partitions,
)
from hlotool.lab.fuzz.programs.mutation import batches_fit
from hlotool.lab.fuzz.programs.source import FOR_GPUS
from hlotool.parser.reader import parse_module

SEED = 7

#: A program with arrays that are too large to be drawn, a loop, and a computation that is called.
REAL = """HloModule real

less {
  s = (s32[], f32[64,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}

step {
  s = (s32[], f32[64,96]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[64,96] get-tuple-element(s), index=1
  y = f32[64,96] tanh(x)
  ROOT t = (s32[], f32[64,96]) tuple(j, y)
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,96] parameter(0)
  w = f32[96,32] parameter(1)
  half = f32[] constant(0.5)
  h = f32[64,96] broadcast(half), dimensions={}
  m = f32[64,96] multiply(x, h)
  d = f32[64,32] dot(m, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[32,64] transpose(d), dimensions={1,0}
  zero = f32[] constant(0)
  r = f32[32] reduce(t, zero), dimensions={1}, to_apply=add
  start = s32[] constant(0)
  s = (s32[], f32[64,96]) tuple(start, m)
  l = (s32[], f32[64,96]) while(s), condition=less, body=step
  y = f32[64,96] get-tuple-element(l), index=1
  ROOT all = (f32[32], f32[64,96]) tuple(r, y)
}
"""


def draws(count: int, source: Source) -> list[Drawn]:
    return [source.draw(index) for index in range(count)]


@pytest.mark.parametrize("devices", [1, 8])
def test_programs_are_valid_and_small(devices: int) -> None:
    for drawn in draws(150, Source(SEED, devices=devices)):
        module = drawn.module
        assert verify(module) == []
        assert 0 < sum(1 for _ in module.instructions()) <= 40
        for instruction in module.instructions():
            most = MOST_OF_LARGE if drawn.origin == "large" else MOST_ELEMENTS
            assert all(shape.size <= most for shape in array_shapes(instruction.shape))
        text = module.to_text()
        assert parse_module(text).to_text() == text


def test_fewer_instructions_when_asked() -> None:
    for drawn in draws(60, Source(SEED, max_instructions=15)):
        assert sum(1 for _ in drawn.module.instructions()) <= 15


def test_equal_seeds_draw_equal_programs() -> None:
    """Also in another process, whose hashes of words and addresses of objects are others."""
    numbers = range(40, 60)
    script = (
        "from hlotool.lab.fuzz.programs import Source\n"
        f"s = Source({SEED}, devices=4)\n"
        f"print(''.join(s.draw(i).module.to_text() for i in range({numbers.start}, {numbers.stop})))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    there = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    source = Source(SEED, devices=4)
    here = "".join(source.draw(i).module.to_text() for i in reversed(numbers))
    assert sorted(here.split("\n")) == sorted(there.stdout.rstrip("\n").split("\n") + [""] * 2)
    assert here != "".join(Source(SEED + 1, devices=4).draw(i).module.to_text() for i in reversed(numbers))


def test_floats_of_large_programs_are_whole_numbers() -> None:
    """Nobody knows the last digits of sums of thousands of other ones."""
    for drawn in draws(40, Source(SEED, origins={"large": 1.0})):
        for instruction in drawn.module.entry.instructions:
            if instruction.opcode == "parameter":
                assert not instruction.array_shape.element_type.is_inexact


def test_arrays_that_are_not_empty_are_no_larger_than_others() -> None:
    """A dimension that must not be empty is drawn anew: the others may be too large to make it one."""
    rng = random.Random(1)
    for _ in range(3000):
        dims = Preferences().dims(rng, 1, may_be_empty=False)
        assert 0 < prod(dims) <= MOST_ELEMENTS // 4


def test_callees_are_compiled_by_xla_too() -> None:
    """A part of another program is taken with what it calls, or not at all."""
    text = """HloModule m
f {
  x = f32[4] parameter(0)
  ROOT r = f32[4] asinh(x)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT r = f32[4] call(y), to_apply=f
}"""
    assert not compiles("asinh", ElementType.F32)
    source = Source(SEED, origins={"mutation": 1.0}, seeds_of_mutation=[parse_module(text)])
    for drawn in draws(60, source):
        for instruction in drawn.module.instructions():
            if instruction.opcode == "asinh":
                assert instruction.operands[0].array_shape.element_type is ElementType.BF16


def test_large_programs_are_large_and_short() -> None:
    drawn = draws(120, Source(SEED, origins={"large": 1.0}))
    sizes = [max(s.size for i in d.module.instructions() for s in array_shapes(i.shape)) for d in drawn]
    assert sum(size > MOST_ELEMENTS for size in sizes) >= 108
    assert max(sum(1 for _ in d.module.instructions()) for d in drawn) <= 40
    floats = [
        d
        for d in drawn
        if any(i.opcode == "dot" and i.element_type.is_floating for i in d.module.instructions())
    ]
    assert len(floats) >= 6
    # Next to a power of two, and between them.
    assert {size % 64 for size in sizes} >= {0, 1, 63}
    assert len({size % 64 for size in sizes}) > 5


@pytest.mark.parametrize(("sizes", "fit"), [("5,3", False), ("3,5", True)])
def test_shared_dimensions_of_a_scatter_have_one_size(sizes: str, fit: bool) -> None:
    """XLA's verifier lets any sizes pass, and what the program then means nobody knows."""
    module = parse_module(
        f"""HloModule m
add {{
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}}
ENTRY e {{
  x = s32[{sizes}] parameter(0)
  i = s32[3,1] parameter(1)
  u = s32[3] parameter(2)
  ROOT r = s32[{sizes}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{1}},
    scatter_dims_to_operand_dims={{1}}, input_batching_dims={{0}}, scatter_indices_batching_dims={{0}},
    index_vector_dim=1, to_apply=add
}}"""
    )
    assert verify(module) == []
    assert batches_fit(module.entry.root) is fit


def test_origins_are_those_that_were_asked_for() -> None:
    mixed = Counter(drawn.origin for drawn in draws(60, Source(SEED)))
    assert set(mixed) == {"graph", "mutation", "idioms", "large"}
    only = Source(SEED, origins={"idioms": 1.0})
    for drawn in draws(20, only):
        assert drawn.origin == "idioms"
    for drawn in draws(40, Source(SEED, origins=FOR_GPUS)):
        if drawn.origin == "tiles":
            assert "dot" in drawn.features
    with pytest.raises(ValueError, match="there is no origin"):
        Source(SEED, origins={"poems": 1.0})


def test_integers_only() -> None:
    """Whatever the programs hold that are changed."""
    for drawn in draws(80, Source(SEED, integers_only=True, seeds_of_mutation=[parse_module(REAL)])):
        shapes = (shape for i in drawn.module.instructions() for shape in array_shapes(i.shape))
        assert not any(shape.element_type.is_inexact for shape in shapes)


def test_every_opcode_is_drawn_or_has_a_reason() -> None:
    assert set(STEPS) | set(LEFT_OUT) == set(OPCODES)
    assert not set(STEPS) & set(LEFT_OUT)


def test_what_is_drawn_reaches_the_table() -> None:
    """600 programs hold nearly all opcodes and types that there are steps for."""
    features = Counter[str]()
    for drawn in [*draws(440, Source(SEED)), *draws(160, Source(SEED, devices=8))]:
        features.update(drawn.features)
    missing = [opcode for opcode in STEPS if not features[opcode]]
    assert len(missing) <= 6, missing
    kinds = {word.partition(":")[2] for word in features} & set(ELEMENT_TYPES)
    # There are no steps for these: XLA:CPU does not execute f6.
    assert set(ELEMENT_TYPES) - kinds == {"s1", "u1", "f6e2m3fn", "f6e3m2fn"}
    for word in ("pad negative", "slice stride", "parameter sharding", "reduce-window window base dilation"):
        assert features[word], word
    assert sum(1 for name in IDIOMS if features[f"idiom:{name}"]) >= 0.75 * len(IDIOMS)


def test_there_are_enough_idioms() -> None:
    assert len(IDIOMS) >= 60


@pytest.mark.parametrize("name", IDIOMS)
def test_every_idiom_makes_a_valid_program(name: str) -> None:
    idiom = IDIOMS[name]
    for number in range(60):
        rng = random.Random(f"{name} {number}")
        shared = Shared(rng, Preferences(devices=4 if idiom.several else 1, offloads=idiom.offloads), 60)
        graph = Graph("main", shared)
        shape = ArrayShape(
            shared.preferences.kind(rng, idiom.families), shared.preferences.dims(rng, idiom.low_rank)
        )
        if not idiom.fits(shape):
            continue
        x = graph.parameter(shape)
        try:
            idiom.emit(graph, x)
        except Declined:
            continue
        module = finished(graph)
        assert verify(module) == []
        assert any(i.opcode not in ("parameter", "tuple") for i in module.entry.instructions)
        return
    pytest.fail(f"{name} declines whatever it is given")


def test_what_xla_does_not_compile_is_not_drawn() -> None:
    for drawn in draws(200, Source(SEED + 1)):
        for instruction in drawn.module.instructions():
            first = instruction.operands[0].shape if instruction.operands else None
            if isinstance(first, ArrayShape):
                assert compiles(instruction.opcode, first.element_type), instruction


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2}", "StableHLO has no"),
        ("f32[4] dynamic-update-slice(x, y, i)", "StableHLO has no"),
        ("f32[2] dynamic-slice(x, j), dynamic_slice_sizes={2}", ""),
        ("f8e8m0fnu[] imag(s)", "XLA compiles no"),
        ("f8e8m0fnu[] round-nearest-even(s)", "XLA compiles no"),
        ("f8e8m0fnu[] ceil(s)", ""),
        ("f8e8m0fnu[] real(s)", ""),
    ],
)
def test_what_is_said_against_instructions(text: str, said: str) -> None:
    """The older form of slices has one vector of starts; scales have no zero."""
    module = parse_module(f"""ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[2] parameter(1)
  i = s32[1] parameter(2)
  j = s32[] parameter(3)
  s = f8e8m0fnu[] parameter(4)
  ROOT r = {text}
}}""")
    found = objection(module.entry.root, partitioned=False)
    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_what_is_expanded_in_the_entry_alone() -> None:
    text = "ENTRY e {\n  x = bf16[4] parameter(0)\n  ROOT r = bf16[4] acos(x)\n}"
    root = parse_module(text).entry.root
    assert not objection(root, partitioned=False)
    assert "in the body of a loop" in objection(root, partitioned=False, is_called=True)


def test_programs_for_several_devices_are_divided() -> None:
    for drawn in draws(150, Source(SEED + 2, devices=4)):
        if drawn.module.num_partitions > 1:
            assert all(map(partitions, drawn.module.entry.instructions)), drawn.module.to_text()


def test_most_floats_stay_finite() -> None:
    """As the reference computes them on generated inputs."""
    finite = Counter[bool]()
    for drawn in draws(150, Source(SEED)):
        arguments = list(generate_inputs(drawn.module, 0).values)
        try:
            outputs = NumpyBackend().compile(drawn.module).run(arguments)
        except Unsupported:
            continue
        for value in outputs if isinstance(outputs, tuple | list) else [outputs]:
            held = np.asarray(value)
            if held.size and (held.dtype.kind in "fc" or "float" in held.dtype.name):
                finite[bool(np.isfinite(held.astype(np.complex128)).all())] += 1
    assert finite.total() > 60
    assert finite[True] > 0.9 * finite.total()


def test_mutants_of_a_real_program() -> None:
    """Its operations in other forms, its arrays small enough, its loop still one that ends."""
    source = Source(SEED, origins={"mutation": 1.0}, seeds_of_mutation=[parse_module(REAL)])
    features = Counter[str]()
    texts = set()
    for drawn in draws(60, source):
        assert verify(drawn.module) == []
        features.update(drawn.features)
        texts.add(drawn.module.to_text())
    assert features["dot"]
    assert features["while"]
    assert len(texts) > 50


def test_a_loop_of_unknown_length_is_no_mutant() -> None:
    """Its counter would come from a parameter."""
    endless = REAL.replace("start = s32[] constant(0)", "start = s32[] parameter(2)")
    source = Source(SEED, origins={"mutation": 1.0}, seeds_of_mutation=[parse_module(endless)])
    for drawn in draws(30, source):
        if "while" not in drawn.features:
            continue
        loops = [i for i in drawn.module.instructions() if i.opcode == "while"]
        starts = [loop.operands[0].operands[0] for loop in loops if loop.operands[0].operands]
        assert all(start.opcode != "parameter" for start in starts)


def test_weights_are_drawn_by() -> None:
    plain, told = Source(SEED, origins={"graph": 1.0}), Source(SEED, origins={"graph": 1.0})
    told.tell({"sort": 3.0, "reduce": 0.3, "s8": 3.0}, [])
    counts = [Counter(w for d in draws(200, s) for w in d.features) for s in (plain, told)]
    assert counts[1]["sort"] > 1.5 * counts[0]["sort"]
    assert counts[1]["parameter:s8"] > 1.5 * counts[0]["parameter:s8"]


def test_a_pool_is_mutated() -> None:
    """Programs that a source is told of while it draws."""
    source = Source(SEED, origins={"mutation": 1.0})
    source.tell({}, [parse_module(REAL)])
    assert any("tanh" in drawn.features and "while" in drawn.features for drawn in draws(60, source))


def test_seeds_that_nothing_comes_of() -> None:
    """Programs are drawn all the same."""
    nothing = parse_module("HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n")
    source = Source(SEED, origins={"mutation": 1.0}, seeds_of_mutation=[nothing])
    assert all(verify(drawn.module) == [] for drawn in draws(10, source))
