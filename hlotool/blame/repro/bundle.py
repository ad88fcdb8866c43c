"""What a bundle holds, and its files.

| file | holds |
|---|---|
| `repro.hlo` | the program: as it was before the accused pass, or as given to the backend |
| `repro.after.hlo` | what the accused pass made of it |
| `pass.before.hlo`, `pass.after.hlo`, `pass_inputs.npz` | what it did in the dump, beside a smaller program |
| `kernel.hlo`, `kernel_inputs.npz` | the part of the compiled program that is to blame |
| `inputs.npz` | the arguments, `arg_0`, `arg_1`, …; where devices have their own, `arg_0@0`, `arg_0@1`, … |
| `inputs.pb` | the same for XLA's `run_hlo_module --input_literals_file` |
| `outputs.npz` | what the program really returned |
| `repro.toml` | what fails and how; versions |
| `README.md` | what all this is, whether it triggers, and how to run it |
| `test_repro.py` | the same as a regression test |
| `issue.md` | the same as the text of an issue |
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from hlotool.blame.bisection.records import TriggerRecord
from hlotool.errors import DumpError
from hlotool.inputs.captured import read_arguments
from hlotool.inputs.given import npz_arrays
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.types import ShapeIndex
from hlotool.parser.reader import parse_module
from hlotool.system.files import write_over
from hlotool.system.paths import read_toml, read_whole, writing
from hlotool.system.records import legible

SCHEMA = "hlotool.repro/1"

#: What is compared with what: two programs on the reference; a program on the reference and on another
#: backend; a program on the reference and what it really returned; a program and a command's opinion of it.
Kind = Literal["stages", "backend", "result", "check"]

PROGRAM, AFTER = "repro.hlo", "repro.after.hlo"
PASS_BEFORE, PASS_AFTER, PASS_INPUTS = "pass.before.hlo", "pass.after.hlo", "pass_inputs.npz"
KERNEL, KERNEL_INPUTS = "kernel.hlo", "kernel_inputs.npz"
INPUTS, TOOL_INPUTS, OUTPUTS, FACTS = "inputs.npz", "inputs.pb", "outputs.npz", "repro.toml"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A failure with all that is needed to see it again.

    Attributes:
        kind: what is compared with what.
        title: in one line.
        verdict: of the comparison.
        signature: how it fails: kind and pattern.
        reason: the verdict in one line.
        program: HLO text of the program.
        after: HLO text of what a pass made of it.
        pass_before: HLO text of what the pass was given, where `program` is a smaller one.
        pass_after: HLO text of what it made of that.
        pass_inputs: arguments of both, as the bytes of an .npz file.
        kernel: HLO text of the part to blame.
        kernel_inputs: its arguments, as the bytes of an .npz file.
        inputs: the arguments, likewise.
        outputs: what the program really returned, likewise.
        reference: backend that gives the expected values.
        backend: backend in question.
        command: that judges a program, in bundles of kind `check`.
        culprit: what is accused: level, pass, stage, instructions, source line.
        evidence: why.
        versions: of everything that took part.
        wrong: shape indices of the wrong outputs; None where `signature` is what a smaller program shares
            with the one that it was made from, which says nothing of outputs.
        trigger: whether the fault shows on a compiler; None where that is not the question.
        element: the worst one with its expected and its actual value; empty where none is known.
        tolerance: `rtol` and `atol` that the user set.
        exact: the programs, or the program and what a compiler makes of it, are other functions of real
            numbers; how far values are apart does not count.
        opaque: custom calls that cannot be executed have stand-ins.
    """

    kind: Kind
    title: str
    verdict: str
    signature: str
    reason: str
    program: str
    after: str = ""
    pass_before: str = ""
    pass_after: str = ""
    pass_inputs: bytes = b""
    kernel: str = ""
    kernel_inputs: bytes = b""
    inputs: bytes = b""
    outputs: bytes = b""
    reference: str = "numpy"
    backend: str = "numpy"
    command: str = ""
    culprit: dict[str, Any] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    wrong: tuple[ShapeIndex, ...] | None = None
    trigger: TriggerRecord | None = None
    element: str = ""
    tolerance: dict[str, float] = field(default_factory=dict)
    exact: bool = False
    opaque: bool = False

    @property
    def compiler(self) -> str:
        """The backend that shows the failure; empty where none is known to."""
        if self.kind == "backend":
            return self.backend
        trigger = self.trigger
        return trigger.backend if trigger is not None and trigger.status == "triggers" else ""

    @property
    def is_for_tools(self) -> bool:
        """Whether XLA's own command lines may show the failure."""
        return self.kind != "check" and self.compiler.partition(":")[0] in ("", "numpy", "xla")

    @property
    def grid(self) -> DeviceGrid:
        """The devices that the program is for."""
        header = self.program.partition("\n")[0]
        replicas, partitions = (_number(header, name) for name in ("replica_count", "num_partitions"))
        return DeviceGrid(replicas, partitions)

    @property
    def is_per_device(self) -> bool:
        """Whether each of several devices has arguments of its own."""
        return bool(self.inputs) and any("@" in name for name in npz_arrays(self.inputs))


def _number(header: str, name: str) -> int:
    """What the header of a module says of its replicas or partitions."""
    found = re.search(rf"\b{name}=(\d+)", header)
    return int(found[1]) if found else 1


def write_bundle(bundle: Bundle, folder: Path) -> None:
    """Write all files of a bundle; the folder is made.

    Raises:
        UsageError: a file cannot be written.
    """
    from hlotool.blame.repro.texts import issue_text, readme_text, test_text

    texts = {
        PROGRAM: bundle.program,
        AFTER: bundle.after,
        PASS_BEFORE: bundle.pass_before,
        PASS_AFTER: bundle.pass_after,
        KERNEL: bundle.kernel,
        "test_repro.py": test_text(bundle),
        "issue.md": issue_text(bundle),
        "README.md": readme_text(bundle),
    }
    arrays = {
        INPUTS: bundle.inputs,
        TOOL_INPUTS: _tool_inputs(bundle),
        OUTPUTS: bundle.outputs,
        PASS_INPUTS: bundle.pass_inputs,
        KERNEL_INPUTS: bundle.kernel_inputs,
    }
    contents = {name: legible(text).encode() for name, text in texts.items()} | arrays
    contents[FACTS] = legible(_facts_text(bundle)).encode()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # What makes it a bundle goes first and comes last, so that half of one is none.
        (folder / FACTS).unlink(missing_ok=True)
        for name, content in contents.items():
            if content:
                write_over(folder / name, [content])
            else:
                (folder / name).unlink(missing_ok=True)


def _tool_inputs(bundle: Bundle) -> bytes:
    """The arguments as XLA's tool takes them; none where it cannot show the failure."""
    if not bundle.inputs or not bundle.is_for_tools or len(bundle.grid) > 1:
        return b""
    from hlotool.parser.proto.executions import tool_inputs

    module = parse_module(bundle.program)
    return tool_inputs(module, read_arguments(npz_arrays(bundle.inputs), module, INPUTS))


def read_bundle(folder: Path) -> Bundle:
    """Read a bundle.

    Raises:
        DumpError: there is none, or a file is missing or damaged.
    """
    if not (folder / FACTS).exists():
        raise DumpError(f"{folder}: no repro bundle: it has no {FACTS}")
    facts = read_toml(folder / FACTS, _Facts, DumpError)
    try:
        texts = {name: _text(folder / name) for name in (AFTER, PASS_BEFORE, PASS_AFTER, KERNEL)}
        program = read_whole(folder / PROGRAM, DumpError).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DumpError(f"{folder}: a text of the bundle is not UTF-8: {error.reason}") from error
    failure, run = facts.failure, facts.run
    tolerance = {"rtol": run.rtol, "atol": run.atol}
    return Bundle(
        kind=facts.kind,
        title=facts.title,
        verdict=failure.verdict,
        signature=failure.signature,
        reason=failure.reason,
        program=program,
        after=texts[AFTER],
        pass_before=texts[PASS_BEFORE],
        pass_after=texts[PASS_AFTER],
        pass_inputs=_bytes(folder / PASS_INPUTS),
        kernel=texts[KERNEL],
        kernel_inputs=_bytes(folder / KERNEL_INPUTS),
        inputs=_bytes(folder / INPUTS),
        outputs=_bytes(folder / OUTPUTS),
        reference=run.reference,
        backend=run.backend,
        command=run.command,
        culprit=facts.culprit,
        evidence=tuple(failure.evidence),
        versions=facts.versions,
        wrong=failure.outputs,
        trigger=facts.trigger,
        element=failure.element,
        tolerance={name: value for name, value in tolerance.items() if value is not None},
        exact=run.exact,
        opaque=run.opaque,
    )


class _Failure(msgspec.Struct, frozen=True):
    """The table `failure` of a bundle's facts."""

    verdict: str = ""
    signature: str = ""
    reason: str = ""
    element: str = ""
    evidence: list[str] = []
    outputs: tuple[tuple[int, ...], ...] | None = None


class _Run(msgspec.Struct, frozen=True):
    """The table `run`."""

    reference: str = "numpy"
    backend: str = "numpy"
    command: str = ""
    rtol: float | None = None
    atol: float | None = None
    exact: bool = False
    opaque: bool = False


class _Facts(msgspec.Struct, frozen=True):
    """What a bundle's facts may hold; anything of another type is refused."""

    kind: Kind
    title: str = ""
    failure: _Failure = _Failure()
    run: _Run = _Run()
    culprit: dict[str, Any] = {}
    versions: dict[str, str] = {}
    trigger: TriggerRecord | None = None


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8")


def _bytes(path: Path) -> bytes:
    return read_whole(path, DumpError) if path.exists() else b""


def _facts_text(bundle: Bundle) -> str:
    """`repro.toml`."""
    tables: dict[str, dict[str, Any]] = {
        "failure": {
            "verdict": bundle.verdict,
            "signature": bundle.signature,
            "outputs": bundle.wrong,
            "reason": bundle.reason,
            "element": bundle.element,
            "evidence": list(bundle.evidence),
        },
        "run": {
            "reference": bundle.reference,
            "backend": bundle.backend,
            "command": bundle.command,
            **bundle.tolerance,
            **({"exact": True} if bundle.exact else {}),
            **({"opaque": True} if bundle.opaque else {}),
        },
        "trigger": {} if bundle.trigger is None else msgspec.to_builtins(bundle.trigger),
        "culprit": bundle.culprit,
        "versions": bundle.versions,
    }
    lines = [f'schema = "{SCHEMA}"', f'kind = "{bundle.kind}"', f"title = {_toml(bundle.title)}"]
    for name, table in tables.items():
        rows = [f"{key} = {_toml(value)}" for key, value in table.items() if value not in ("", None)]
        lines += ["", f"[{name}]", *rows] if rows else []
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A string, number, boolean or list; JSON's strings are TOML's basic strings."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
