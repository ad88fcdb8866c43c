"""Runs pipelines: verifies after each pass, measures, calls listeners that print or write modules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Protocol

from hlotool.errors import VerificationError
from hlotool.ir.module import Module
from hlotool.ir.printer import legal_name
from hlotool.ir.verifier import verify_or_raise
from hlotool.rewrite.passes.base import Context, Pass
from hlotool.rewrite.passes.pipeline import MOST_ROUNDS, Item, Pipeline
from hlotool.rewrite.passes.records import PassRecord
from hlotool.system.paths import writing


class Listener(Protocol):
    """Watches a pipeline at work; must not change the module."""

    def started(self, pipeline: str, first: str, module: Module) -> None:
        """A pipeline begins; its first pass is `first`."""

    def before(self, pipeline: str, name: str, module: Module) -> None:
        """A pass is about to run."""

    def after(self, pipeline: str, name: str, following: str, module: Module, changed: bool) -> None:
        """A pass (or a pipeline inside this one) has run; `following` comes next."""


#: What stands for "nothing" around the passes of a pipeline, as in XLA.
START, END = "pipeline-start", "pipeline-end"


@dataclass(slots=True)
class PassManager:
    """Runs pipelines on modules.

    Attributes:
        context: fuel and evaluator of all passes.
        listeners: called at each step.
        verify: check the module at the beginning and after every pass that changed it.
        runs: what was done so far.
    """

    context: Context = field(default_factory=Context)
    listeners: Sequence[Listener] = ()
    verify: bool = True
    runs: list[PassRecord] = field(default_factory=list)

    def run(self, module: Module, pipeline: Pipeline) -> bool:
        """Run all passes on `module`, in place.

        Returns:
            whether anything was changed.

        Raises:
            VerificationError: the module is wrong to begin with, or a pass broke it (it says which).
            HlotoolError: the options of a pass do not fit the module.
        """
        if self.verify:
            verify_or_raise(module)
        return self._pipeline(module, pipeline)

    def _pipeline(self, module: Module, pipeline: Pipeline) -> bool:
        changed = self._round(module, pipeline)
        rounds = 1
        while pipeline.until_stable and changed and rounds < MOST_ROUNDS:
            if not self._round(module, pipeline):
                break
            rounds += 1
        return changed

    def _round(self, module: Module, pipeline: Pipeline) -> bool:
        """Each item once."""
        names = [item.name for item in pipeline.items]
        self._tell(lambda listener: listener.started(pipeline.name, names[0], module))
        changed = False
        for item, following in zip(pipeline.items, [*names[1:], END]):
            own = self._item(module, pipeline, item)
            self._after(pipeline.name, item.name, following, module, own)
            changed |= own
        return changed

    def _item(self, module: Module, pipeline: Pipeline, item: Item) -> bool:
        if isinstance(item, Pipeline):
            return self._pipeline(module, item)
        return self._pass(module, pipeline.name, item)

    def _pass(self, module: Module, pipeline: str, item: Pass) -> bool:
        self._tell(lambda listener: listener.before(pipeline, item.name, module))
        context, before = self.context.for_pass(item.name), _count(module)
        start = perf_counter()
        item.run(module, context)
        run = PassRecord(
            pipeline=pipeline,
            name=item.name,
            changes=dict(context.changes),
            seconds=perf_counter() - start,
            instructions_before=before,
            instructions_after=_count(module),
        )
        self.runs.append(run)
        changed = bool(context.changes)
        if changed and self.verify:
            self._verify(module, item)
        return changed

    def _verify(self, module: Module, item: Pass) -> None:
        try:
            verify_or_raise(module)
        except VerificationError as error:
            message = f"pass {item.name} broke the module: {error.message}"
            raise VerificationError(error.rule, message, error.instruction, error.location) from error

    def _after(self, pipeline: str, name: str, following: str, module: Module, changed: bool) -> None:
        self._tell(lambda listener: listener.after(pipeline, name, following, module, changed))

    def _tell(self, what: Callable[[Listener], None]) -> None:
        for listener in self.listeners:
            what(listener)


def _count(module: Module) -> int:
    return sum(len(c.instructions) for c in module.computations)


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
