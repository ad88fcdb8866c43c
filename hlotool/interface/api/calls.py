"""How a call begins and goes on: its options, listeners for its steps, errors and Ctrl-C, the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotool.errors import BackendUnavailable, ExitCode, HlotoolError, UsageError
from hlotool.runs.options.declared import Arguments, option
from hlotool.runs.options.replaying import Replays, SeveralBackends

if TYPE_CHECKING:
    from hlotool.blame import steps
    from hlotool.interface.report import fuzz_progress
    from hlotool.runs.fleet import batch
    from hlotool.runs.options.kept import RunOptions
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

    def replaying(self, tasks: Sequence[Task], done: int = 0) -> AbstractContextManager[batch.Listener]:
        """Listens to a batch of modules; `done` others of the same whole are behind."""
        from hlotool.runs.fleet.batch import Silent

        return nullcontext(Silent())

    def searching(self) -> AbstractContextManager[steps.Listener]:
        """Listens to the steps of a search."""
        from hlotool.blame.steps import Silent

        return nullcontext(Silent())

    def counting(self, total: int, noun: str) -> AbstractContextManager[Callable[[str, str], None]]:
        """A function to call with the name of each of `total` things that is done, and its fault if any."""
        return nullcontext(lambda name, wrong: None)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """What takes a while without steps goes on within it."""
        return nullcontext()

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

    course: Course = option(doc="is informed of progress", default=QUIET, typed=False)


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


#: Backends whose kernels are generated, which round narrow floats more or less often.
_GENERATED = ("cuda", "cuda-emu")


def options_from(given: Mapping[str, Any], **chosen: object) -> RunOptions:
    """The options of a replay.

    Args:
        given: arguments by name, as `replay` takes them; those that are no such option are left out.
        chosen: in place of some of them.

    Raises:
        UsageError: an argument is impossible.
    """
    from hlotool.runs.options.kept import RunOptions

    fields = RunOptions.__struct_fields__
    known = {name: one.taken(given[name]) for name, one in Replays.options.items() if name in given}
    kept = {name: value for name, value in known.items() if name in fields}
    return RunOptions(**(kept | chosen))


def options_of(asked: Arguments, **chosen: object) -> RunOptions:
    """The same of a call whose arguments are checked already."""
    from hlotool.runs.options.kept import RunOptions

    known = {name: value for name, value in vars(asked).items() if name in RunOptions.__struct_fields__}
    if isinstance(asked, SeveralBackends):
        chosen |= chosen_backends(asked.reference, asked.backend, asked.compare, asked.precision)
    return RunOptions(**(known | chosen))


def chosen_backends(
    reference: str, backend: str, compare: Sequence[str], precision: str | None
) -> dict[str, object]:
    """What the choices come to: `reference`, `backend` and `compare` of the options of a run.

    Raises:
        UsageError: `compare` lists too few backends, or goes with arguments that say the same; `precision`
            is given, and no kernels are generated.
    """
    names = _compared(reference, backend, compare) or (reference, backend)
    if precision:
        names = _with_precision(names, precision)
    first, *others = names
    return {"reference": first, "backend": others[0], "compare": names if compare else ()}


def _compared(reference: str, backend: str, compare: Sequence[str]) -> tuple[str, ...]:
    """The backends of `compare`, each once; none where it is not given."""
    if not compare:
        return ()
    from hlotool.backends.registry import split_specs

    if (reference, backend) != ("numpy", "numpy"):
        raise UsageError("--compare names all backends: give it without --reference and --backend")
    first, *others = split_specs(",".join(compare))
    if not others:
        raise UsageError(f"--compare {','.join(compare)}: there is nothing to compare it with")
    return first, *dict.fromkeys(others)


def _with_precision(names: tuple[str, ...], precision: str) -> tuple[str, ...]:
    """The same backends; those that generate kernels with the option `precision`."""
    from hlotool.backends.registry import BackendSpec, parse_spec

    specs = [parse_spec(name) for name in names]
    if not any(spec.name in _GENERATED for spec in specs):
        raise UsageError(f"--precision is for {' and '.join(_GENERATED)}, and neither is compared")
    wanted = {"precision": precision}
    return tuple(
        str(BackendSpec(spec.name, {**spec.options, **wanted})) if spec.name in _GENERATED else str(spec)
        for spec in specs
    )


def check_backends(options: RunOptions) -> dict[str, BackendUnavailable]:
    """Refuse backends that do not exist, or not with these options, before anything is run on them.

    Returns:
        of several that are compared, those that cannot be used here.

    Raises:
        UsageError: the user's mistake.
        BackendUnavailable: something that the reference needs, or the only other backend, is missing.
    """
    from hlotool.backends.registry import get_backend

    missing: dict[str, BackendUnavailable] = {}
    for name in options.backends:
        if name == "numpy":
            continue
        try:
            get_backend(name)
        except BackendUnavailable as error:
            if name == options.reference or not options.compare:
                raise
            missing[name] = error
    return missing
