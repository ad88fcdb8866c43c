"""`hlotool.tf.check` on a stand-in for TensorFlow: what it asks of the real one, and what it refuses.

The stand-in answers as TensorFlow 2.21 does, with which the same calls were tried by hand.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hlotool
from hlotool.errors import Unsupported
from hlotool.parser.proto.module import write_module_proto
from hlotool.parser.reader import parse_module

LOWERED = "HloModule f\nENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }"
COMPILED = "HloModule f, is_scheduled=true\nENTRY e {{ x = f32[2] parameter(0) ROOT y = f32[2] {}(x, x) }}"


class Function:
    """A `tf.function`: jitted it returns what `device` says, eagerly the double."""

    def __init__(self, tf: Any, device: float, opcode: str = "add") -> None:
        self._tf, self._device, self._opcode = tf, device, opcode

    def __call__(self, x: Any) -> Any:
        factor = 2 if self._tf.config.functions_run_eagerly() else self._device
        return SimpleNamespace(numpy=lambda: x * np.float32(factor))

    def experimental_get_compiler_ir(self, x: Any) -> Any:
        texts = {"hlo_serialized": LOWERED, "optimized_hlo_serialized": COMPILED.format(self._opcode)}
        return lambda stage: write_module_proto(parse_module(texts[stage]))


@pytest.fixture
def tf(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    eager = [False]

    def flatten(tree: Any) -> list[Any]:
        if isinstance(tree, dict):
            return [leaf for key in sorted(tree) for leaf in flatten(tree[key])]
        return [leaf for part in tree for leaf in flatten(part)] if isinstance(tree, tuple) else [tree]

    fake = SimpleNamespace(
        convert_to_tensor=lambda v: (
            v if hasattr(v, "numpy") else SimpleNamespace(numpy=lambda: np.asarray(v))
        ),
        nest=SimpleNamespace(flatten=flatten),
        config=SimpleNamespace(
            list_physical_devices=lambda kind: [],
            functions_run_eagerly=lambda: eager[0],
            run_functions_eagerly=lambda value: eager.__setitem__(0, value),
        ),
    )
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", fake)
    return fake


X = np.float32([1, 2])


def test_the_sides_are_told_apart(tf: SimpleNamespace) -> None:
    """Doubled by the program as lowered and eagerly; the compiled one multiplies, the device triples."""
    result = hlotool.tf.check(Function(tf, 3, "multiply"), X)
    assert [row.verdict.value for row in result] == ["wrong", "wrong", "identical"]
    assert [row.tested for row in result][1:] == ["on cpu", "op by op"]
    assert not tf.config.functions_run_eagerly()


def test_hidden_arguments_are_refused(tf: SimpleNamespace) -> None:
    """A variable is a parameter of the program alone."""
    function = Function(tf, 2)
    function.__class__ = type("Hidden", (Function,), {"experimental_get_compiler_ir": _with_variable})
    with pytest.raises(Unsupported, match="2 parameters, and the function shows 1"):
        hlotool.tf.check(function, X)


def _with_variable(self: Any, x: Any) -> Any:
    text = (
        "HloModule f\nENTRY e { x = f32[2] parameter(0) v = f32[2] parameter(1) ROOT y = f32[2] add(x, v) }"
    )
    return lambda stage: write_module_proto(parse_module(text))
