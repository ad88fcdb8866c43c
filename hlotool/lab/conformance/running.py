"""Trials on a backend: many in one module, because compilers take their time; alone what goes wrong there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hlotool.backends.base import Backend, DevicesBackend, target_of
from hlotool.errors import BackendFailed, HlotoolError, Unsupported
from hlotool.interface.report.lab_records import Status, TrialRecord
from hlotool.ir.arrays import Array, Literal, flatten
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.ir.types import leaves as shape_leaves
from hlotool.lab.conformance.judging import Judged, judged
from hlotool.lab.conformance.trials import Trial, working_type


def merge(modules: Sequence[Module]) -> Module:
    """A module that does what all `modules` do, side by side.

    Its parameters are those of the modules in turn; its result is a flat tuple of all their array leaves,
    tokens left out. Attributes of the module headers are dropped.
    """
    merged = Module("merged", [], Computation("merged", [], Instruction("none", "tuple", TupleShape(()))))
    outputs: list[Instruction] = []
    count = 0
    for number, module in enumerate(modules):
        copier = _Copier(f"m{number}.")
        entry = copier.computation(module.entry)
        for parameter in entry.parameters:
            parameter.parameter_number = (parameter.parameter_number or 0) + count
        count += len(entry.parameters)
        merged.computations += [c for c in copier.copied.values() if c is not entry]
        merged.entry.instructions += entry.instructions
        for leaf in _leaves(entry.root, merged.entry.instructions):
            outputs.append(leaf)
    root = Instruction("merged", "tuple", TupleShape(tuple(o.shape for o in outputs)), tuple(outputs))
    merged.entry.instructions.append(root)
    merged.entry.root = root
    merged.computations.append(merged.entry)
    return merged


def bind(module: Module, arguments: Sequence[Array]) -> Module:
    """`module` with constants in the place of its parameters, all of which are arrays.

    XLA folds what depends on constants alone, by its evaluator.
    """
    entry = _Copier("").computation(module.entry)
    for parameter, argument in zip(entry.parameters, arguments):
        parameter.opcode, parameter.parameter_number = "constant", None
        parameter.literal = Literal(parameter.shape, argument)
    others = [c for c in module.computations if c is not module.entry]
    return Module(module.name, [*others, entry], entry)


def _leaves(value: Instruction, instructions: list[Instruction]) -> Iterator[Instruction]:
    """The array leaves of `value`; what takes tuples apart is appended to `instructions`."""
    if isinstance(value.shape, TupleShape):
        for index, shape in enumerate(value.shape.elements):
            element = Instruction(
                f"{value.name}.e{index}", "get-tuple-element", shape, (value,), {"index": index}
            )
            instructions.append(element)
            yield from _leaves(element, instructions)
    elif isinstance(value.shape, ArrayShape):
        yield value


class _Copier:
    """Copies computations with all that they call, under names with a prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.copied: dict[Computation, Computation] = {}

    def computation(self, source: Computation) -> Computation:
        if source not in self.copied:
            known: dict[Instruction, Instruction] = {}
            for instruction in source.instructions:
                known[instruction] = replace(
                    instruction,
                    name=self.prefix + instruction.name,
                    operands=tuple(known[o] for o in instruction.operands),
                    control_predecessors=tuple(known[o] for o in instruction.control_predecessors),
                    attributes={k: self._attribute(v) for k, v in instruction.attributes.items()},
                )
            copy = replace(
                source,
                name=self.prefix + source.name,
                instructions=list(known.values()),
                root=known[source.root],
            )
            self.copied[source] = copy
        return self.copied[source]

    def _attribute(self, value: AttributeValue) -> AttributeValue:
        if isinstance(value, Computation):
            return self.computation(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return tuple(self.computation(c) for c in value if isinstance(c, Computation))
        return value


#: Trials that share a module. XLA's fixed costs are those of about ten of them, and a failure costs them all.
BATCH = 40

#: Nothing is computed by them.
_WITHOUT_WORK = opcodes_with(Trait.STRUCTURE)


def tried(trials: Sequence[Trial], backend: Backend) -> Iterator[TrialRecord]:
    """What becomes of each trial, in no particular order.

    Args:
        trials: of any opcodes.
        backend: what it does to the process that calls this is not prevented.
    """
    yield from (_alone(trial, backend) for trial in trials if trial.stands_alone)
    sociable = [trial for trial in trials if not trial.stands_alone]
    for first in range(0, len(sociable), BATCH):
        yield from _together(sociable[first : first + BATCH], backend)


def _together(trials: Sequence[Trial], backend: Backend) -> Iterator[TrialRecord]:
    """All in one module; each half for itself where that has no result."""
    if len(trials) == 1:
        yield _alone(trials[0], backend)
        return
    try:
        results = list(_merged(trials, backend))
    except Exception as error:
        if ends_the_process(error):
            raise
        # Whatever it is, the trial that it comes of shows it again.
        middle = len(trials) // 2
        yield from _together(trials[:middle], backend)
        yield from _together(trials[middle:], backend)
        return
    for trial, leaves in zip(trials, results):
        said = judged(trial, [leaves], target_of(backend))
        yield _confirmed(trial, said, backend) if said.wrong else _record(trial, said)


def _merged(trials: Sequence[Trial], backend: Backend) -> Iterator[list[Any]]:
    """The leaves of each result; None for tokens."""
    module = merge([trial.module for trial in trials])
    arguments = [value for trial in trials for value in trial.rows[0]]
    value = backend.compile(module).run(arguments)
    arrays = iter([leaf for _, _, leaf in flatten(module.entry.root.shape, value)])
    for trial in trials:
        shapes = [shape for _, shape in shape_leaves(trial.module.entry.root.shape)]
        yield [next(arrays) if isinstance(shape, ArrayShape) else None for shape in shapes]


def _confirmed(trial: Trial, said: Judged, backend: Backend) -> TrialRecord:
    """What becomes of a trial alone; where that is fine, the module that it shared is what failed."""
    alone = _alone(trial, backend)
    if alone.status in ("failed", "crashed"):
        return alone
    return _record(trial, said, in_company=True)


def _alone(trial: Trial, backend: Backend) -> TrialRecord:
    try:
        results = _results(trial, backend)
    except Exception as error:
        if ends_the_process(error):
            raise
        status, message = failure_of(error)
        if status == "crashed" and (reason := _known_refusal(trial, backend)):
            status, message = "refused", f"{reason} ({message})"
        return _record(trial, Judged(), status, message)
    said = judged(trial, results, target_of(backend))
    if said.wrong and (reason := _known_refusal(trial, backend)):
        return _record(trial, Judged(), "refused", f"{reason} ({'; '.join(said.wrong)})")
    return _record(trial, said)


def _known_refusal(trial: Trial, backend: Backend) -> str | None:
    """Why XLA's CPU compiler is known not to execute a trial; None for other backends."""
    return trial.xla_cannot if is_xla(backend) else None


def ends_the_process(error: Exception) -> bool:
    """Whether this process is of no use any more: nothing is left of its memory, or of its device."""
    return isinstance(error, MemoryError) or (isinstance(error, BackendFailed) and error.here)


def _results(trial: Trial, backend: Backend) -> list[list[Any]]:
    """Per device, the leaves of the result."""
    if len(trial.grid) == 1:
        values = [backend.compile(trial.module).run(trial.rows[0])]
    elif isinstance(backend, DevicesBackend):
        values = backend.compile_devices(trial.module, trial.grid).run_devices(trial.rows)
    else:
        raise Unsupported(f"backend {backend.name} runs programs for one device")
    shape = trial.module.entry.root.shape
    return [[leaf for _, _, leaf in flatten(shape, value)] for value in values]


def is_xla(backend: Backend) -> bool:
    """Whether it is the compiler that the notes of the specs speak of: XLA, for the CPU."""
    name, _, options = backend.name.partition(":")
    return name == "xla" and not {"gpu", "tpu"} & set(options.split(","))


def failure_of(error: Exception) -> tuple[Status, str]:
    """What an error in the place of a result means, and a line about it."""
    if isinstance(error, BackendFailed):
        return "crashed", _line(str(error))
    if isinstance(error, HlotoolError):
        return "refused", _line(str(error))
    return "crashed", _line(f"{type(error).__name__}: {error}")


def died(trial: Trial, error: BackendFailed) -> TrialRecord:
    """The record of a trial that took the process with it that ran it."""
    status, message = failure_of(error)
    return _record(trial, Judged(), status, message)


def _record(
    trial: Trial, said: Judged, status: Status | None = None, message: str = "", *, in_company: bool = False
) -> TrialRecord:
    if status is None:
        status = "failed" if said.wrong else "allowed" if said.freedoms else "passed"
    kind = trial.element_type
    return TrialRecord(
        name=trial.name,
        opcode=trial.opcode,
        element_type=kind.value if kind is not None else "",
        title=trial.title,
        status=status,
        freedoms=sorted(said.freedoms),
        ulps=said.ulps,
        message=message or "; ".join(said.wrong),
        elements=trial.elements,
        in_company=in_company,
        holds=_others(trial) if status in ("failed", "crashed") else [],
    )


def _others(trial: Trial) -> list[str]:
    """The operations of a program besides the one that it is about, each with the type that it works on."""
    found = {
        f"{instruction.opcode} {kind.value}"
        for instruction in trial.module.instructions()
        if instruction.opcode not in {trial.opcode, *_WITHOUT_WORK}
        and (kind := working_type(instruction)) is not None
    }
    return sorted(found)


def _line(text: str) -> str:
    """A message in one line of bearable length."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:299]}…"
