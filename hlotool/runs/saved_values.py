"""`--save-values`: what instructions compute, as .npy files that plain NumPy can load, and what they are.

`values.json` beside the files says of each which instruction it is of, where that stands in the user's
program, and which layers (the frontend's name scopes) it is the result of. The program and its arguments lie
there, too, so that legal executions of it can be drawn later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from hlotool.backends.base import Probe, Value
from hlotool.backends.registry import get_backend
from hlotool.errors import InputDataError
from hlotool.facts.dataflow import source_of
from hlotool.facts.scopes import Scope, Scopes
from hlotool.inputs.captured import read_arguments, read_arrays
from hlotool.inputs.given import npz_bytes
from hlotool.ir.arrays import Array
from hlotool.ir.edit_programs import flattened
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.parser.reader import parse_module
from hlotool.runs.leaves import array_leaves, output_folder, save_array
from hlotool.runs.program import Program
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial
from hlotool.system.paths import inside, open_bytes, write_file
from hlotool.system.records import Record, SourceRecord, json_of

#: Of an instruction in a loop: the first so many calls are kept.
MOST_CALLS = 64
#: What lies beside the arrays.
INDEX, PROGRAM, ARGUMENTS = "values.json", "program.txt", "arguments.npz"


class ValueRecord(Record, frozen=True, kw_only=True):
    """One array that was computed.

    Attributes:
        file: beside the index.
        shape: such as `f32[4,8]`.
        call: how often its instruction had been executed before, where that is in a loop.
        scope: the layer in which it is computed, such as `Model/Dense_0`; empty outside of all.
        ends: the layers whose result it is, the innermost first.
        unfinished: the layer that goes on to apply something to it, such as a bias, until it is its result.
        source: its instruction, and where that comes from.
    """

    file: str
    shape: str
    call: int = 0
    scope: str = ""
    ends: list[str] = []
    unfinished: str = ""
    source: SourceRecord


class ValuesRecord(Record, frozen=True, kw_only=True):
    """What `--save-values` wrote of one program.

    Attributes:
        schema: name and version of this format.
        program: label of the program.
        reference: it is the one that the others are compared with.
        values: in the order in which they were computed.
    """

    schema: Literal["hlotool.values/1"] = "hlotool.values/1"
    program: str
    reference: bool = False
    values: list[ValueRecord] = []


def save_values(task: Task, trial: Trial, program: Program, is_reference: bool) -> list[str]:
    """Run a program once more on the reference and write what its instructions compute.

    A file is called `NAME.npy`; `NAME.0.1.npy` for an array in a tuple, `NAME@3.npy` for the value of the
    fourth call.

    Returns:
        notes: what was written, or why nothing was.

    Raises:
        UsageError: a file cannot be written.
    """
    root = task.options.save_values
    assert root is not None
    if program.runner.copies > 1 or program.whole is not None:
        return [f"--save-values: nothing of {program.label}, which runs on several devices"]
    names = task.module.title, trial.name, program.label, task.options.one_of_several
    folder = output_folder(root, *names)
    wanted = re.compile(task.options.values)
    values: list[ValueRecord] = []
    observed = Observed(program.module)

    def save(seen: Seen) -> None:
        value = seen.value
        if wanted.search(value.source.instruction) or wanted.search(value.source.op_name):
            save_array(inside(folder, value.file), seen.array, seen.shape.element_type)
            values.append(value)

    get_backend("numpy").compile(observed.module).run(trial.arguments, observed.probe(save))
    index = ValuesRecord(program=program.label, reference=is_reference, values=values)
    write_file(inside(folder, INDEX), [json_of(index)])
    write_file(inside(folder, PROGRAM), [program.module.to_text().encode("utf-8", "surrogateescape")])
    write_file(inside(folder, ARGUMENTS), [npz_bytes(trial.arguments)])
    saved = {value.source.instruction for value in values}
    notes = [f"values of {len(saved)} instructions of {program.label} are in {folder}"]
    if dropped := len(saved & observed.dropped):
        notes.append(f"of {dropped} instructions in loops, the first {MOST_CALLS} calls")
    return notes


def read_index(folder: str) -> ValuesRecord:
    """What lies in a folder that `save_values` wrote; raises InputDataError."""
    path = inside(folder, INDEX)
    try:
        with open_bytes(path) as file:
            return msgspec.json.decode(file.read(), type=ValuesRecord)
    except msgspec.DecodeError as error:
        raise InputDataError(f"{path}: {error}") from error


def read_program(folder: str) -> tuple[Module, Sequence[Any]]:
    """The program of such a folder and its arguments; raises HlotoolError."""
    path = inside(folder, PROGRAM)
    with open_bytes(path) as file:
        module = parse_module(file.read().decode("utf-8", "surrogateescape"), path)
    arguments = inside(folder, ARGUMENTS)
    return module, read_arguments(read_arrays(arguments, module), module, arguments)


@dataclass(frozen=True, slots=True)
class Seen:
    """An array as it is computed.

    Attributes:
        value: what it is.
        shape: declared.
        array: in the type that it was computed in, which may be wider.
    """

    value: ValueRecord
    shape: ArrayShape
    array: Array


class Observed:
    """A program whose values have names: the same ones in each of its executions.

    Args:
        module: the program.

    Attributes:
        module: a copy to execute, in which every call has a computation of its own.
        dropped: instructions that were executed more than `MOST_CALLS` times.

    Raises:
        Unsupported: functions call functions so often that they cannot be told apart.
    """

    def __init__(self, module: Module) -> None:
        flat = flattened(module)
        self.module = flat.module
        self.dropped: set[str] = set()
        self._originals = flat.originals
        self._scopes = Scopes(flat.module)

    def probe(self, see: Callable[[Seen], None]) -> Probe:
        """A probe of one execution that shows every array to `see`."""
        calls: Counter[str] = Counter()
        executed: Counter[Instruction] = Counter()

        def probe(instruction: Instruction, value: Value) -> None:
            if instruction not in self._originals:
                return
            name = self._originals[instruction].name
            call, again = calls[name], executed[instruction]
            calls[name] += 1
            executed[instruction] += 1
            if call >= MOST_CALLS:
                self.dropped.add(name)
                return
            stem = re.sub(r"[^\w.+=-]|^\.+", "_", name) + (f"@{call}" if call else "")
            for index, shape, array in array_leaves(instruction.shape, value):
                file = ".".join([stem, *map(str, index), "npy"])
                see(Seen(self._record(instruction, file, shape, again), shape, array))

        return probe

    def _record(self, instruction: Instruction, file: str, shape: ArrayShape, call: int) -> ValueRecord:
        scopes = self._scopes
        source = source_of(self.module, scopes.chain(instruction))
        ends: Sequence[Scope] = scopes.ends.get(instruction, ())
        return ValueRecord(
            file=file,
            shape=shape.logical_text(),
            call=call,
            scope=str(scopes.scopes.get(instruction, Scope())),
            ends=[str(scope) for scope in ends],
            unfinished=str(scopes.unfinished.get(instruction, Scope())),
            source=msgspec.structs.replace(source, instruction=self._originals[instruction].name),
        )
