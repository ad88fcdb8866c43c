"""Listeners: printing modules around passes, and writing them to files as XLA names them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from hlotool.findings.files import writing
from hlotool.ir.module import Module
from hlotool.ir.printer import legal_name
from hlotool.passes.manager import START

#: In `PrintModules`: every pass.
ALL = "all"
#: XLA leaves the module's name out when the file name would become longer.
_LONGEST_NAME = 255


@dataclass(slots=True)
class PrintModules:
    """Prints the module around passes, each under a line that says where.

    Attributes:
        write: takes the text.
        before_passes: names of passes, or `all`.
        after_passes: likewise; passes that changed nothing are passed over.
    """

    write: Callable[[str], object]
    before_passes: Collection[str] = ()
    after_passes: Collection[str] = ()

    def started(self, pipeline: str, first: str, module: Module) -> None:
        """Nothing: the program is printed around passes, not at the start of a pipeline."""

    def before(self, pipeline: str, name: str, module: Module) -> None:
        if name in self.before_passes or ALL in self.before_passes:
            self.write(f"// *** before {name} ***\n{module.to_text()}")

    def after(self, pipeline: str, name: str, following: str, module: Module, changed: bool) -> None:
        if changed and (name in self.after_passes or ALL in self.after_passes):
            self.write(f"// *** after {name} ***\n{module.to_text()}")


@dataclass(slots=True)
class DumpModules:
    """Writes the module at the start of pipelines and after passes that changed it, as `--xla_dump_to` does.

    The files are a dump like any other: `hlotool run` and `hlotool bisect` take their folder.

    Attributes:
        folder: made when it does not exist.
        number: NNNN of `module_NNNN`.
    """

    folder: Path
    number: int = 0
    _step: int = field(default=0, init=False)

    def begin(self, module: Module) -> None:
        """Write the program as it was given."""
        self._write(module, "before_optimizations")

    def end(self, module: Module) -> None:
        """Write the program as the passes left it."""
        self._write(module, "hlotool_after_optimizations")

    def started(self, pipeline: str, first: str, module: Module) -> None:
        self._write_step(module, pipeline, START, first)

    def before(self, pipeline: str, name: str, module: Module) -> None:
        """What is before a pass was written after the last one."""

    def after(self, pipeline: str, name: str, following: str, module: Module, changed: bool) -> None:
        if changed:
            self._write_step(module, pipeline, name, following)

    def _write_step(self, module: Module, pipeline: str, name: str, following: str) -> None:
        self._write(module, f"{self._step:04}.{pipeline}.after_{name}.before_{following}")
        self._step += 1

    def _write(self, module: Module, label: str) -> None:
        name = f"module_{self.number:04}.{legal_name(module.name)}.{label}.txt"
        if len(name) > _LONGEST_NAME:
            name = f"module_{self.number:04}.{label}.txt"
        with writing(self.folder / name):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(module.to_text(), encoding="utf-8")
