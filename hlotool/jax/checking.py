"""`check`: one call of a function, judged from four sides on the same arguments."""

from __future__ import annotations

import functools
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hlotool.api.course import Ending
from hlotool.api.options import options_from
from hlotool.api.replay import Replayed, ReplayResult, record_of, replay_on
from hlotool.capture.stages import stage_proto
from hlotool.errors import Miscompiled
from hlotool.jax.library import load_jax
from hlotool.replay.records import REALITY

if TYPE_CHECKING:
    from hlotool.ir.dtypes import Array
    from hlotool.ir.module import Module
    from hlotool.jax.calls import Call
    from hlotool.replay.options import RunOptions
    from hlotool.replay.records import ModuleRecord
    from hlotool.report.records import RunRecord
    from hlotool.workers.pool import Pool

F = TypeVar("F", bound=Callable[..., Any])

#: `ModuleRecord.tested` of what the function gives without `jit`.
OP_BY_OP = "op by op"


class CheckedCall(ReplayResult):
    """What became of one call: a row for each side that was judged by the program as it was lowered.

    Args:
        record: as `hlotool run` prints it.
        value: what the function returned.
        program: the HLO as it was lowered, and as it was compiled, as protos.

    Attributes:
        value: see above.
    """

    def __init__(self, record: RunRecord, value: Any, program: tuple[bytes, bytes]) -> None:
        super().__init__(record)
        self.value = value
        self._program = program

    @property
    def compiled(self) -> ModuleRecord | None:
        """The program that XLA made, executed on the reference."""
        return next((row for row in self.rows if row.stage_tested != REALITY), None)

    @property
    def device(self) -> ModuleRecord | None:
        """What the device returned."""
        return next((r for r in self.rows if r.stage_tested == REALITY and r.tested != OP_BY_OP), None)

    @property
    def op_by_op(self) -> ModuleRecord | None:
        """What the function returns where every operation is compiled alone; None where that failed."""
        return next((row for row in self.rows if row.tested == OP_BY_OP), None)

    @property
    def lowered_module(self) -> Module:
        """The program as the frontend made it."""
        return _module(self._program[0])

    @property
    def compiled_module(self) -> Module:
        """The program as XLA compiled it."""
        return _module(self._program[1])


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks calls of functions, with options.

    Attributes:
        op_by_op: also without `jit`, which takes long where many operations have to be compiled.
        options: of the judgement, as `hlotool.replay` has them: `rtol`, `exact`, `timeout`, ….
    """

    op_by_op: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> CheckedCall:
        """As the function `check`."""
        jax = load_jax()

        from hlotool.jax.calls import call

        start = time.perf_counter()
        made = call(function, args, kwargs)
        program = stage_proto(made.lowered), stage_proto(made.compiled)
        platform = made.compiled.runtime_executable().client.platform
        notes: list[str] = []
        with tempfile.TemporaryDirectory(prefix="hlotool-") as folder, _pool(self._options(made)) as pool:
            pool.start()  # what it imports overlaps with what is compiled here
            alone = self._alone(function, args, kwargs, notes)
            name = _write(Path(folder), program, platform)
            found = self._replay(pool, folder, made, made.results, f"on {jax.default_backend()}")
            if alone is not None:
                before = str(Path(folder, f"{name}.before_optimizations.hlo.pb"))
                again = self._replay(pool, before, made, alone, OP_BY_OP)
                found.rows += [row for row in again.rows if row.tested == OP_BY_OP]
        elapsed = time.perf_counter() - start
        rows, options = found.rows, self._options(made)
        record = record_of([], options, rows, Ending(), [*found.notes, *notes], elapsed)
        return CheckedCall(record, made.value, program)

    def checked(self, function: F) -> F:
        """As the decorator `checked`."""
        known: set[Any] = set()

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            key = _signature(args, kwargs)
            if key in known:
                return function(*args, **kwargs)
            result = self.check(function, *args, **kwargs)
            if result.wrong:
                raise Miscompiled(str(result))
            known.add(key)
            return result.value

        return wrapped  # type: ignore[return-value]

    def _alone(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], notes: list[str]
    ) -> list[Array] | None:
        """The results without `jit`; None where they are not asked for, or there are none."""
        jax = load_jax()

        from hlotool.jax.calls import arrays, copies

        if not self.op_by_op:
            return None
        copied_args, copied_kwargs = copies((tuple(args), dict(kwargs)))
        try:
            with jax.disable_jit():
                return arrays(function(*copied_args, **copied_kwargs))
        except Exception as error:  # whatever the user's function raises without jit
            notes.append(f"{OP_BY_OP}: {type(error).__name__}: {error}")
            return None

    def _options(self, made: Call, results: Sequence[Array] = ()) -> RunOptions:
        """Of a replay on the arguments of the call, which shall have given `results`."""
        given = {**self.options, "inputs": made.arguments or None, "outputs": list(results) or None}
        return options_from(given)

    def _replay(self, pool: Pool, path: str, made: Call, results: Sequence[Array], origin: str) -> Replayed:
        """The rows of a path; those of `results` say that they come from `origin`."""
        import msgspec

        found = Replayed()
        replay_on(pool, [path], self._options(made, results), found, resume=False)
        found.rows = [
            msgspec.structs.replace(row, tested=origin) if row.stage_tested == REALITY else row
            for row in found.rows
        ]
        return found


def _pool(options: RunOptions) -> Pool:
    from hlotool.replay.options import PRELOAD
    from hlotool.workers.pool import Limits, Pool

    return Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.reference)


def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> CheckedCall:
    """Call a function, and judge on the same arguments what came of it.

    The program as it was lowered is executed on hlotool's own reference; that judges the program that XLA
    compiled (executed there, too), what the device returned, and what the function returns where every
    operation is compiled alone (`jax.disable_jit`).

    Args:
        function: one of `jax.jit`, with its static and donated arguments, or any other, which is jitted.
            Arrays that are sharded, PRNG keys, `vmap` and `grad` are what they are elsewhere.
        args: of the function. Donated ones stay usable.
        kwargs: likewise.

    Returns:
        a row for each side, with verdict and reason. `str()` is the report; nothing is raised for what is
        wrong.

    Raises:
        Unsupported: which arguments are static, or became parameters, cannot be told.
        DumpError: the program is none that can be read.
    """
    return Checker().check(function, *args, **kwargs)


def checked(function: F) -> F:
    """A decorator: the function is checked whenever it is called for the first time with such arguments.

    Arguments are alike when structure, shapes and element types are; what is no array has to be equal.
    The function returns what it always does, and raises `Miscompiled` with the report where that is wrong.
    """
    return Checker().checked(function)


def _write(folder: Path, program: tuple[bytes, bytes], platform: str) -> str:
    """Write a dump of both stages; returns what their names begin with."""
    title = re.sub(r"[^\w-]", "_", _module(program[0]).name)[:100] or "program"
    name = f"module_0000.{title}"
    for label, content in zip(("before_optimizations", f"{platform}_after_optimizations"), program):
        (folder / f"{name}.{label}.hlo.pb").write_bytes(content)
    return name


def _module(proto: bytes) -> Module:
    from hlotool.parse.proto.module import parse_module_proto

    return parse_module_proto(proto)


def _signature(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What is alike of two calls that need no two checks."""
    jax = load_jax()

    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
    return structure, tuple(_kind(leaf) for leaf in leaves)


def _kind(leaf: Any) -> Any:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return tuple(leaf.shape), str(leaf.dtype), str(getattr(leaf, "sharding", ""))
    return type(leaf), leaf if isinstance(leaf, (str, int, bool)) else repr(leaf)
