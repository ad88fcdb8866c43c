"""Runs pipelines: verifies after each pass, measures, tells listeners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

from hlotool.errors import VerificationError
from hlotool.findings.records import Record
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify_or_raise
from hlotool.passes.base import Context, Pass
from hlotool.passes.pipeline import MOST_ROUNDS, Item, Pipeline


class PassRecord(Record, frozen=True, kw_only=True):
    """One run of one pass.

    Attributes:
        pipeline: it ran in.
        name: of the pass.
        changes: how often each transformation happened.
        instructions_before: in the whole module.
        instructions_after: likewise.
        seconds: it took.
    """

    pipeline: str
    name: str
    changes: dict[str, int]
    instructions_before: int
    instructions_after: int
    seconds: float


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
        listeners: told of each step.
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
