"""What `hlotool run` says of pairs.

A fault is seen where the verdict of its pair has the exit status 1, a mismatch or a finding, nowhere else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.adversary.cases import Subject
from hlotool.judge.verdicts import Verdict


@dataclass
class Said:
    """What a run says of one pair.

    Attributes:
        verdict: the gravest of its rows.
        code: exit status that this verdict has.
        reason: of that row.
        coverage: "covered of decisions", as reported.
        sets: further sets that were run.
        leaves: verdict of each output.
        first: the first wrong instruction, if one is named.
    """

    verdict: str
    code: int
    reason: str
    coverage: str
    sets: int
    leaves: list[str] = field(default_factory=list)
    first: str = ""

    @property
    def seen(self) -> bool:
        """Whether the command ends with 1 for this pair."""
        return self.code == 1


def write_pair(folder: Path, name: str, before: str, after: str, subject: Subject) -> None:
    """Two texts of a program under the names that XLA gives them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.before_optimizations.txt").write_text(before)
    (folder / f"{name}.{subject.stage}.txt").write_text(after)
    if subject.options:
        (folder / f"{name}.debug_options").write_text(subject.options)


def ask(folder: Path, *options: str, only: str = "") -> dict[str, Said]:
    """`hlotool run` on a folder, by module.

    Raises:
        RuntimeError: the command printed no record.
    """
    command = [
        sys.executable,
        "-m",
        "hlotool",
        "run",
        str(folder),
        "--json",
        "--jobs",
        "1",
        "--no-cache",
        "--no-resume",
        "--no-config",
        *options,
    ]
    if only:
        command += ["--only", only]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(os.environ.get("PYTHONPATH", ROOT)).resolve())},
    )
    try:
        record = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr[-1500:]}") from error
    found: dict[str, Said] = {}
    for row in record["modules"]:
        said = _said(row)
        if row["name"] not in found or _grave(said) > _grave(found[row["name"]]):
            found[row["name"]] = said
    return found


def _grave(said: Said) -> int:
    return {1: 5, 4: 4, 5: 3, 2: 2, 3: 1, 0: 0}[said.code]


def _said(row: dict[str, Any]) -> Said:
    coverage = row.get("coverage") or {}
    divergence = row.get("divergence") or {}
    actual = divergence.get("actual") or {}
    return Said(
        row["verdict"],
        int(Verdict(row["verdict"]).exit_code),
        row.get("reason") or "",
        f"{coverage['covered']} of {coverage['decisions']}" if coverage else "unknown",
        len((row.get("inputs") or {}).get("sets") or []),
        [leaf["verdict"] for leaf in row.get("leaves") or []],
        str(actual.get("instruction") or actual.get("name") or ""),
    )
