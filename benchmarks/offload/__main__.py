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
from hlotool.checks.programs import findings_of
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
    "offload-branches", "offload-transpose",
)  # fmt: skip
_WARNINGS = ("offload-compute", "offload-slice")

#: What is part of a message and of no program.
_FRAME = re.compile(r"^[A-Z_]+: |^E\d+: \w+:\s*|\s*See https?:\S+.*$", re.DOTALL)
_DIED = re.compile(r"(?:Check failed|RET_CHECK).*")
_WARNED = re.compile(r"(Found an instruction|Encountered [\w-]+ on tensor) .*?(?=\. This is likely|\n|$)")
#: Where messages name instructions.
_NAMED = re.compile(
    r'(?<=starting from )[^\s)]+|(?<=\(")[^"]+|(?<=parameter ")[^"]+|\S+(?= does not move| will be converted)'
)
#: What becomes of a copy that the compiler gives a wrong shape (rule offload-transpose).
_WRONG_COPY = re.compile(
    r"ShapeUtil::Compatible|Bitcast cannot have different shape|Expected instruction to have shape equal"
)


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
        [dumped] = (here / "dump").glob("*before_optimizations.txt")
        text = dumped.read_text()
        theirs, ours = _theirs(here, answer), _findings(text, _REFUSALS, "error")
        is_same = _is_foreseen(theirs, ours, text) if theirs else not ours
        counts["programs"] += 1
        counts["refused"] += bool(theirs)
        counts["same answer"] += bool(theirs) == bool(ours)
        counts["same message"] += is_same
        if not is_same:
            print(f"{here.name}: compiler: {theirs or 'compiles'}\n    check: {ours or 'no error'}")
        if not theirs:
            _compare_warnings(here, text, counts)
    print(json.dumps(counts))
    return int(counts["same message"] < 0.99 * counts["programs"])


def _compare_warnings(here: Path, text: str, counts: Counter[str]) -> None:
    """Each with its instruction. Of several devices the partitioner renames what it does not replace by
    collectives: such a program has warnings or has none.
    """
    warned = _warned(here)
    foreseen = {m for m in _findings(text, _WARNINGS, "warning") if _WARNED.match(m)}
    if "num_partitions=" in text.split("\n", 1)[0]:
        warned, foreseen = ({"several devices"} if each else set() for each in (warned, foreseen))
    false = set(foreseen)
    missed = set()
    for message in sorted(warned, key=lambda m: m not in foreseen):
        found = sorted(m for m in false if _matches(message, m, text))
        false -= set(found[:1])
        missed |= set() if found else {message}
    counts["warnings"] += len(warned)
    counts["warnings foreseen"] += len(warned) - len(missed)
    counts["warnings that were none"] += len(false)
    if missed or false:
        print(f"{here.name}: not foreseen {missed}, false {false}")


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


def _is_foreseen(theirs: str, ours: set[str], text: str) -> bool:
    """The same message with the same names, but where the compiler has none of its own.

    A loop's condition kills libtpu 0.0.42 where later ones explain.
    """
    if "tmp_shape_index" in theirs:
        return any("during while condition body" in message for message in ours)
    if _WRONG_COPY.search(theirs):
        return any("transpose and reshape a tensor in host memory" in message for message in ours)
    return any(_matches(theirs, message, text) for message in ours)


def _matches(theirs: str, ours: str, text: str) -> bool:
    """The same words and names; what the compiler made itself or renamed has no name in the text."""
    pattern, end = "", 0
    for name in _NAMED.finditer(theirs):
        is_known = f"%{name[0]} = " in text
        pattern += re.escape(theirs[end : name.start()]) + (re.escape(name[0]) if is_known else r"[^\s\"]+")
        end = name.end()
    return re.fullmatch(pattern + re.escape(theirs[end:]), ours) is not None


def _findings(text: str, rules: tuple[str, ...], severity: str) -> set[str]:
    found = findings_of(parse_module(text), [all_rules()[rule] for rule in rules])
    return {
        f.message.removesuffix(" Converting into host compute.").strip()
        for f in found
        if f.severity.value == severity
    }


def _warned(here: Path) -> set[str]:
    """What the log warns of; of a slice it does so twice."""
    log = (here / "stderr.log").read_text(errors="replace")
    found = {m[0].removesuffix(" Converting into host compute").strip() for m in _WARNED.finditer(log)}
    slices = {m[1] for m in (re.search(r"(\S+) does not move", each) for each in found) if m}
    return {m for m in found if not any(m.startswith(f'Found an instruction ("{name}")') for name in slices)}


if __name__ == "__main__":
    raise SystemExit(main())
