"""hlotool's own passes, and those of plug-ins, as a compiler: what they make of a program runs on NumPy.

A wrong pass is then found as a wrong pass of XLA is: `--backend opt:passes=simplify+cse`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from hlotool._version import __version__
from hlotool.backends.base import DevicesExecutable, Executable
from hlotool.backends.registry import (
    BackendSpec,
    Options,
    check_options,
    evaluate_constant,
    get_backend,
    get_devices_backend,
)
from hlotool.errors import BackendCrashed, UsageError, VerificationError
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Module
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.manager import DumpModules, Listener, PassManager
from hlotool.rewrite.passes.pipeline import Item, Pipeline, parse_pipeline

#: By form, with their meaning.
OPTIONS = {
    "passes=PASS+PASS": "the pipeline, as `hlotool opt --passes` takes it, with + for commas",
    "disable=PASS+PASS": "passes of it that must not run",
}

#: What runs the programs.
_RUNS = "numpy"

_T = TypeVar("_T")


def create(options: Options) -> OptBackend:
    """The backend of these options; without passes it is there, and compiles nothing.

    Raises:
        UsageError: unknown options, or no such pass.
    """
    check_options("opt", options, OPTIONS)
    text = options.get("passes", "")
    pipeline = parse_pipeline(text.replace("+", ",")) if text else None
    off = frozenset(filter(None, options.get("disable", "").split("+")))
    return OptBackend(str(BackendSpec("opt", options)), None if pipeline is None else _without(pipeline, off))


def _without(pipeline: Pipeline, off: frozenset[str]) -> Pipeline:
    """The pipeline without the passes of these names."""
    items: list[Item] = []
    for item in pipeline.items:
        if isinstance(item, Pipeline):
            if (left := _without(item, off)).items:
                items.append(left)
        elif item.name not in off:
            items.append(item)
    return replace(pipeline, items=tuple(items))


@dataclass(frozen=True, slots=True)
class OptBackend:
    """Passes, then NumPy.

    Attributes:
        name: its spec.
        pipeline: what is run on each program; None where the user did not say.
        folder: gets a dump of each pass; None for none.
    """

    name: str
    pipeline: Pipeline | None
    folder: Path | None = None

    @property
    def version(self) -> str:
        """What reports cite."""
        _, _, options = self.name.partition(":")
        return f"hlotool {__version__}" + (f" ({options})" if options else "")

    def compile(self, module: Module) -> Executable:
        """Run the passes on a copy of `module` and prepare what they make of it.

        Raises:
            UsageError: no passes are named.
            BackendCrashed: a pass made it invalid, or failed.
            Unsupported: NumPy cannot execute what they make of it.
        """
        return get_backend(_RUNS).compile(self._optimised(module))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """The same for all devices of `grid`."""
        return get_devices_backend(_RUNS).compile_devices(self._optimised(module), grid)

    def dumping(self, folder: Path, passes: str = ".*") -> OptBackend:
        """This backend, which writes the program after each pass that changes it.

        Args:
            folder: gets the dump, created where it is missing.
            passes: which ones; the programs are small, and all are written.
        """
        return replace(self, folder=folder)

    def _optimised(self, module: Module) -> Module:
        pipeline = self.pipeline
        if pipeline is None:
            raise UsageError("backend opt: say which passes, as in opt:passes=simplify+cse")
        copy = clone_module(module).module
        dump = DumpModules(self.folder) if self.folder is not None else None
        listeners: list[Listener] = [dump] if dump is not None else []
        manager = PassManager(Context(evaluate=evaluate_constant), listeners)
        if dump is not None:
            dump.begin(copy)
        if pipeline.items:
            self._guarded(lambda: manager.run(copy, pipeline))
        if dump is not None:
            dump.end(copy)
        return copy

    def _guarded(self, run: Callable[[], _T]) -> _T:
        """What a pass does to a program that is valid is its own fault."""
        try:
            return run()
        except VerificationError as error:
            raise BackendCrashed("opt", f"a pass made the program invalid: {error.message}") from error
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise BackendCrashed("opt", f"a pass failed: {type(error).__name__}: {error}") from error
