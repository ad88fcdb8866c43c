"""What a bundle holds, and its files.

| file | holds |
|---|---|
| `repro.hlo` | the program: as it was before the accused pass, or as given to the backend |
| `repro.after.hlo` | what the accused pass made of it |
| `kernel.hlo`, `kernel_inputs.npz` | the part of the compiled program that is to blame |
| `inputs.npz` | the arguments, `arg_0`, `arg_1`, … |
| `outputs.npz` | what the program really returned |
| `repro.toml` | what fails and how; versions |
| `test_repro.py` | the same as a regression test |
| `issue.md` | the same as the text of an issue |
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from hlotool.errors import DumpError, UsageError

SCHEMA = "hlotool.repro/1"

#: What is compared with what: two programs on the reference; a program on the reference and on another
#: backend; a program on the reference and what it really returned; a program and a command's opinion of it.
Kind = Literal["stages", "backend", "result", "check"]

PROGRAM, AFTER, INPUTS, OUTPUTS, FACTS = (
    "repro.hlo",
    "repro.after.hlo",
    "inputs.npz",
    "outputs.npz",
    "repro.toml",
)


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
    """

    kind: Kind
    title: str
    verdict: str
    signature: str
    reason: str
    program: str
    after: str = ""
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


def write_bundle(bundle: Bundle, folder: Path) -> None:
    """Write all files of a bundle; the folder is made.

    Raises:
        UsageError: a file cannot be written.
    """
    from hlotool.repro.issue import issue_text
    from hlotool.repro.regression_test import test_text

    texts = {
        PROGRAM: bundle.program,
        AFTER: bundle.after,
        "kernel.hlo": bundle.kernel,
        FACTS: _facts_text(bundle),
        "test_repro.py": test_text(bundle),
        "issue.md": issue_text(bundle),
    }
    arrays = {INPUTS: bundle.inputs, OUTPUTS: bundle.outputs, "kernel_inputs.npz": bundle.kernel_inputs}
    contents = {name: text.encode() for name, text in texts.items()} | arrays
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            if content:
                (folder / name).write_bytes(content)
            else:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error}") from error


def read_bundle(folder: Path) -> Bundle:
    """Read a bundle.

    Raises:
        DumpError: there is none, or a file is missing or damaged.
    """
    try:
        facts = tomllib.loads((folder / FACTS).read_text(encoding="utf-8"))
        program = (folder / PROGRAM).read_text(encoding="utf-8")
    except OSError as error:
        raise DumpError(f"{folder}: no repro bundle: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise DumpError(f"{folder / FACTS}: {error}") from error
    kind: Any = facts.get("kind")
    if kind not in get_args(Kind):
        raise DumpError(f"{folder / FACTS}: unknown kind of bundle {kind!r}")
    failure, run = facts.get("failure", {}), facts.get("run", {})
    return Bundle(
        kind=kind,
        title=facts.get("title", ""),
        verdict=failure.get("verdict", ""),
        signature=failure.get("signature", ""),
        reason=failure.get("reason", ""),
        program=program,
        after=_text(folder / AFTER),
        kernel=_text(folder / "kernel.hlo"),
        inputs=_bytes(folder / INPUTS),
        outputs=_bytes(folder / OUTPUTS),
        reference=run.get("reference", "numpy"),
        backend=run.get("backend", "numpy"),
        command=run.get("command", ""),
        culprit=facts.get("culprit", {}),
        evidence=tuple(failure.get("evidence", ())),
        versions=facts.get("versions", {}),
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _facts_text(bundle: Bundle) -> str:
    """`repro.toml`."""
    tables: dict[str, dict[str, Any]] = {
        "failure": {
            "verdict": bundle.verdict,
            "signature": bundle.signature,
            "reason": bundle.reason,
            "evidence": list(bundle.evidence),
        },
        "run": {"reference": bundle.reference, "backend": bundle.backend, "command": bundle.command},
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
