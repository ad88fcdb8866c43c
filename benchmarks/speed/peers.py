"""Asks a peer, in a process of its own, to run a module: `hlotool`, `xla`, `eval` or `evaluator`.

A fresh process for every module: whatever is loaded, built or warmed up on first use belongs to the single
shot. Only imports do not count.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from typing import Any, TypeAlias

import numpy as np

from benchmarks import ROOT
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.parser.reader import parse_module
from hlotool.system.pool import worker_environment

#: Seconds by name and possibly `outputs`, or why there is nothing.
Answer: TypeAlias = "dict[str, Any] | str"

_NEWER_ATTRIBUTES = re.compile(r", (result_accuracy|frontend_attributes|origin)=\{[^{}]*\}")


def ask(peer: str, text: str, arguments: list[Any], repeats: int, timeout: float) -> Answer:
    """What `peer_child` measured."""
    command = [sys.executable, "-m", "benchmarks.speed.peer_child"]
    # hlotool runs as its own workers do, and with bytecode. XLA's threads read none of these variables.
    environment = worker_environment(jobs=1) if peer == "hlotool" else dict(os.environ)
    # XLA takes what the processor has, and so shall BLAS, whatever it is told here for sums that last.
    for variable in ("PYTHONDONTWRITEBYTECODE", "OPENBLAS_CORETYPE"):
        environment.pop(variable, None)
    return _ask(command, (peer, text, arguments, repeats), timeout, environment)


def ask_evaluator(python: str, text: str, arguments: list[Any], timeout: float) -> Answer:
    """What `evaluator_child` measured, on text that its old parser reads."""
    options = PrintOptions(metadata=False, backend_config=False)
    module = parse_module(text)
    module.stack_frames = None
    older = _NEWER_ATTRIBUTES.sub("", print_module(module, options))
    if any(isinstance(a, tuple) for a in arguments):
        return "arguments are tuples"
    plain = [(str(a.dtype), a.shape, np.asarray(a).tobytes()) for a in arguments]
    return _ask([python, str(ROOT / "benchmarks/speed/evaluator_child.py")], (older, plain, 3), timeout)


def _ask(
    command: list[str], request: object, timeout: float, environment: dict[str, str] | None = None
) -> Answer:
    try:
        child = subprocess.run(
            command,
            input=pickle.dumps(request),
            capture_output=True,
            timeout=timeout,
            env=environment,
            cwd=ROOT,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout:.0f} s"
    if child.returncode or not child.stdout:
        return f"died with {child.returncode}"
    answer: Answer = pickle.loads(child.stdout)
    return answer
