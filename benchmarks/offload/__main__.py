"""Does `check` say of programs that offload arrays to the host what the compiler for a TPU says?

Programs are drawn (`jax_programs`, `stablehlo_programs`), compiled for a v5e by libtpu, and the text that
its dump begins with is checked: accepted or refused, why, and which instruction the message names.

    TPU_LIBRARY_PATH=libtpu.so python -m benchmarks.offload --seed 0 --count 40
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from hlotool.checks.catalogue import all_rules
from hlotool.checks.run import findings_of
from hlotool.parser.reader import parse_module

#: Variables without which libtpu looks for a TPU, or keeps its warnings to itself.
_ENVIRONMENT = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_STDERR_LOG_LEVEL": "0",
    "TPU_MIN_LOG_LEVEL": "0",
}
#: Rules whose errors say that the compiler refuses the program, or dies of it.
_REFUSALS = (
    "offload-output", "offload-condition", "offload-update", "offload-annotation", "offload-host-computation",
    "offload-branches",
)  # fmt: skip
_WARNINGS = ("offload-compute", "offload-slice")

#: What is part of a message and of no program.
_FRAME = re.compile(r"^[A-Z_]+: |^E\d+: \w+:\s*|\s*See https?:\S+.*$", re.DOTALL)
_DIED = re.compile(r"(?:Check failed|RET_CHECK).*")
_WARNED = re.compile(r"(Found an instruction|Encountered [\w-]+ on tensor) .*?(?=\. This is likely|\n|$)")


def main() -> int:
    """Print every disagreement, then shares; exit 1 where fewer than 99 in 100 agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="folder for programs and dumps")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        command = [sys.executable, "-m", "benchmarks.offload.compiled", str(folder)]
        command += [str(given.seed), str((given.count + 1) // 2)]
        subprocess.run(command, env=_ENVIRONMENT | os.environ, check=True, capture_output=True)
        return _report(folder)


def _report(folder: Path) -> int:
    counts: Counter[str] = Counter()
    for here in sorted(path.parent for path in folder.glob("*/answer.json")):
        answer = json.loads((here / "answer.json").read_text())
        if answer["outcome"] == "not drawn":
            counts["not drawn"] += 1
            continue
        theirs, ours = _theirs(here, answer), _ours(here)
        counts["programs"] += 1
        counts["refused"] += bool(theirs)
        if not theirs:
            counts["same answer"] += not ours
            counts["same message"] += not ours
        else:
            counts["same answer"] += bool(ours)
            counts["same message"] += _is_foreseen(theirs, ours)
        if bool(theirs) != bool(ours) or (theirs and not _is_foreseen(theirs, ours)):
            print(f"{here.name}: compiler: {theirs or 'compiles'}\n    check: {ours or 'no error'}")
        warned, foreseen = _warned(here), _findings(here, _WARNINGS, "warning")
        if not theirs:
            counts["warnings"] += len(warned)
            counts["warnings foreseen"] += len(warned & foreseen)
            counts["warnings that were none"] += len(foreseen - warned)
            if warned != foreseen:
                print(f"{here.name}: not foreseen {warned - foreseen}, false {foreseen - warned}")
    print(json.dumps(counts))
    return int(counts["same message"] < 0.99 * counts["programs"])


def _theirs(here: Path, answer: dict[str, str]) -> str:
    """Why the compiler makes nothing of it; empty where it compiles."""
    if answer["outcome"] == "compiles":
        return ""
    if answer["outcome"] == "died":
        found = _DIED.search((here / "stderr.log").read_text(errors="replace"))
        return found[0].strip() if found else answer["message"]
    message = answer["message"].replace(".clone]", "]")
    for _ in range(2):
        message = _FRAME.sub("", message)
    return message.strip()


def _is_foreseen(theirs: str, ours: set[str]) -> bool:
    """The same message with the same names, but where the compiler has none of its own.

    A loop's condition kills libtpu 0.0.42 where later ones explain; partitioned parameters lose their names.
    """
    if "tmp_shape_index" in theirs:
        return any("during while condition body" in message for message in ours)
    unnamed = re.compile(r'^Entry computation parameter "param(\.\d+)?"')
    if unnamed.match(theirs):
        return any(message.startswith("Entry computation parameter") for message in ours)
    return theirs in ours


def _ours(here: Path) -> set[str]:
    return _findings(here, _REFUSALS, "error")


def _findings(here: Path, rules: tuple[str, ...], severity: str) -> set[str]:
    [text] = (here / "dump").glob("*before_optimizations.txt")
    found = findings_of(parse_module(text.read_text()), [all_rules()[rule] for rule in rules])
    return {
        f.message.removesuffix(" Converting into host compute.").strip()
        for f in found
        if f.severity.value == severity
    }


def _warned(here: Path) -> set[str]:
    log = (here / "stderr.log").read_text(errors="replace")
    return {m[0].removesuffix(" Converting into host compute").strip() for m in _WARNED.finditer(log)}


if __name__ == "__main__":
    raise SystemExit(main())
