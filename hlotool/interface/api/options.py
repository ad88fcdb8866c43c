"""From the arguments of a call to the options that decide about its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlotool.errors import BackendUnavailable, UsageError
from hlotool.runs.options.declared import Arguments
from hlotool.runs.options.replaying import Replays, SeveralBackends

if TYPE_CHECKING:
    from hlotool.runs.options.kept import RunOptions

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
