"""The flags of XLA with which a program is wrong, and those without which it is right.

Flags are given by the spec of the backend (`xla:xla_FLAG=VALUE,…`) and by the debug options that lie in a
dump. Each set of them is a compilation and a run of the program as the frontend gave it, which the reference
judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import msgspec

from hlotool._version import __version__
from hlotool.backends.base import target_of
from hlotool.backends.registry import get_backend, is_flag, parse_spec, with_flags, without_flags
from hlotool.blame.bisection.compiler import (
    DISABLING_FUNCTION,
    NEEDED,
    WithoutQuestion,
    go_live,
    minimal_sets,
    passes_that_changed,
)
from hlotool.blame.bisection.records import FlagsRecord
from hlotool.blame.bisection.stages import StageOracle
from hlotool.errors import BackendCrashed
from hlotool.judge.verdicts import DIFFERING, Answer
from hlotool.runs.fleet.contents import context_key
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.runs.task import Task, failed_row
from hlotool.sources.compilation import SUFFIX
from hlotool.system.files import digest

#: A flag in a text proto of debug options; what a dump is told about itself changes no program.
_FLAG = re.compile(r'^(xla_(?!dump_)\w+): "?([^"\s,]+)"?$', re.MULTILINE)
#: What XLA can be told instead of a default, by what it compiles for: arithmetic that is as written, code
#: that is not optimised, no library calls, no instructions that round once where two are written.
_OWN = {
    "": (
        "xla_allow_excess_precision=false",
        "xla_backend_optimization_level=0",
        "xla_llvm_disable_expensive_passes=true",
    ),
    "cpu": (
        "xla_cpu_enable_fast_math=false",
        "xla_cpu_enable_fast_min_max=false",
        "xla_cpu_strict_dot_conv_math=true",
        "xla_cpu_max_isa=SSE4_2",
        "xla_cpu_use_fusion_emitters=false",
        "xla_cpu_multi_thread_eigen=false",
        "xla_cpu_use_onednn=false",
        "xla_cpu_use_xnnpack=false",
        "xla_cpu_disable_loop_unrolling=true",
    ),
    "gpu": (
        "xla_gpu_enable_triton_gemm=false",
        "xla_gpu_autotune_level=0",
        "xla_gpu_enable_fast_min_max=false",
        "xla_gpu_deterministic_ops=true",
    ),
}
#: Sets of flags that are looked for.
_LIMIT = 8


def given_flags(task: Task, backend: str) -> list[str]:
    """The flags under which a program is compiled, as `NAME=VALUE`: of a dump first, then of the backend."""
    found: dict[str, str] = {}
    for file in task.module.artefacts:
        if file.path.endswith(SUFFIX):
            found.update(_FLAG.findall(file.source.read_text()))
    spec = parse_spec(backend)
    found.update({key: value for key, value in spec.options.items() if is_flag(key)})
    return [f"{name}={value}" for name, value in found.items()]


@dataclass(slots=True)
class FlagSearch:
    """The search for the flags of one program.

    Attributes:
        task: the program.
        backend: with its flags.
        oracle: whose workers judge.
        root: gets dumps.
    """

    task: Task
    backend: str
    oracle: StageOracle
    root: Path
    _judged: int = 0
    _attempts: Iterator[int] = field(default_factory=lambda: count(1))

    def run(self) -> FlagsRecord:
        """Which flags make it wrong; where none does, which make it right."""
        given = given_flags(self.task, self.backend)
        base, refused = without_flags(self.backend), []
        row = self._first(with_flags(base, given))
        while row.verdict not in DIFFERING and (unknown := _refused(row, given)):
            given.remove(unknown)
            refused.append(unknown)
            row = self._first(with_flags(base, given))
        wrong_with: list[list[str]] = []
        right_with: list[list[str]] = []
        if row.verdict in DIFFERING:
            self._take_inputs(row)
            wrong_with = self._wrong_with(base, given)
            if [] in wrong_with:
                right_with = [[flag] for flag in self._own(base) if self._makes_right(base, flag)]
        return FlagsRecord(
            module=self.task.module.title,
            path=self.task.path,
            backend=base,
            given=given,
            refused=refused,
            verdict=row.verdict,
            reason=row.reason,
            wrong_with=wrong_with,
            right_with=right_with,
            judged=self._judged,
        )

    def _first(self, backend: str) -> ModuleRecord:
        """How the program does, on the plain inputs and on further sets, as `run` finds it."""
        options = msgspec.structs.replace(self.task.options, backend=backend)
        task = Task(self.task.module, options)
        key = digest(__version__, "flags", context_key(task.module, options), backend)
        self._judged += 1
        value = self.oracle.call(key, backend, "hlotool.runs.run:replay_module", task)
        if value is None:
            return failed_row(task, BackendCrashed(backend, "the process died"), 0.0)
        rows = msgspec.convert(value, list[ModuleRecord])
        computed = [row for row in rows if row.stage_tested != REALITY] or rows
        return max(computed, key=lambda row: row.verdict.rank)

    def _take_inputs(self, row: ModuleRecord) -> None:
        """Ask from now on about the inputs on which it is wrong."""
        if row.inputs is not None and row.inputs.file:
            options = msgspec.structs.replace(self.task.options, inputs=row.inputs.file)
            self.task = Task(self.task.module, options)

    def _wrong_with(self, base: str, given: Sequence[str]) -> list[list[str]]:
        """The smallest sets of the given flags with which it is wrong; the empty one: it is without any."""
        order = {flag: number for number, flag in enumerate(given)}

        def is_wrong(flags: frozenset[str], attempt: int = 0) -> bool:
            spec = with_flags(base, sorted(flags, key=order.__getitem__))
            return self._answer(spec, attempt) is Answer.BAD

        if is_wrong(frozenset()) and is_wrong(frozenset(), next(self._attempts)):
            return [[]]
        sets = minimal_sets(given, is_wrong, lambda flags: is_wrong(flags, next(self._attempts)), _LIMIT)
        return [sorted(flags, key=order.__getitem__) for flags in sets]

    def _own(self, base: str) -> Iterator[str]:
        """Flags that XLA could be told: its own ones, then each pass that changed the program, left out."""
        backend = get_backend(base)
        target = "gpu" if "gpu" in base or target_of(backend) == "gpu" else target_of(backend) or "cpu"
        yield from (*_OWN[""], *_OWN.get(target, ()))
        live = go_live(self.task, base, self.root, self.oracle, 1)
        if live.task is not None:
            names = (name for name in passes_that_changed(live.task.module) if name not in NEEDED)
            yield from (f"disable={name}" for name in names)

    def _makes_right(self, base: str, flag: str) -> bool:
        spec = with_flags(base, [flag])
        asked = (self._answer(spec, attempt) for attempt in (0, next(self._attempts)))
        return all(answer is Answer.GOOD for answer in asked)

    def _answer(self, backend: str, attempt: int) -> Answer:
        key = digest(
            *(__version__, "flags", context_key(self.task.module, self.task.options)), backend, str(attempt)
        )
        self._judged += 1
        question = WithoutQuestion(self.task, backend, attempt)
        value = self.oracle.call(key, backend, DISABLING_FUNCTION, question)
        return Answer.UNUSABLE if value is None else msgspec.convert(value, ModuleRecord).verdict.answer


def _refused(row: ModuleRecord, flags: Sequence[str]) -> str:
    """The flag that this XLA does not know, or not with this value; empty where it says no such thing."""
    named = (flag for flag in flags if re.search(rf"\b{flag.partition('=')[0]}\b", row.reason))
    return next(named, "") if row.error is not None else ""
