"""What a bundle from somebody else would run on this machine besides the programs in it.

Programs are data: backends execute them in processes of hlotool's own. A command is not, nor is a backend
that names an interpreter, or flags of XLA that name files to read and to write.
"""

from __future__ import annotations

from hlotool.backends.registry import BUILT_IN, backend_options
from hlotool.backends.spec import parse_spec
from hlotool.errors import UsageError
from hlotool.repro.bundle import Bundle

#: Options of built-in backends that name what is run.
_UNSAFE = frozenset({"python"})


def objection(bundle: Bundle, backend: str | None) -> str:
    """Why a bundle is not run unless it is trusted; empty where nothing speaks against it.

    Args:
        bundle: in question.
        backend: what the user names instead of the backend in the bundle.
    """
    if bundle.kind == "check":
        return f"it would run the command {bundle.command!r} here: --trust allows that"
    for spec in (bundle.reference, backend or bundle.backend):
        if spec != backend and (option := _unsafe_option(spec)):
            return f"its backend {spec!r} sets {option!r}: --trust allows that, --backend takes another one"
    return ""


def _unsafe_option(text: str) -> str:
    """The first option of a backend that is more than a choice between ways to compute."""
    try:
        spec = parse_spec(text)
        known = {form.partition("=")[0] for form in backend_options(text)} - _UNSAFE
    except UsageError:
        # That there is no such backend is said when it is asked for.
        return ""
    is_ours = spec.name in BUILT_IN
    return next((key for key in spec.options if not is_ours or key not in known), "")
