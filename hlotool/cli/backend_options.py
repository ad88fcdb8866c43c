"""Which backends a command compares: the options, and what they come to."""

from __future__ import annotations

import argparse

from hlotool.errors import UsageError

#: Backends whose kernels are generated, which round narrow floats more or less often.
_GENERATED = ("cuda", "cuda-emu")


def add_backend_options(group: argparse._ArgumentGroup) -> None:
    """`--reference`, `--backend`, `--compare`, `--precision`."""
    group.add_argument(
        "--reference", metavar="BACKEND", default="numpy", help="what runs the reference [numpy]"
    )
    group.add_argument(
        "--backend",
        "--test",
        metavar="BACKEND",
        default="numpy",
        help="what runs the tested stages: xla, xla:opt=0, … [numpy]",
    )
    group.add_argument(
        "--compare", metavar="BACKEND,...", default="", help="the reference, and all that are tested by it"
    )
    group.add_argument(
        "--precision", choices=("hlo", "wide"), help="of narrow floats inside of generated kernels [hlo]"
    )


def chosen_backends(arguments: argparse.Namespace) -> dict[str, object]:
    """What the options come to: `reference`, `backend` and `compare` of the options of a run.

    Raises:
        UsageError: `--compare` lists too few backends, or goes with options that say the same; `--precision`
            is given, and no kernels are generated.
    """
    names = _compared(arguments) or (arguments.reference, arguments.backend)
    if arguments.precision:
        names = _with_precision(names, arguments.precision)
    reference, *others = names
    compared = names if arguments.compare else ()
    return {"reference": reference, "backend": others[0], "compare": compared}


def _compared(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The backends of `--compare`, each once; none where it is not given."""
    if not arguments.compare:
        return ()
    from hlotool.backends.registry import split_specs

    if (arguments.reference, arguments.backend) != ("numpy", "numpy"):
        raise UsageError("--compare names all backends: give it without --reference and --backend")
    reference, *others = split_specs(arguments.compare)
    if not others:
        raise UsageError(f"--compare {arguments.compare}: there is nothing to compare it with")
    return reference, *dict.fromkeys(others)


def _with_precision(names: tuple[str, ...], precision: str) -> tuple[str, ...]:
    """The same backends; those that generate kernels with the option `precision`."""
    from hlotool.backends.spec import BackendSpec, parse_spec

    specs = [parse_spec(name) for name in names]
    if not any(spec.name in _GENERATED for spec in specs):
        raise UsageError(f"--precision is for {' and '.join(_GENERATED)}, and neither is compared")
    wanted = {"precision": precision}
    return tuple(
        str(BackendSpec(spec.name, {**spec.options, **wanted})) if spec.name in _GENERATED else str(spec)
        for spec in specs
    )
