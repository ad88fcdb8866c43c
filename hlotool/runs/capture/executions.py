"""Executions of JAX's programs, looked at where they happen: on any device, whatever XLA records.

Each execution is followed by a small program on the same device that tells whether its floats are finite. A
thread reads that, decides (`keeping.py`), writes what is kept (`snapshots.py`), and runs it again at once:
the same bits again are what the program computes there, other bits are a fault of the device or a race. The
user's program waits for none of it. Arguments and results are held by reference; what the program gives away
(`donate_argnums`) is copied on the device before.

Runs in whatever Python the program uses: nothing is imported but the standard library, and what JAX has.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import queue
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from glob import escape, glob
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

#: Executions that wait for a decision at most: each holds memory.
_MOST_WAITING = 4
#: Different results of one execution that are written.
_MOST_RESULTS = 16
#: Programs that are no part of the user's have this in their names, and are not dumped.
OWN = "hlotool"
_NO_DUMP: dict[str, str | bool] = {
    "xla_dump_to": "",
    "xla_dump_hlo_as_text": False,
    "xla_dump_large_constants": False,
}


class Wishes(NamedTuple):
    """What is looked for.

    Attributes:
        conditions: `--keep-when`; empty for none.
        last: executions before an event that are kept.
        most_bytes: that kept and waiting ones may take.
        repeat: how often the execution that is judged anyway is run in all.
        judged: its number; the last one where there are fewer.
        only: regular expression of the modules.
    """

    conditions: str = ""
    last: int = 3
    most_bytes: float = 1e300
    repeat: int = 1
    judged: int = 3
    only: str = ""


class _Execution(NamedTuple):
    """An execution: all arguments, as they were before it, and its results."""

    program: _Program
    number: int
    arguments: Sequence[Any]
    results: Sequence[Any]
    screened: Any


class _Program:
    """What is known of a program that the user's program executes.

    Attributes:
        stem: of its files in the dump.
        number: of the module in this process.
        message: an HloModuleProto.
        is_tuple: its result is a tuple.
        run: executes it.
        used: numbers of the arguments that are its parameters.
        count: executions so far.
        size: bytes of an execution.
        floats: numbers and names of the outputs that may have a NaN, and whether each is a real scalar.
        is_kept: one was written.
    """

    def __init__(
        self, stem: str, number: int, module: Any, message: bytes, run: Callable[..., Any], used: list[int]
    ) -> None:
        self.stem = stem
        self.number = number
        self.message = message
        layout = re.search(r"entry_computation_layout=\{.*?->(\()?", module.to_string().partition("\n")[0])
        self.is_tuple = layout is None or layout[1] is not None
        self.run = run
        self.used = used
        self.count = 0
        self.size = 0
        self.floats: list[tuple[int, str, bool]] = []
        self.is_kept = False
        self._given_away: list[int] | None = None
        self._copy: Any = None
        self._screen: Any = None

    def execute(self, arguments: Sequence[Any], ready: Callable[[_Execution], None]) -> Any:
        """Execute once more; hands on what there is to be looked at, and returns what it returns."""
        self.count += 1
        number, before = self.count, self.copied(arguments)
        results = self.run(*arguments)
        if self._given_away is None:
            self._given_away = [n for n, a in enumerate(arguments) if _is_deleted(a)]
            self._copy = None
            self._learn(before, results)
        ready(_Execution(self, number, before, results, self._screened(results)))
        return results

    def _learn(self, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        """Note what is the same of all executions."""
        import jax.numpy as jnp

        self.size = sum(getattr(one, "nbytes", 0) for one in (*arguments, *results))
        for n, result in enumerate(results):
            if hasattr(result, "dtype") and jnp.issubdtype(result.dtype, jnp.inexact):
                is_scalar = result.ndim == 0 and not jnp.issubdtype(result.dtype, jnp.complexfloating)
                self.floats.append((n, f"out[{n}]" if self.is_tuple else "out", is_scalar))

    def copied(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments, with copies of those that an execution may take, or the user may change."""
        import jax
        import numpy as np

        found = [np.array(a) if type(a) is np.ndarray else a for a in arguments]
        taken = self._given_away
        if taken is None:
            taken = [n for n, a in enumerate(arguments) if isinstance(a, jax.Array)]
        if taken:
            given = [_words(arguments[n]) for n in taken]
            self._copy = self._copy or _compiled(hlotool_copies, given)
            for n, one, copy in zip(taken, given, self._copy(*given)):
                found[n] = copy
                # It may be the result of an execution that is still to be looked at.
                _COPIES[id(one)] = ref(one, partial(_COPIES.pop, id(one))), copy
        return found

    def again(self, arguments: Sequence[Any]) -> Any:
        """Execute on arguments that stay as they are."""
        return self.run(*self.copied(list(map(_alive, arguments))))

    def _screened(self, results: Sequence[Any]) -> Any:
        """A number for each output with floats, which is finite where all of them are."""
        if not self.floats:
            return ()
        floats = [results[n] for n, _, _ in self.floats]
        self._screen = self._screen or _compiled(hlotool_squares, floats)
        return self._screen(*floats)


def hlotool_copies(*arrays: Any) -> Any:
    """The same arrays once more."""
    import jax.numpy as jnp

    return [jnp.copy(array) for array in arrays]


def hlotool_squares(*arrays: Any) -> Any:
    """The sum of the squares of each array: finite where its elements are, and not very large."""
    import jax.numpy as jnp

    wide = [a if a.dtype.itemsize >= 4 else a.astype(jnp.float32) for a in arrays]
    return jnp.stack([jnp.vdot(a, a).real.astype(jnp.float32) for a in wide])


def _compiled(function: Any, arguments: Sequence[Any]) -> Any:
    import jax

    return jax.jit(function).lower(*arguments).compile(compiler_options=_NO_DUMP)


def _words(argument: Any) -> Any:
    """Of a PRNG key its words."""
    return getattr(argument, "_base_array", argument)


def _is_deleted(argument: Any) -> bool:
    return bool(getattr(_words(argument), "is_deleted", lambda: False)())


#: Copies of arrays that a program was given for good, as long as somebody else has the array: by its id.
_COPIES: dict[int, tuple[Any, Any]] = {}


def _alive(argument: Any) -> Any:
    """An array on the device, or its copy where it was given away."""
    one = _words(argument)
    return _COPIES[id(one)][1] if _is_deleted(one) and id(one) in _COPIES else one


def _array(argument: Any) -> Any:
    import numpy as np

    try:
        return np.asarray(_alive(argument))
    except RuntimeError:  # given away just now
        return np.asarray(_alive(argument))


class Recorder:
    """Looks at all executions of JAX in this process.

    Args:
        folder: of the process.
        wishes: see there.
        keeping: the module of that name.
        snapshots: likewise.
    """

    def __init__(self, folder: str, wishes: Wishes, keeping: Any, snapshots: Any) -> None:
        self._wishes = wishes
        self._keeping = keeping
        self._snapshots = snapshots
        self.begin(folder)

    def begin(self, folder: str) -> None:
        """Forget everything: this is another process now."""
        self._folder = folder
        self._keeper: Any = None
        if self._wishes.conditions:
            conditions = self._keeping.parse_conditions(self._wishes.conditions)
            self._keeper = self._keeping.Keeper(conditions, self._wishes.last, self._wishes.most_bytes)
        _COPIES.clear()
        self._programs: WeakKeyDictionary[Any, _Program | None] = WeakKeyDictionary()
        self._last: dict[_Program, _Execution] = {}
        self._waiting: queue.Queue[_Execution] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None

    def call(self, original: Any, executable: Any, arguments: Sequence[Any]) -> Any:
        """Execute a program, in place of JAX."""
        if executable not in self._programs:
            self._programs[executable] = self._met(executable, original)
        program = self._programs[executable]
        if program is None:
            return original(executable, *arguments)
        if self._thread is None:
            self._start()
        return program.execute(arguments, self._waiting.put)

    def _met(self, executable: Any, original: Any) -> _Program | None:
        """A new program; None of what is not looked at."""
        has_effects = (
            executable.ordered_effects or executable.has_unordered_effects or executable.has_host_callbacks
        )
        if has_effects or executable.mut or len(executable.xla_executable.local_devices()) != 1:
            return None
        [module] = executable.xla_executable.hlo_modules()
        message = module.as_serialized_hlo_module_proto()
        number = self._snapshots.field_of(message, 5)
        # What is not in the dump was not asked for, or is a program of ours.
        found = glob(os.path.join(escape(self._folder), f"module_{number:04d}.*.before_optimizations.txt"))
        stem = found[0].removesuffix(".before_optimizations.txt") if found else ""
        if not found or not re.search(self._wishes.only, os.sep.join(stem.split(os.sep)[-2:])):
            return None
        self._write_line({"module": number})
        run, used = partial(original, executable), sorted(executable.kept_var_idx)
        return _Program(stem, number, module, message, run, used)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="hlotool: executions", daemon=True)
        self._thread.start()
        atexit.register(self._finish)

    def _work(self) -> None:
        while True:
            execution = self._waiting.get()
            try:
                self._decide(execution)
            except Exception as error:
                text = f"hlotool: an execution was not looked at: {type(error).__name__}: {error}"
                print(text, file=sys.stderr, flush=True)
            finally:
                del execution
                self._waiting.task_done()

    def _finish(self) -> None:
        """The program ends: decide about what waits, and keep the last execution where none was."""
        self._waiting.join()
        for program, execution in list(self._last.items()):
            if not program.is_kept:
                self._judge(execution)

    def _decide(self, execution: _Execution) -> None:
        import numpy as np

        program = execution.program
        if execution.number == self._wishes.judged:
            self._judge(execution)
        elif execution.number < self._wishes.judged:
            self._last[program] = execution
        if self._keeper is None:
            return
        outputs = {
            name: self._keeping.Output(bool(is_finite), is_scalar, partial(_array, execution.results[n]))
            for is_finite, (n, name, is_scalar) in zip(
                np.isfinite(np.asarray(execution.screened)), program.floats
            )
            if is_scalar or not is_finite
        }
        events, kept = self._keeper.see(program.number, execution.number, execution, program.size, outputs)
        for one in kept:
            self._write(one)
        is_shown = any(event["output"] and event["is_kept"] for event in events)
        again = self._again(execution) if is_shown else ""
        for event in events:
            self._write_line({"module": program.number, "event": event | {"again": again}})

    def _judge(self, execution: _Execution) -> None:
        """Write the execution that is judged in any case, and what repeated it."""
        self._last.pop(execution.program, None)
        self._write(execution)
        if self._wishes.repeat > 1:
            self._repeat(execution)

    def _again(self, execution: _Execution) -> str:
        """What the device returns for the same arguments now, in words."""
        others = execution.program.again(execution.arguments)
        pairs = [(_array(a), _array(b)) for a, b in zip(execution.results, others)]
        count = sum(_differing(one, other) for one, other in pairs)
        return (
            f"other bits: {count} of {sum(a.size for a, _ in pairs)} elements"
            if count
            else "the same bits again"
        )

    def _repeat(self, execution: _Execution) -> None:
        """Run it again and again; each different result is written as an execution of its own."""
        program = execution.program
        own = _bits(execution.results)
        names: set[int] = set()
        found = {_key(own): f"{program.stem}.snapshot.{execution.number}.pb"}
        seen = Counter(list(found))
        for _ in range(self._wishes.repeat - 1):
            results = program.again(execution.arguments)
            bits = _bits(results)
            names |= {n for n, (a, b) in enumerate(zip(own, bits)) if a != b}
            key = _key(bits)
            seen[key] += 1
            if key not in found and len(found) < _MOST_RESULTS:
                found[key] = self._write(execution._replace(number=-len(found), results=results))
        repeat = {
            "execution": execution.number,
            "runs": self._wishes.repeat,
            "results": len(seen),
            "usual": max(seen.values()),
            "outputs": [f"out[{n}]" if program.is_tuple else "out" for n in sorted(names)],
            "files": {os.path.basename(path): seen[key] for key, path in found.items()},
        }
        self._write_line({"module": program.number, "repeat": repeat})

    def _write(self, execution: _Execution) -> str:
        """Write the file of an execution, whole or not at all; its path."""
        import jax

        program = execution.program
        given = (execution.arguments[n] for n in program.used)
        arrays = [_array(one) for one in given]
        arrays = [a.astype(jax.dtypes.canonicalize_dtype(a.dtype), copy=False) for a in arrays]
        results = [_array(one) for one in execution.results]
        path = f"{program.stem}.snapshot.{execution.number}.pb"
        if os.path.exists(path) or not all(self._snapshots.is_known(a.dtype) for a in (*arrays, *results)):
            return path
        platform = jax.default_backend()
        temporary = os.path.join(self._folder, f".{threading.get_ident()}")
        with open(temporary, "wb") as file:
            file.writelines(
                self._snapshots.snapshot(program.message, arrays, results, program.is_tuple, platform)
            )
        os.replace(temporary, path)
        program.is_kept = True
        return path

    def _write_line(self, line: dict[str, Any]) -> None:
        with open(f"{self._folder}.executions", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _differing(one: Any, other: Any) -> int:
    """How many elements differ in at least one bit."""
    import numpy as np

    size = one.dtype.itemsize
    rows = [np.ascontiguousarray(a).view(np.uint8).reshape(-1, size) for a in (one, other) if a.size]
    return int((rows[0] != rows[1]).any(axis=1).sum()) if rows else 0


def _key(bits: Sequence[bytes]) -> bytes:
    return hashlib.blake2b(b"".join(hashlib.blake2b(one).digest() for one in bits)).digest()


def _bits(results: Sequence[Any]) -> list[bytes]:
    return [_array(result).tobytes() for result in results]
