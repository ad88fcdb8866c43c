"""`hlotool.torch_xla.check` on a stand-in for PyTorch/XLA: what it asks of the real one, and what it says.

The stand-in answers as torch_xla 2.9.0 does, with which the same calls were tried by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hlotool
from hlotool.errors import BackendUnavailable, Unsupported
from hlotool.parser.proto.module import write_module_proto
from hlotool.parser.reader import parse_module

DOUBLE = "HloModule f\nENTRY e { x = f32[2] parameter(0) y = f32[2] add(x, x) ROOT t = (f32[2]) tuple(y) }"
SQUARE = DOUBLE.replace("add", "multiply")


class Tensor:
    """An array on a device; `dtype` prints as torch's do."""

    def __init__(self, values: Any, device: str = "cpu") -> None:
        self.values = np.asarray(values)
        self.device = SimpleNamespace(type=device)
        self.requires_grad = False
        self.dtype = f"torch.{self.values.dtype}"

    def cpu(self) -> Tensor:
        return Tensor(self.values)

    def to(self, device: str) -> Tensor:
        return Tensor(self.values, device)

    def numpy(self) -> Any:
        return self.values

    def detach(self) -> Tensor:
        return self

    clone = contiguous = detach

    def requires_grad_(self, is_required: bool) -> Tensor:
        return self


class Library:
    """Torch and torch_xla of functions with one tensor.

    Attributes:
        lowered: the program of any function.
        compiled: what XLA is said to have made of it.
        folder: for a dump, if there is one.
        data: what the last function read.
        is_eager: in eager mode.
    """

    def __init__(self) -> None:
        self.lowered, self.compiled = DOUBLE, DOUBLE
        self.folder: Path | None = None
        self.data: list[Tensor] = []
        self.is_eager = False

    def sync(self, tensors: list[Tensor], devices: list[str], wait: bool, sync_xla_data: bool) -> None:
        """Compile, which writes a dump where one is wanted."""
        if self.folder is not None:
            for stage, text in (("before", self.lowered), ("cpu_after", self.compiled)):
                file = self.folder / f"module_0001.SyncTensorsGraph.5.{stage}_optimizations.txt"
                file.write_text(text)

    @contextmanager
    def eager_mode(self, is_eager: bool) -> Iterator[None]:
        self.is_eager = is_eager
        yield
        self.is_eager = False

    def multiplying(self, device: float, eager: float = 2, state: float = 0) -> Any:
        """A function that multiplies by one number on the device, by another one in eager mode.

        `state` is added to what it reads with every call.
        """

        def function(x: Tensor) -> Tensor:
            assert x.device.type == "xla"
            self.data = [Tensor(x.values + np.float32(state * len(calls)))]
            calls.append(x)
            return Tensor(x.values * np.float32(eager if self.is_eager else device), "xla")

        calls: list[Tensor] = []
        return function


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    extension = SimpleNamespace(
        _get_tensors_xla_device_data_node=lambda tensors: ([1], made.data),
        _get_xla_tensors_hlo_proto=lambda tensors: write_module_proto(parse_module(made.lowered)),
        _xla_sync_multi=made.sync,
    )
    tree = SimpleNamespace(
        tree_map=lambda f, tree: (tuple(map(f, tree[0])), tree[1]),
        tree_leaves=lambda tree: [tree],
    )
    modules = {
        "torch": SimpleNamespace(Tensor=Tensor, utils=SimpleNamespace(_pytree=tree)),
        "torch_xla": ModuleType("torch_xla"),
        "torch_xla.experimental": SimpleNamespace(eager_mode_context=made.eager_mode),
        "torch_xla.runtime": SimpleNamespace(device_type=lambda: "CPU"),
    }
    vars(modules["torch_xla"]).update(
        _XLAC=extension, device=lambda: "xla", sync=lambda: None, runtime=modules["torch_xla.runtime"]
    )
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    return made


X = Tensor(np.float32([1, 3]))


def verdicts(result: Any) -> dict[str, str]:
    return {row.tested: row.verdict.value for row in result}


def test_the_device_is_told_from_eager_mode(library: Library) -> None:
    """Doubled by the program as lowered and in eager mode; the device triples."""
    result = hlotool.torch_xla.check(library.multiplying(3), X)
    assert verdicts(result) == {"on cpu": "wrong", "op by op": "identical"}
    assert result.value.values.tolist() == [3, 9]
    assert result.compiled is None
    with pytest.raises(Unsupported, match="not known"):
        _ = result.compiled_module
    [note] = result.notes
    assert "--xla_dump_to=DIR" in note


def test_the_compiled_program_is_in_the_dump(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It squares, and so does the device."""
    library.folder, library.compiled = tmp_path, SQUARE
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to=/elsewhere --xla_dump_to={tmp_path}")

    def square(x: Tensor) -> Tensor:
        library.data = [x]
        return Tensor(x.values * x.values, "xla")

    result = hlotool.torch_xla.check(square, X, op_by_op=False)
    assert [row.verdict.value for row in result] == ["wrong", "wrong"]
    assert result.compiled is not None
    assert "multiply" in result.compiled_module.to_text()
    assert result.notes == []


def test_a_dump_of_something_else_is_not_taken_for_it(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compiled meanwhile takes three numbers; and nothing is compiled for a second call."""
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    other = DOUBLE.replace("[2]", "[3]")
    monkeypatch.setattr(
        library,
        "sync",
        lambda *_, **__: (tmp_path / "module_0002.g.before_optimizations.txt").write_text(other),
    )
    sys.modules["torch_xla"]._XLAC._xla_sync_multi = library.sync  # type: ignore[attr-defined]
    for _ in range(2):
        result = hlotool.torch_xla.check(library.multiplying(2), X, op_by_op=False)
        assert verdicts(result) == {"on cpu": "identical"}
        assert f"is not in {tmp_path}" in result.notes[0]


def test_a_state_is_not_compared_with_another(library: Library) -> None:
    """What a second call reads is not what the first one read: eager mode would start elsewhere."""
    result = hlotool.torch_xla.check(library.multiplying(2, eager=7, state=1), X)
    assert verdicts(result) == {"on cpu": "identical"}
    assert "the function has a state" in result.notes[1]


def test_what_is_on_no_device_is_refused(library: Library) -> None:
    with pytest.raises(Unsupported, match="no tensor of an XLA device"):
        hlotool.torch_xla.check(lambda x: 3, X)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendUnavailable, match="pip install torch torch_xla"):
        hlotool.torch_xla.check(abs, X)
