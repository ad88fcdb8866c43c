"""What `hlotool reduce --json` and `hlotool extract --json` print."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord, ErrorRecord
from hlotool.replay.options import RunOptions
from hlotool.replay.records import InputsRecord


class ReduceRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool reduce --json` prints.

    Attributes:
        path: as given.
        options: that decide about the result.
        check: the command that judged the programs; empty when a backend did.
        inputs: where the arguments of the original come from.
        failure: how the program fails.
        reason: in one line.
        failure_rate: failures per run, when it does not fail always.
        instructions_before: of the original, parameters not counted.
        instructions_after: of what is left.
        program: HLO text of what is left.
        output: file that holds it, its arguments beside it as .npz; empty when none was asked for.
        passing: file of the nearest program seen that does not fail; empty when there is none.
        repro: folder of the repro bundle, empty when none was written.
        programs_judged: in this run and, if it goes on, in the interrupted one.
        notes: warnings, and what could not be tried.
        error: why the command came to nothing.
        interrupted: the user stopped it; the same command goes on.
    """

    schema: Literal["hlotool.reduce/1"] = "hlotool.reduce/1"
    versions: dict[str, str]
    path: str
    options: RunOptions
    check: str = ""
    inputs: InputsRecord | None = None
    failure: str = ""
    reason: str = ""
    failure_rate: float | None = None
    instructions_before: int = 0
    instructions_after: int = 0
    program: str = ""
    output: str = ""
    passing: str = ""
    repro: str = ""
    programs_judged: int = 0
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


class ExtractRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool extract --json` prints.

    Attributes:
        path: as given.
        instructions: that were asked for.
        program: HLO text of the new module.
        parameters: what each of its parameters stands for in the original.
        output: file that holds it; empty when none was asked for.
        inputs_file: file of the values that occurred; empty when there are no parameters, or no file.
        inputs: where the arguments of the original come from.
        size: instructions of the new module, parameters not counted.
        calls: how often the computation that they are part of was executed.
        notes: what was passed over.
    """

    schema: Literal["hlotool.extract/1"] = "hlotool.extract/1"
    path: str
    instructions: list[str]
    program: str
    parameters: list[str]
    output: str
    inputs_file: str
    inputs: InputsRecord | None
    size: int = 0
    calls: int = 1
    notes: list[str] = []
    exit_code: int
