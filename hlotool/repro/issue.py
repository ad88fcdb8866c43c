"""The text of an issue for openxla/xla: what is wrong, the program, how to run it, versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotool.repro.bundle import Bundle

#: Longer programs are attached, not quoted.
_QUOTED = 6000


def issue_text(bundle: Bundle) -> str:
    """The text of `issue.md`: the report to paste into a bug tracker."""
    return "\n".join(_lines(bundle)) + "\n"


def _lines(bundle: Bundle) -> Iterator[str]:
    yield f"# {bundle.title}"
    yield ""
    yield f"{bundle.signature}: {bundle.reason}"
    yield from _program(bundle)
    yield from _run(bundle)
    if bundle.evidence:
        yield from ("", "## Why this is believed", "")
        yield from (f"- {line}" for line in bundle.evidence)
    yield from ("", "## Versions", "")
    yield from (f"- {name}: {version}" for name, version in bundle.versions.items())


def _program(bundle: Bundle) -> Iterator[str]:
    if bundle.kind == "stages":
        name = bundle.culprit.get("pass") or "the compiler"
        yield from _quoted(f"Before {name}", bundle.program, "repro.hlo")
        yield from _quoted(f"After {name}, which computes something else", bundle.after, "repro.after.hlo")
        return
    yield from _quoted("The program", bundle.program, "repro.hlo")
    if bundle.kernel:
        yield from _quoted("The part of the compiled program that is to blame", bundle.kernel, "kernel.hlo")


def _quoted(title: str, text: str, file: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    if len(text) > _QUOTED:
        yield f"{len(text.splitlines())} lines: see `{file}`."
        return
    yield "```"
    yield text.strip()
    yield "```"


def _run(bundle: Bundle) -> Iterator[str]:
    yield from ("", "## How to run it", "")
    if bundle.inputs:
        yield "The arguments are in `inputs.npz`; XLA's tool makes up its own."
        yield ""
    yield "```"
    yield "hlotool repro verify ."
    if bundle.command:
        yield f"{bundle.command} repro.hlo"
    else:
        yield "run_hlo_module --platform=CPU --reference_platform=Interpreter repro.hlo"
    if passes := bundle.culprit.get("pass"):
        yield f"hlo-opt --passes={passes} repro.hlo"
    yield "```"
