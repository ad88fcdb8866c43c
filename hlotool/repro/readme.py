"""`README.md` of a bundle: what it is, whether it triggers, what each file holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlotool.repro.issue import headline, how_to_run

if TYPE_CHECKING:
    from hlotool.repro.bundle import Bundle

_PROGRAM = {
    "stages": "the program as the pass was given it",
    "backend": "the program that the compiler gets wrong",
    "result": "the program as given",
    "check": "the program that the command calls bad",
}


def readme_text(bundle: Bundle) -> str:
    """The text of `README.md`."""
    return "\n".join(_lines(bundle)) + "\n"


def _lines(bundle: Bundle) -> Iterator[str]:
    yield from headline(bundle)
    yield from _what_is_compared(bundle)
    yield from ("", "| file | holds |", "|---|---|")
    yield from (f"| {name} | {meaning} |" for name, meaning in _files(bundle))
    yield ""
    yield from how_to_run(bundle)


def _what_is_compared(bundle: Bundle) -> Iterator[str]:
    """What `verify` shows without a compiler that has the fault."""
    if bundle.kind == "stages":
        yield ""
        both = "the program before the pass and after it"
        both += ", as functions of real numbers" if bundle.exact else ""
        yield f"`hlotool repro verify` compares what the dump holds: {both}."
    elif bundle.kind == "result":
        yield ""
        yield "`hlotool repro verify` compares what the program returned with what the reference does."


def _files(bundle: Bundle) -> Iterator[tuple[str, str]]:
    yield "`repro.hlo`", _PROGRAM[bundle.kind]
    if bundle.after:
        yield "`repro.after.hlo`", "what the pass made of it, which computes something else"
    if bundle.inputs:
        pb = "" if bundle.kind == "check" or len(bundle.grid) > 1 else ", `inputs.pb`"
        yield (
            f"`inputs.npz`{pb}",
            "its arguments" + (", also as XLA's `run_hlo_module` takes them" if pb else ""),
        )
    if bundle.outputs:
        yield "`outputs.npz`", "what it returned"
    if bundle.pass_after:
        yield (
            "`pass.before.hlo`, `pass.after.hlo`, `pass_inputs.npz`",
            "what the accused pass did in the dump",
        )
    if bundle.kernel:
        yield "`kernel.hlo`, `kernel_inputs.npz`", "the part of the compiled program that is to blame"
    yield "`repro.toml`", "what fails, how, and on what"
    yield "`test_repro.py`", "the same as a regression test"
    yield "`issue.md`", "the same as the text of an issue"
