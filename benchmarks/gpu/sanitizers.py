"""The part of the suite that has compute-sanitizer watch kernels: bad addresses, races."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Any

from benchmarks.gpu.lines import main_command
from benchmarks.gpu.work import PYTEST, TESTS, Work
from hlotool.backends.registry import parse_spec

#: Tools of compute-sanitizer.
_CHECKS = ("memcheck", "racecheck")
#: Bytes that the cases move: kernels are 10 to 100 times slower when they are watched.
_SIZE = 1 << 20
#: Of compute-sanitizer, where it has found something.
_FOUND = 86


def sanitizers(work: Work) -> None:
    """compute-sanitizer on small cases and, if no case is named, on small tests."""
    path = os.pathsep.join([work.settings.environment["PATH"], "/usr/local/cuda/bin"])
    tool = shutil.which("compute-sanitizer", path=path)
    if tool is None:
        return work.skip("there is no compute-sanitizer on the PATH")
    if parse_spec(work.backend).name != "cuda":
        return work.skip(f"compute-sanitizer watches kernels of a GPU, not {work.backend}")
    options: list[object] = ["--backend", work.backend, "--size", _SIZE]
    watched = {"cases": main_command("measure", *options, "watched", *work.settings.cases)}
    if TESTS.is_dir() and not work.settings.cases:
        watched["tests"] = [sys.executable, "-m", "pytest", *PYTEST, str(TESTS), "-k", "small"]
    named = [(f"{check} on {title}", check, c) for title, c in watched.items() for check in _CHECKS]
    for name, check, command in named:
        if work.part.get(name, {}).get("status") is not None:
            continue  # an earlier run has finished it
        work.part[name] = _watch([tool, "--tool", check], command, work)
        work.save()
        if work.part[name]["unsupported"]:
            return work.skip("compute-sanitizer does not support this device, or what virtualises it")
    late = [name for name, _, _ in named if work.part[name]["status"] is None]
    wrong = [name for name, _, _ in named if work.part[name]["wrong"]]
    unfinished = f"no time left for {', '.join(late)}" if late else None
    work.judge(unfinished, f"see {', '.join(wrong)}" if wrong else None)
    return None


def _watch(tool: list[str], command: list[str], work: Work) -> dict[str, Any]:
    """What one tool says of one command."""
    flags = ["--error-exitcode", str(_FOUND), "--target-processes", "all"]
    code, output = work.run([*tool, *flags, *command])
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", output)
    return {
        "status": code,
        "summary": summary[-1] if summary else output[-500:],
        # A case that failed has said so in a line of JSON.
        "wrong": bool(code) or '"failed"' in output,
        "unsupported": "Device not supported" in output,
    }
