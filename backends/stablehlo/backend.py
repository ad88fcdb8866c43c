"""Executes small programs with StableHLO's reference interpreter, as a third opinion.

Programs are given types that NumPy's buffers know; jaxlib writes HLO as StableHLO.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import count

import numpy as np
from msgspec.structs import replace

from hlotool.backends.base import Probe, Value
from hlotool.backends.stablehlo.protocol import Converted, Evaluation
from hlotool.backends.xla.executable import flat_arguments, refuse_probes, value_of
from hlotool.backends.xla.options import XlaOptions
from hlotool.backends.xla.process import key_for, shared_process
from hlotool.backends.xla.programs import arrays_of, flat_signature, logical_module, refuse_the_outside
from hlotool.backends.xla.protocol import ArrayData, Results
from hlotool.errors import BackendCrashed, BackendUnavailable, HlotoolError, Location, Unsupported
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ArrayShape, ElementType, TupleShape, array_shapes

_EVALUATE = "hlotool.backends.stablehlo.child:evaluate"

_TEXT = PrintOptions(metadata=False)

#: What the interpreter says of programs that it cannot run, before it ends the process or raises.
_REFUSAL = re.compile(r"LLVM ERROR: (.*?)(?:\. However|$)|^MLIRError: (.*)", re.DOTALL)


class PlainExecutable:
    """A program for what takes arrays of NumPy's own types; everything happens when it is run.

    Args:
        module: the program.
        written: writes it, with a flat signature of plain types.
        evaluate: runs what was written once. It shows no values of single instructions.
    """

    def __init__(
        self, module: Module, written: Callable[[Module], str], evaluate: Callable[[Evaluation], Results]
    ) -> None:
        flat = flat_signature(logical_module(module))
        refuse_the_outside(flat)
        self.module = module
        self._parameters = [s.element_type for p in flat.entry.parameters for s in array_shapes(p.shape)]
        self._results = [shape.element_type for shape in array_shapes(flat.entry.root.shape)]
        self._text = written(plain_types(flat))
        self._evaluate = evaluate

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. Nothing is shown, so `probe` must be None.

        Raises:
            Unsupported: an operation is not known there.
        """
        refuse_probes([probe])
        arrays = flat_arguments(self.module, arguments)
        plain = [part for kind, array in zip(self._parameters, arrays) for part in to_plain(kind, array)]
        evaluation = Evaluation(self._text, [ArrayData.of(part) for part in plain])
        try:
            [row] = self._evaluate(evaluation).devices
        except Unsupported as error:
            raise Unsupported(str(error), location=Location(self.module.path)) from None
        remaining = iter([data.to_array() for data in row])
        return value_of(self.module, [from_plain(kind, remaining) for kind in self._results])


def refused(error: BackendCrashed, pattern: re.Pattern[str], name: str) -> HlotoolError:
    """Unsupported where what a process said as it ended matches, with the reason; else `error` itself."""
    found = pattern.search(error.message)
    if found is None:
        return error
    reason = " ".join(next(filter(None, found.groups())).split())
    return Unsupported(f"{name}: {reason}")


class StablehloBackend:
    """StableHLO's reference interpreter of the installed jaxlib, or of another interpreter's."""

    def __init__(self, options: XlaOptions | None = None, name: str = "stablehlo") -> None:
        options = options or XlaOptions()
        self.name = name
        self._process = shared_process(key_for("cpu", options.python, 1, options.timeout))

    def warm_up(self) -> None:
        """Start the process that holds the interpreter, without waiting for it."""
        self._process.start()

    @property
    def version(self) -> str:
        """`StableHLO of jaxlib X.Y.Z`."""
        return f"StableHLO of jaxlib {self._process.setup().jaxlib}"

    def compile(self, module: Module) -> PlainExecutable:
        """Write the program as the interpreter wants it.

        Raises:
            Unsupported: it is for several devices, or it talks to the host.
        """
        if is_per_device(module):
            raise Unsupported("StableHLO's interpreter runs programs for one device")
        return PlainExecutable(module, partial(print_module, options=_TEXT), self._evaluated)

    def _evaluated(self, evaluation: Evaluation) -> Results:
        try:
            return self._process.call(_EVALUATE, evaluation, Results)
        except BackendCrashed as error:
            raise refused(error, _REFUSAL, "StableHLO's interpreter") from None


# Programs whose parameters and results have types that NumPy's buffers know.
#
# Narrow floats travel as f32 and narrow integers as s8 or u8, which hold all their values; complex numbers
# as pairs of their parts.

_PARTS = {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}


def plain_types(module: Module) -> Module:
    """A copy of a program with a flat signature that takes and returns plain arrays only."""
    copy = clone_module(module).module
    copy.attributes = {}
    with editing(copy.entry) as edit:
        numbers = count()
        for parameter in copy.entry.parameters:
            _take_plain(edit, parameter, numbers)
        root = copy.entry.root
        results = [part for array in list(arrays_of(edit, root)) for part in _plain_parts(edit, array)]
        shape = TupleShape(tuple(result.shape for result in results))
        copy.entry.root = edit.add(Instruction("plain", "tuple", shape, tuple(results)))
        edit.changed = True
    for instruction in copy.instructions():
        # The importer has a word of its own for copies, which only XLA knows.
        if instruction.opcode == "copy" and isinstance(instruction.shape, ArrayShape):
            instruction.opcode = "reshape"
    return copy


def _carriers(kind: ElementType) -> tuple[ElementType, ...]:
    """The types of the arrays that stand for one of `kind`."""
    if kind in _PARTS:
        return (_PARTS[kind],) * 2
    if kind.is_narrow_float and kind is not ElementType.F16:
        return (ElementType.F32,)
    if kind.is_integer and kind.bits < 8:
        return (ElementType.S8 if kind.is_signed else ElementType.U8,)
    return (kind,)


def _take_plain(edit: Editor, old: Instruction, numbers: Iterator[int]) -> None:
    """Turn a parameter into what is made of plain ones."""
    shape = old.array_shape
    carriers = _carriers(shape.element_type)
    if carriers == (shape.element_type,):
        old.parameter_number = next(numbers)
        return
    made = []
    for kind in carriers:
        parameter = Instruction(old.name, "parameter", replace(shape, element_type=kind))
        parameter.parameter_number = next(numbers)
        made.append(edit.add(parameter, before=old))
    old.opcode, old.parameter_number, old.attributes = "complex" if len(made) == 2 else "convert", None, {}
    edit.set_operands(old, made)


def _plain_parts(edit: Editor, array: Instruction) -> list[Instruction]:
    shape = array.array_shape
    carriers = _carriers(shape.element_type)
    if carriers == (shape.element_type,):
        return [array]
    opcodes = ("real", "imag") if len(carriers) == 2 else ("convert",)
    return [
        edit.add(Instruction(opcode, opcode, replace(shape, element_type=kind), (array,)))
        for opcode, kind in zip(opcodes, carriers)
    ]


def to_plain(kind: ElementType, array: Array) -> list[Array]:
    """The arrays that stand for one of `kind`."""
    if kind in _PARTS:
        return [array.real.copy(), array.imag.copy()]
    [carrier] = _carriers(kind)
    return [array.astype(dtype_of(carrier), copy=False)]


def from_plain(kind: ElementType, arrays: Iterator[Array]) -> Array:
    """The array of `kind` that the next of `arrays` stand for."""
    dtype = dtype_of(kind)
    first = next(arrays)
    if kind in _PARTS:
        whole = np.empty(first.shape, dtype)
        whole.real, whole.imag = first, next(arrays)
        return whole
    return first.astype(dtype)


_CONVERT = "hlotool.backends.stablehlo.child:convert"


def to_stablehlo(module: Module) -> str:
    """A program as a frontend would have written it: without fusions, layouts and schedule.

    Raises:
        BackendUnavailable: there is no jaxlib.
        BackendFailed: XLA died of the program.
        Unsupported: StableHLO has no word for something in it.
    """
    if find_spec("jaxlib") is None:
        raise BackendUnavailable("StableHLO is written by jaxlib: pip install 'hlotool[xla]'")
    options = XlaOptions()
    process = shared_process(key_for("cpu", options.python, 1, options.timeout))
    answer = process.call(_CONVERT, print_module(logical_module(module)), Converted)
    if answer.refusal:
        raise Unsupported(f"XLA writes no StableHLO for it: {answer.refusal}", location=Location(module.path))
    return answer.text
