"""How a call goes on: listeners for its steps; what errors and Ctrl-C do; the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, HlotoolError
from hlotool.runs.options.declared import Arguments, option

if TYPE_CHECKING:
    from hlotool.blame import steps
    from hlotool.interface.report import fuzz_progress
    from hlotool.runs.fleet import batch
    from hlotool.runs.task import Task
    from hlotool.system.records import ErrorRecord


class Course:
    """What accompanies a call; this one says nothing, raises errors, and lets Ctrl-C end the call.

    Attributes:
        keeps_errors: an error becomes part of the result, beside what was found until then.
        keeps_interrupts: so does Ctrl-C.
    """

    keeps_errors = False
    keeps_interrupts = False

    def replaying(self, tasks: Sequence[Task]) -> AbstractContextManager[batch.Listener]:
        """Listens to a batch of modules."""
        from hlotool.runs.fleet.batch import Silent

        return nullcontext(Silent())

    def searching(self) -> steps.Listener:
        """Listens to the steps of a search."""
        from hlotool.blame.steps import Silent

        return Silent()

    def counting(self, total: int, noun: str) -> Callable[[str, str], None]:
        """A function to call with the name of each of `total` things that is done, and its fault if any."""
        return lambda name, wrong: None

    def fuzzing(self, seconds: float) -> AbstractContextManager[fuzz_progress.Listener]:
        """Listens to a campaign of so many seconds."""
        from hlotool.interface.report.fuzz_progress import Silent

        return nullcontext(Silent())

    def working(self) -> None:
        """Workers begin: whatever takes time can be done beside them."""

    def forget(self, remove: Callable[[], None]) -> None:
        """The result is complete: `remove` deletes what an interrupted call would have gone on from."""
        remove()


#: Of calls that say nothing about it.
QUIET = Course()


class Accompanied(Arguments):
    """Of functions whose calls take long."""

    course: Course = option(doc="is told how it goes on", default=QUIET, typed=False)


@dataclass(slots=True)
class Ending:
    """Why a call ended early, if it did.

    Attributes:
        problem: the error that ended it.
        interrupted: the user did.
    """

    problem: HlotoolError | None = None
    interrupted: bool = False

    @property
    def error(self) -> ErrorRecord | None:
        """The error as records have it."""
        from hlotool.judge.failures import error_record

        return error_record(self.problem) if self.problem else None

    def exit_code(self, otherwise: ExitCode) -> ExitCode:
        """The exit code; `otherwise` for a call that came to its end."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return self.problem.exit_code if self.problem else otherwise


@contextmanager
def ending(course: Course) -> Iterator[Ending]:
    """What is found until an error or Ctrl-C is kept, where `course` says so; otherwise both are raised."""
    end = Ending()
    try:
        yield end
    except HlotoolError as problem:
        if not course.keeps_errors:
            raise
        end.problem = problem
    except KeyboardInterrupt:
        if not course.keeps_interrupts:
            raise
        end.interrupted = True
