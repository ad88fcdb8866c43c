"""What a module is run on: values that the user gives, captured executions, or generated values.

A run takes one of the three ways; what the others need is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from hlotool.errors import InputDataError, Location, Unsupported
from hlotool.inputs.captured import (
    load_device_inputs,
    load_device_outputs,
    load_inputs,
    load_outputs,
    values_file,
)
from hlotool.inputs.given import Keep, as_it_is
from hlotool.ir.module import Module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import CAPTURED, GENERATED, InputsRecord
from hlotool.sources.loading import read_execution
from hlotool.sources.records import Capture, DumpModule
from hlotool.system.paths import is_folder

if TYPE_CHECKING:
    from hlotool.inputs.generate import LeafDescription
    from hlotool.judge.rules.judgement import Side
    from hlotool.rewrite.scale.plan import Scaled
    from hlotool.runs.program import Program


class Trial(Struct, frozen=True, eq=False):
    """Arguments for one run of a module.

    Attributes:
        arguments: one per entry parameter.
        inputs: where they come from.
        name: tells it from other trials of the module; empty when there is but one.
        result: what the program really returned for them; None when that is not known.
        origin: where `result` comes from, in words.
        sides: how the judge executes programs on the arguments, where it is asked of `result`, too.
    """

    arguments: tuple[Any, ...]
    inputs: InputsRecord
    name: str = ""
    result: Any = None
    origin: str = ""
    sides: dict[Program, Side] = field(default_factory=dict)


def trials(
    owner: DumpModule,
    module: Module,
    options: ReplayOptions,
    copies: int = 1,
    scaled: Scaled | None = None,
    keep: Keep = as_it_is,
) -> Iterator[Trial]:
    """The runs of a module: one on given or generated inputs, or one per captured execution.

    Args:
        owner: the dump's module, which may hold captured executions.
        module: the reference program.
        options: of the user.
        copies: number of devices that take arguments of their own; the arguments are then one tuple each.
        scaled: what `module` was made of, where it has smaller sizes: arguments for the program as it was are
            cut, and what that returned is no result of this one.
        keep: what becomes of large arrays.

    Raises:
        InputDataError: values do not fit the program, or `--outputs` come without their inputs.
        ProtoError: a captured execution cannot be decoded.
        Unsupported: a captured execution ran on other devices.
    """
    is_made = options.inputs is None and not owner.arguments and not owner.captures
    if scaled is not None and not is_made:
        for trial in trials(owner, scaled.original(module.path or ""), options, copies):
            yield _cut(trial, module, scaled, copies)
    elif options.inputs is not None or owner.arguments:
        inputs = _own_file(options.inputs or owner.arguments, owner)
        yield _with_outputs(_given(inputs, module, copies, keep), owner, module, options, copies, keep)
    elif owner.captures:
        for number, capture in enumerate(owner.captures, start=1):
            name = f"execution_{number}" if len(owner.captures) > 1 else ""
            trial = _captured(capture, name, module, copies, keep)
            yield _with_outputs(trial, owner, module, options, copies, keep)
    else:
        if options.outputs is not None and module.entry.parameters:
            raise InputDataError(f"{options.outputs}: without the inputs that gave these outputs (--inputs)")
        yield _with_outputs(generated(module, options, copies, keep), owner, module, options, copies, keep)


def _cut(trial: Trial, module: Module, scaled: Scaled, copies: int) -> Trial:
    """A trial of a program that has smaller sizes now.

    Raises:
        Unsupported: its values are of several devices.
    """
    if copies > 1:
        raise Unsupported("values of several devices cannot be cut to smaller sizes (--scale never)")
    description = f"{trial.inputs.description}, cut to the smaller sizes"
    inputs = msgspec.structs.replace(trial.inputs, description=description)
    return Trial(scaled.arguments(module.path or "", trial.arguments), inputs, trial.name)


def _own_file(source: str, owner: DumpModule) -> str:
    """Of a folder of values the file with the module's title.

    Without one, `inputs.captured` looks for the module's name, which may be that of other modules, too.

    Raises:
        InputDataError: that file would be given to several modules.
    """
    if not is_folder(source):
        return source
    for title in (owner.title, owner.title.rpartition("/")[2]):
        if (found := values_file(source, title)) is not None:
            return found
    if owner.has_namesakes and (shared := values_file(source, owner.name)) is not None:
        raise InputDataError(f"{shared}: several modules have this name; call it {owner.title}.npz")
    return source


def _given(source: str, module: Module, copies: int, keep: Keep) -> Trial:
    arguments = keep(load_arguments(source, module, copies, keep))
    return Trial(arguments, InputsRecord(origin="given", description=f"from {source}"))


def load_arguments(source: str, module: Module, copies: int, keep: Keep = as_it_is) -> tuple[Any, ...]:
    """The arguments in a file, those of each device where `copies` of them have their own.

    Raises:
        InputDataError: they do not fit the program.
    """
    if copies > 1:
        return load_device_inputs(source, module, copies)
    return load_inputs(source, module, keep)


def _captured(capture: Capture, name: str, module: Module, copies: int, keep: Keep) -> Trial:
    from hlotool.ir.arrays import from_literal

    execution = read_execution(capture)
    devices = [tuple(keep(from_literal(one)) for one in literals) for literals in execution.arguments]
    arguments = _for_devices(devices, module, copies, Location(str(capture.source)))
    which = f"execution {capture.ordinal}, " if capture.ordinal else ""
    record = InputsRecord(origin=CAPTURED, description=f"{which}captured in {capture.source.name}")
    result = keep(from_literal(execution.result)) if execution.result is not None else None
    origin = f"captured on {execution.platform}" if execution.platform else "captured"
    return Trial(arguments, record, name, result, origin)


def _for_devices(
    devices: Sequence[tuple[Any, ...]], module: Module, copies: int, location: Location
) -> tuple[Any, ...]:
    """Captured arguments as the program takes them: of the one device, of each, or global ones."""
    if len(devices) == 1 and copies == 1:
        return devices[0]
    if copies == 1:
        from hlotool.runs.device_arguments import global_arguments

        return global_arguments(module, devices, location)
    if len(devices) != copies:
        reason = f"captured on {len(devices)} devices, the program is for {copies}"
        raise Unsupported(reason, location=location)
    return tuple(devices)


def generated(module: Module, options: ReplayOptions, copies: int, keep: Keep) -> Trial:
    """A run on inputs from `options.seed`, in `options.input_range`."""
    from hlotool.inputs.generate import generate_inputs

    made = generate_inputs(module, options.seed, options.input_range, keep)
    rules = [text for leaf in made.descriptions if (text := _rule(leaf))]
    bounds = options.input_range
    within = f" within [{bounds[0]:g}, {bounds[1]:g}]" if bounds else ""
    record = InputsRecord(
        origin=GENERATED,
        description=f"generated with seed {made.seed}{within}",
        seed=made.seed,
        rules=rules,
    )
    if copies == 1:
        return Trial(made.values, record)
    from hlotool.runs.device_arguments import device_arguments

    return Trial(
        device_arguments(
            module, lambda n: generate_inputs(module, options.seed + n, options.input_range).values
        ),
        record,
    )


def _rule(leaf: LeafDescription) -> str:
    """What was assumed of a parameter; empty where it got what its type gets by default."""
    if not leaf.rule and not leaf.unmet:
        return ""
    name = "".join([f"%{leaf.name}", *(f".{i}" for i in leaf.index)])
    purposes = f" for {', '.join(leaf.purposes)}" if leaf.purposes else ""
    unmet = f"; not met: {', '.join(leaf.unmet)}" if leaf.unmet else ""
    return f"{name} {leaf.shape}: {leaf.rule}{purposes}{unmet}"


def _with_outputs(
    trial: Trial, owner: DumpModule, module: Module, options: ReplayOptions, copies: int, keep: Keep
) -> Trial:
    """The trial with the result that the user gave, if any."""
    if options.outputs is None:
        return trial
    source = _own_file(options.outputs, owner)
    result = keep(load_result(source, module, copies, keep))
    return Trial(trial.arguments, trial.inputs, trial.name, result, f"from {source}")


def load_result(source: str, module: Module, copies: int, keep: Keep = as_it_is) -> Any:
    """The result in a file, of each device where `copies` return their own; raises as `load_arguments`."""
    if copies > 1:
        return load_device_outputs(source, module, copies)
    return load_outputs(source, module, keep)
