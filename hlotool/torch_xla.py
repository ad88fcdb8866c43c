"""Functions of PyTorch/XLA, checked where they are called; torch_xla is imported when that happens.

PyTorch/XLA records what is done to tensors and compiles it when a value is asked for. It has no public way
to the program that XLA made of that; with `--xla_dump_to` among the flags that XLA read at its start, it is
taken from the dump.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hlotool.errors import BackendUnavailable, HlotoolError, Unsupported
from hlotool.interface.api.programs import Called, CheckedCall, judge
from hlotool.ir.arrays import Array
from hlotool.ir.module import Module
from hlotool.system.files import brief_folder

__all__ = ["check"]

_NO_DUMP = (
    "the program that XLA compiled is not judged, because PyTorch/XLA does not hand it out:"
    ' set XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" before torch_xla is imported'
)
_NOT_IN_DUMP = (
    "the program that XLA compiled is not in {folder}: it was compiled for an earlier call, or XLA had read"
    " its flags before they named that folder"
)


def check(function: Callable[..., Any], *args: Any, op_by_op: bool = True, **kwargs: Any) -> CheckedCall:
    """Call a function, and judge on the same arguments what came of it.

    The program that PyTorch/XLA lowered is executed on hlotool's own reference; that judges what the device
    returned, the program that XLA compiled (executed on the reference, too) where it is in a dump, and what
    the function returns in eager mode, where every operation is compiled alone.

    Args:
        function: called with its tensors on the XLA device, twice more if `op_by_op`. Tensors that it reads
            beside its arguments, such as the parameters of a module, are arguments of the program.
        args: of the function. Tensors are copied, and stay as they are; other values are passed on.
        op_by_op: also in eager mode. What a function with a state of its own returns there means nothing,
            which a note says.
        kwargs: likewise.

    Returns:
        a row for each side, with verdict and reason. `str()` is the report.

    Raises:
        BackendUnavailable: torch_xla cannot be imported.
        Unsupported: the function returns no tensor of an XLA device.
    """
    start = time.perf_counter()
    library = _Library.load()
    traced = library.trace(function, args, kwargs)
    value, results, notes, compiled = library.execute(traced)
    made = Called(traced.lowered, compiled, library.platform, traced.arguments, value, results, notes)

    def alone() -> list[Array]:
        again = library.trace(function, args, kwargs)
        if not _is_same(traced, again):
            raise Unsupported(
                "a second call would be another program, or read other values: the function has a state"
            )
        return library.eagerly(function, args, kwargs)

    return judge(made, alone if op_by_op else None, {}, start)


@dataclass(frozen=True, slots=True, eq=False)
class _Traced:
    """A call that was recorded, and not executed.

    Attributes:
        lowered: the program, as a binary proto.
        arguments: of the program, in the order of its parameters.
        value: what the function returned.
        leaves: the tensors in it that lie on the device, in the order of the program's outputs.
    """

    lowered: bytes
    arguments: list[Array]
    value: Any
    leaves: list[Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Library:
    """What is used of PyTorch/XLA: torch, torch_xla, and the C++ module below it."""

    torch: Any
    torch_xla: Any

    @classmethod
    def load(cls) -> _Library:
        """Import both.

        Raises:
            BackendUnavailable: that fails.
        """
        try:
            import torch
            import torch_xla
        except ImportError as error:
            raise BackendUnavailable(
                f"PyTorch/XLA cannot be imported (pip install torch torch_xla): {error}"
            ) from error
        return cls(torch, torch_xla)

    @property
    def platform(self) -> str:
        """`cpu`, `gpu` or `tpu`."""
        from torch_xla import runtime

        name: str = runtime.device_type().lower()
        return {"cuda": "gpu", "rocm": "gpu"}.get(name, name)

    def trace(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> _Traced:
        """Record a call on copies of its arguments."""
        copied_args, copied_kwargs = self._copies((tuple(args), kwargs))
        value = function(*copied_args, **copied_kwargs)
        leaves = [t for t in self._tensors(value) if t.device.type == "xla"]
        if not leaves:
            raise Unsupported("the function returns no tensor of an XLA device")
        extension = self.torch_xla._XLAC
        # In the order of the program's parameters; read before anything is updated in place.
        _, data = extension._get_tensors_xla_device_data_node(leaves)
        return _Traced(
            extension._get_xla_tensors_hlo_proto(leaves), [self._array(t) for t in data], value, leaves
        )

    def execute(self, traced: _Traced) -> tuple[Any, list[Array], list[str], bytes | None]:
        """Compile and execute what was recorded: value, arrays in it, notes, and the compiled program."""
        folder = _dump_folder()
        before = _files(folder)
        self.torch_xla._XLAC._xla_sync_multi(traced.leaves, devices=[], wait=True, sync_xla_data=False)
        results = [self._array(leaf) for leaf in traced.leaves]
        if folder is None:
            return traced.value, results, [_NO_DUMP], None
        compiled = _compiled(folder, _files(folder) - before, traced.lowered)
        notes = [] if compiled else [_NOT_IN_DUMP.format(folder=folder)]
        return traced.value, results, notes, compiled

    def eagerly(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> list[Array]:
        """The results where every operation is compiled alone."""
        from torch_xla.experimental import eager_mode_context

        copied_args, copied_kwargs = self._copies((tuple(args), kwargs))
        with eager_mode_context(True):
            value = function(*copied_args, **copied_kwargs)
        return [self._array(t) for t in self._tensors(value) if t.device.type == "xla"]

    def _copies(self, tree: Any) -> Any:
        """The same with copies of its tensors, on the device, as data and not as what computes them."""
        device = self.torch_xla.device()

        def copy(leaf: Any) -> Any:
            if not isinstance(leaf, self.torch.Tensor):
                return leaf
            return leaf.detach().cpu().clone().to(device).requires_grad_(leaf.requires_grad)

        copied = self.torch.utils._pytree.tree_map(copy, tree)
        self.torch_xla.sync()
        return copied

    def _tensors(self, tree: Any) -> list[Any]:
        leaves = self.torch.utils._pytree.tree_leaves(tree)
        return [leaf for leaf in leaves if isinstance(leaf, self.torch.Tensor)]

    def _array(self, tensor: Any) -> Array:
        """A tensor's values; types that NumPy has not are those of ml_dtypes, which are called alike."""
        there = tensor.detach().cpu().contiguous()
        name = str(there.dtype).removeprefix("torch.")
        if not name.startswith(("bfloat16", "float8")):
            return np.asarray(there.numpy())
        import ml_dtypes

        words = {1: self.torch.uint8, 2: self.torch.int16}[there.element_size()]
        return np.asarray(there.view(words).numpy()).view(getattr(ml_dtypes, name))


def _is_same(one: _Traced, other: _Traced) -> bool:
    """Whether two calls were recorded as the same program with the same arguments, to the bit."""
    from hlotool.parser.proto.module import parse_module_proto

    texts = [parse_module_proto(traced.lowered).to_text() for traced in (one, other)]
    return texts[0] == texts[1] and [a.tobytes() for a in one.arguments] == [
        a.tobytes() for a in other.arguments
    ]


def _dump_folder() -> Path | None:
    """The folder into which XLA was told to dump; of several it takes the last."""
    named = re.findall(r"--xla_dump_to=(\S+)", os.environ.get("XLA_FLAGS", ""))
    return Path(named[-1]) if named else None


def _files(folder: Path | None) -> frozenset[str]:
    if folder is None or not folder.is_dir():
        return frozenset()
    return frozenset(os.listdir(folder))


def _compiled(folder: Path, names: frozenset[str], lowered: bytes) -> bytes | None:
    """The optimised program in a dump, as a binary proto; None where it is not clear which one it is.

    Args:
        folder: of the dump.
        names: of the files that were written during the call.
        lowered: the program that was compiled.
    """
    from hlotool.parser.proto.module import parse_module_proto, write_module_proto

    meant = _signature(parse_module_proto(lowered))
    found = [after for before, after in _pairs(folder, names) if _signature(before) == meant]
    return write_module_proto(found[0]) if len(found) == 1 else None


def _pairs(folder: Path, names: frozenset[str]) -> Iterator[tuple[Module, Module]]:
    """The programs before and after optimisation in some files of a dump."""
    from hlotool.runs.task import select_stages
    from hlotool.sources.directory import open_dump
    from hlotool.sources.loading import load_stage

    with brief_folder() as alone:
        for name in names:
            (alone / name).symlink_to(folder.resolve() / name)
        try:
            modules = open_dump(alone).modules if names else ()
        except HlotoolError:
            return  # none of the files is a program
        for module in modules:
            selection = select_stages(module)
            if selection.reference is not None and len(selection.tested) == 1:
                yield load_stage(module, selection.reference), load_stage(module, selection.tested[0])


def _signature(module: Module) -> list[str]:
    """Types and dimensions of what a program takes and returns; layouts are for the compiler to choose."""
    shapes = [*(parameter.shape for parameter in module.entry.parameters), module.entry.root.shape]
    return [re.sub(r"\{[^}]*\}", "", str(shape)) for shape in shapes]
