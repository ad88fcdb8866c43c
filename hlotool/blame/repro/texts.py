"""The texts of a bundle: its README, an issue for openxla/xla, and a regression test.

The README says what the bundle is, whether it triggers, and what each file holds; the issue what is wrong,
the program and its arguments, how to run it, and versions. The test is a pytest file that fails as expected
until the fault is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hlotool.inputs.captured import read_arguments, read_device_arguments
from hlotool.inputs.given import npz_arrays
from hlotool.ir.arrays import Array
from hlotool.ir.printed_literals import array_text
from hlotool.ir.types import ArrayShape
from hlotool.judge.comparison import format_index
from hlotool.parser.reader import parse_module
from hlotool.runs.leaves import array_leaves, output_records

if TYPE_CHECKING:
    from hlotool.blame.repro.bundle import Bundle

#: Longer programs are attached, not quoted.
_QUOTED = 6000
#: Arguments of more elements are described.
_WRITTEN_OUT = 64


def issue_text(bundle: Bundle) -> str:
    """The text of `issue.md`: the report to paste into a bug tracker."""
    return "\n".join(_lines(bundle)) + "\n"


def _lines(bundle: Bundle) -> Iterator[str]:
    yield from headline(bundle)
    yield from _program(bundle)
    yield from _arguments(bundle)
    yield from ("", "## How to run it", "", *how_to_run(bundle))
    if bundle.evidence:
        yield from ("", "## Why this is believed", "")
        yield from (f"- {line}" for line in bundle.evidence)
    yield from ("", "## Versions", "")
    versions = dict(bundle.versions)
    if bundle.trigger is not None and bundle.trigger.compiler:
        versions["compiler"] = bundle.trigger.compiler
    yield from (f"- {name}: {version}" for name, version in versions.items())


def headline(bundle: Bundle) -> Iterator[str]:
    """What is wrong, how, and whether it triggers."""
    yield f"# {bundle.title}"
    yield ""
    yield f"{bundle.signature}: {bundle.reason}"
    if bundle.element:
        yield from ("", f"Worst element of {bundle.element}.")
    if bundle.trigger is not None:
        said = bundle.trigger.summary
        yield ""
        yield f"**{said[:1].upper()}{said[1:]}.**"


def _program(bundle: Bundle) -> Iterator[str]:
    name = bundle.culprit.get("pass") or "the compiler"
    if bundle.kind == "stages":
        yield from _quoted(f"Before {name}", bundle.program, "repro.hlo")
        yield from _quoted(f"After {name}, which computes other values", bundle.after, "repro.after.hlo")
        yield from _to_blame(bundle)
        return
    yield from _quoted("The program", bundle.program, "repro.hlo")
    if bundle.pass_after:
        yield from _quoted(f"What {name} was given in the dump", bundle.pass_before, "pass.before.hlo")
        yield from _quoted(
            f"What {name} made of it, which computes other values", bundle.pass_after, "pass.after.hlo"
        )
        yield from _to_blame(bundle)
    if bundle.kernel:
        yield from _quoted("The part of the compiled program that is wrong", bundle.kernel, "kernel.hlo")


def _arguments(bundle: Bundle) -> Iterator[str]:
    """The values of small arrays; shapes and ranges of others."""
    if not bundle.inputs:
        return
    module, given = parse_module(bundle.program), npz_arrays(bundle.inputs)
    rows: Sequence[Sequence[Any]] = (
        read_device_arguments(given, module, len(bundle.grid), "inputs.npz")
        if bundle.is_per_device
        else (read_arguments(given, module, "inputs.npz"),)
    )
    yield from ("", "## Arguments", "", "```")
    for device, row in enumerate(rows):
        on = f" on device {device}" if bundle.is_per_device else ""
        for parameter, value in zip(module.entry.parameters, row):
            for index, shape, array in array_leaves(parameter.shape, value):
                part = format_index(index) if index else ""
                small = array.size <= _WRITTEN_OUT
                text = array_text(array, shape.element_type) if small else _range(shape, array)
                yield f"{parameter.name}{part}{on} = {shape.logical_text()} {text}"
    yield "```"


def _range(shape: ArrayShape, array: Array) -> str:
    [summary] = output_records(shape, array)
    known = [] if summary.minimum is None else [f"from {summary.minimum:.6g} to {summary.maximum:.6g}"]
    odd = [f"{count} {name}" for count, name in ((summary.nan, "NaN"), (summary.inf, "infinite")) if count]
    return ", ".join([*known, *odd, "see inputs.npz"])


def _to_blame(bundle: Bundle) -> Iterator[str]:
    """Which instructions of what the pass made are wrong, and inside of which calls."""
    names = [f"`%{name}`" for name in bundle.culprit.get("instructions", ())]
    if names:
        place = "".join(f", in {call}" for call in bundle.culprit.get("place", ()))
        yield from ("", f"To blame is {', '.join(names)}{place}.")


def _quoted(title: str, text: str, file: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    if len(text) > _QUOTED:
        yield f"{len(text.splitlines())} lines: see `{file}`."
        return
    yield "```"
    yield text.strip()
    yield "```"


def how_to_run(bundle: Bundle) -> Iterator[str]:
    """The commands that show the failure."""
    yield "```"
    yield "hlotool repro verify . --trust" if bundle.command else "hlotool repro verify ."
    if bundle.command:
        yield f"{bundle.command} repro.hlo"
    elif bundle.exact:
        # The values that XLA's tools compare need not show it.
        alone = f"bisect repro.hlo --backend {bundle.compiler or 'xla'} --exact"
        pair = "prove repro.hlo repro.after.hlo"
        yield f"hlotool {pair if bundle.kind == 'stages' else alone}"
    elif bundle.is_for_tools:
        yield _with_tools_of_xla(bundle)
    else:
        given = " --inputs inputs.npz" if bundle.inputs else ""
        yield f"hlotool run repro.hlo --test {bundle.compiler}{given}"
    if bundle.is_for_tools and (passes := bundle.culprit.get("pass")):
        yield f"hlo-opt --passes={passes} repro.hlo"
    yield "```"


def _with_tools_of_xla(bundle: Bundle) -> str:
    """The command of XLA's own that runs the program; the one for several devices makes up its arguments."""
    grid = bundle.grid
    if len(grid) == 1:
        given = " --input_literals_file=inputs.pb" if bundle.inputs else ""
        return f"run_hlo_module --platform=CPU --reference_platform=Interpreter{given} repro.hlo"
    spread = ""
    if grid.partitions > 1:
        spread = " --is_spmd_partitioned_module" if bundle.is_per_device else " --use_spmd_partitioning"
    devices = f"--num_replicas={grid.replicas} --num_partitions={grid.partitions}{spread}"
    flag = f"XLA_FLAGS=--xla_force_host_platform_device_count={len(grid)}"
    return f"{flag} hlo_runner_main --device_type=host {devices} repro.hlo"


_PROGRAM = {
    "stages": "the program as the pass was given it",
    "backend": "the program that the compiler gets wrong",
    "result": "the program as given",
    "check": "the program that the command calls bad",
}


def readme_text(bundle: Bundle) -> str:
    """The text of `README.md`."""
    return "\n".join(_readme_lines(bundle)) + "\n"


def _readme_lines(bundle: Bundle) -> Iterator[str]:
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
        both += ", in exact arithmetic" if bundle.exact else ""
        yield f"`hlotool repro verify` compares what the dump holds: {both}."
    elif bundle.kind == "result":
        yield ""
        yield "`hlotool repro verify` compares what the program returned with what the reference does."


def _files(bundle: Bundle) -> Iterator[tuple[str, str]]:
    yield "`repro.hlo`", _PROGRAM[bundle.kind]
    if bundle.after:
        yield "`repro.after.hlo`", "what the pass made of it, which computes other values"
    if bundle.inputs:
        pb = ", `inputs.pb`" if bundle.is_for_tools and len(bundle.grid) == 1 else ""
        yield (
            f"`inputs.npz`{pb}",
            "its arguments" + (", also as XLA's `run_hlo_module` takes them" if pb else ""),
        )
    if bundle.outputs:
        yield "`outputs.npz`", "what it returned"
    if bundle.pass_after:
        yield (
            "`pass.before.hlo`, `pass.after.hlo`, `pass_inputs.npz`",
            "what the pass did in the dump",
        )
    if bundle.kernel:
        yield "`kernel.hlo`, `kernel_inputs.npz`", "the part of the compiled program that is wrong"
    yield "`repro.toml`", "what fails, how, and on what"
    yield "`test_repro.py`", "the same as a regression test"
    yield "`issue.md`", "the same as the text of an issue"


_TEST = '''\
"""{title}

Passes as an expected failure while the fault is there; fails (XPASS) when it is gone. Run: pytest {name}
"""

from pathlib import Path

import pytest

from hlotool.blame.repro.verify import verify


@pytest.mark.xfail(reason={reason!r}, strict=True)
def test_repro() -> None:
    found = verify(Path(__file__).parent{trust})
    assert found.fails is not None, f"nothing could be compared: {{found.reason}}"
    assert not found.fails, found.reason
'''


def test_text(bundle: Bundle) -> str:
    """The text of `test_repro.py`: a pytest test that fails as long as the bundle does."""
    title = bundle.title.replace("\\", "\\\\").replace('"""', "'''")
    # Who runs this file trusts what lies beside it.
    trust = ", trust=True" if bundle.command else ""
    return _TEST.format(title=title.rstrip("."), name="test_repro.py", reason=bundle.signature, trust=trust)
