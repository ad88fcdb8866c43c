"""What the property tests share: strategies for shapes, types and arrays, and a way to run instructions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from support.differential import Array, leaves

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.lab.conformance.generators.cases import ALL, FLOATS, INTEGERS, values

#: The same examples each time; HLOTOOL_PROPERTY_EXAMPLES asks for more of them.
law = settings(
    max_examples=int(os.environ.get("HLOTOOL_PROPERTY_EXAMPLES", "40")), derandomize=True, deadline=None
)

kinds = st.sampled_from(ALL)
integer_kinds = st.sampled_from(INTEGERS)
float_kinds = st.sampled_from(FLOATS)
seeds = st.integers(0, 2**32 - 1)


def dims(min_rank: int = 0, max_rank: int = 4, min_size: int = 0, max_size: int = 5) -> Any:
    """Dimensions, empty ones included."""
    return st.lists(st.integers(min_size, max_size), min_size=min_rank, max_size=max_rank).map(tuple)


def numbers(kind: str, sizes: Sequence[int], seed: int, **choices: float) -> Array:
    """An array of corner values and others; see `differential.operands.values`."""
    return values(np.random.default_rng(seed), kind, tuple(sizes), **choices)


#: Adds instructions on parameters of the given arrays, returns the root.
Build = Callable[..., Instruction]


def module_of(build: Build, arguments: Sequence[tuple[str, Array]]) -> Module:
    """The module that `build(builder, parameters…)` makes, for arguments of (element type, array)."""
    builder = Builder("law")
    parameters = [
        builder.parameter(number, array(kind, *value.shape), f"p{number}")
        for number, (kind, value) in enumerate(arguments)
    ]
    return builder.build_module(build(builder, *parameters))


def results(build: Build, *arguments: tuple[str, Array]) -> list[Array]:
    """Leaves of the result on the numpy backend."""
    return run_module(module_of(build, arguments), [value for _, value in arguments])


def result(build: Build, *arguments: tuple[str, Array]) -> Array:
    """The only leaf."""
    (only,) = results(build, *arguments)
    return only


def run_module(module: Module, arguments: Sequence[Array]) -> list[Array]:
    """Leaves of the result on the numpy backend."""
    return leaves(NumpyBackend().compile(module).run(list(arguments)))


def same_bits(a: Array, b: Array) -> bool:
    """Equal types, dimensions and bits, NaN payloads included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def shape_of(instruction: Instruction) -> ArrayShape:
    """The shape of an array."""
    assert isinstance(instruction.shape, ArrayShape)
    return instruction.shape
