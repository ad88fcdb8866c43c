"""`--isolate_instructions`: every instruction by itself. Runs in a worker process.

XLA's tool gives each instruction random operands; here they get what the program gives them.
XLA: xla/tools/run_hlo_module.cc (RunIsolatedAndCompare).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from hlotool.errors import BackendFailed, HlotoolError, Unsupported
from hlotool.findings.records import Record
from hlotool.locate.execution import execute, on_one_device
from hlotool.locate.isolation import Alone, Isolation
from hlotool.locate.store import Budget
from hlotool.values.generate import generate_inputs
from hlotool.xla_tools.iteration import Run, program_of

#: Of the time limit: what recording and comparing may take each.
_SHARE = 0.4


class Tested(Record, frozen=True, kw_only=True):
    """An instruction.

    Attributes:
        name: of it.
        status: MATCHED, MISMATCH, COMPILATION ERROR, RUNTIME ERROR or DIDN'T RUN, as XLA's tool calls them.
        error: in one line.
    """

    name: str
    status: str
    error: str = ""


class Isolated(Record, frozen=True, kw_only=True):
    """All of a program.

    Attributes:
        instructions: in the order in which they run.
        error: why there are none.
    """

    instructions: list[Tested] = []
    error: str = ""


def run(task: Run) -> Isolated:
    """Run the program on the reference, and then each instruction on the test platform.

    Raises:
        MemoryError: there is not enough of it.
        BackendFailed: this process is of no more use.
    """
    try:
        reference = program_of(task.module, "numpy")
        if reference.runner.copies > 1:
            raise Unsupported("instructions of programs for several devices cannot be run alone")
        arguments: Sequence[Any] = generate_inputs(reference.module, task.options.seed).values
        budget = Budget(seconds=_SHARE * task.options.timeout)
        with closing(execute(on_one_device(reference.module, arguments), budget)) as execution:
            isolation = Isolation(execution, task.options.backend, _SHARE * task.options.timeout)
            return Isolated(instructions=[_tested(alone) for alone in isolation.each()])
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return Isolated(error=str(error))


def _tested(alone: Alone) -> Tested:
    if alone.error is None:
        return Tested(name=alone.instruction.name, status="MISMATCH" if alone.is_wrong else "MATCHED")
    status = "RUNTIME ERROR" if isinstance(alone.error, BackendFailed) else "DIDN'T RUN"
    return Tested(name=alone.instruction.name, status=status, error=str(alone.error).splitlines()[0])
