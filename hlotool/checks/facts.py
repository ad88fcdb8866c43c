"""What is told of a program at a glance: whose function it is, what it takes, and digests of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from hlotool.checks.program_records import ParameterFact, ProgramFacts
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import array_shapes

#: Names that TensorFlow gives to what it compiles: prefix, function, trace number, attributes.
_TENSORFLOW = re.compile(
    r"(?:a_|cluster_)?(?:_*(?:inference|forward|backward)_+)(?P<function>.+?)(?:_(?P<trace>\d+))?"
    r"(?:__Xla.*|__)?(?:_?\.\d+)?"
)
_JAX = re.compile(r"(?P<kind>jit|pmap)_(?P<function>.+)")
#: PyTorch/XLA has one name for all: the number tells programs apart.
_TORCH = re.compile(r"(?P<function>SyncTensorsGraph)\.\d+")

#: What stands around operations, and what brings operands into the shape and type that one needs.
_GIVEN = opcodes_with(Trait.STRUCTURE)
_PREPARING = frozenset({"broadcast", "convert", "reshape"})


def program_facts(module: Module, title: str, file: str) -> ProgramFacts:
    """The facts of `module`, which the dump calls `title` and keeps in `file`."""
    frontend, function, trace = function_of(module.name)
    parameters = [ParameterFact(name=parameter_name(p), shape=_logical(p)) for p in module.entry.parameters]
    instructions = list(module.instructions())
    structure, text = digests(instructions)
    return ProgramFacts(
        module=title,
        file=file,
        function=function,
        frontend=frontend,
        trace=trace,
        parameters=parameters,
        results=[str(shape.without_layout()) for shape in array_shapes(module.entry.root.shape)],
        instructions=len(instructions),
        structure=structure,
        text=text,
        constants=list(_constants(instructions)),
        source=_source(module),
        is_eager=frontend == "jax" and _is_eager(module, function),
    )


def digests(instructions: Sequence[Instruction]) -> tuple[str, str]:
    """Digests of a program's opcodes and graph alone, and with shapes and constants; names are in neither.

    Args:
        instructions: all that the program has, in the order of the text.
    """
    numbers = {instruction: number for number, instruction in enumerate(instructions)}
    # Instructions share the objects that say their shapes.
    shapes: dict[int, str] = {}
    structure, text = hashlib.sha256(), hashlib.sha256()
    for instruction in instructions:
        shape = shapes.get(id(instruction.shape))
        if shape is None:
            shape = shapes[id(instruction.shape)] = _logical(instruction)
        operands = [numbers.get(operand, -1) for operand in instruction.operands]
        step = f"{instruction.opcode}{operands}".encode()
        structure.update(step)
        text.update(step)
        text.update(f"{shape}{_value(instruction)}".encode())
    return structure.hexdigest()[:16], text.hexdigest()[:16]


def function_of(name: str) -> tuple[str, str, str]:
    """Frontend, function and trace of a module called `name`."""
    if match := _TORCH.fullmatch(name):
        return "torch", match["function"], ""
    if match := _TENSORFLOW.fullmatch(name):
        return "tensorflow", match["function"], match["trace"] or ""
    if match := _JAX.fullmatch(name):
        return "jax", match["function"], ""
    return "", name, ""


def parameter_name(parameter: Instruction) -> str:
    """JAX writes the argument's own name into the metadata, TensorFlow one name for all."""
    name = parameter.metadata.op_name if parameter.metadata else ""
    return name if name and "/" not in name and name != "XLA_Args" else parameter.name


def _is_eager(module: Module, function: str) -> bool:
    """Whether this is what one call outside of any jitted function computes, and `function` is the library's.

    JAX leaves its own functions out of the frames: all of such a program comes from the user's line with the
    call, and no function of the user's bears its name. Dumps without functions show that by the name of the
    operation, where it is a single one. What computes nothing, such as a conversion to the same type, counts
    as well: it says of itself no more than its name.
    """
    computed = [i for i in module.entry.instructions if i.opcode not in _GIVEN]
    if not computed:
        return True
    if module.stack_frames is not None and module.stack_frames.function_names:
        names = {_as_module_name(name) for name in module.stack_frames.function_names.values()}
        frames = {i.metadata.stack_frame_id for i in module.instructions() if i.metadata is not None} - {0}
        return len(frames) == 1 and function.rstrip("_") not in names
    operations = [i for i in computed if i.opcode not in _PREPARING] or computed
    if len(operations) != 1 or operations[0].metadata is None:
        return False
    return operations[0].metadata.op_name.rpartition("/")[2] == function


def _as_module_name(function: str) -> str:
    """What JAX makes of a function's name in that of its module: `Model.<lambda>` becomes `_lambda`."""
    return re.sub(r"\W", "_", function.rpartition(".")[2]).rstrip("_")


def _logical(instruction: Instruction) -> str:
    return joined_shapes([shape.logical_text() for shape in array_shapes(instruction.shape)])


def joined_shapes(shapes: Sequence[str]) -> str:
    """One shape as it is, others as a tuple."""
    return shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"


def _constant(instruction: Instruction) -> Array | None:
    """The array that it holds; None where there is none, or the dump left it out."""
    literal = instruction.literal
    known = literal is not None and literal.value is not None and not isinstance(literal.value, tuple)
    return literal.array if literal is not None and known else None


def _value(instruction: Instruction) -> str:
    array = _constant(instruction)
    return "" if array is None else hashlib.sha256(array.tobytes()).hexdigest()[:16]


def _constants(instructions: list[Instruction]) -> Iterator[str]:
    """Those of at most eight elements: what a Python number or a shape becomes."""
    for instruction in instructions:
        array = _constant(instruction)
        if array is not None and array.size <= 8:
            yield f"{_logical(instruction)} {array.tolist()}"


def _source(module: Module) -> str:
    """The innermost position of the first instruction that has one."""
    from hlotool.facts.dataflow import source_of

    for instruction in module.entry.instructions:
        if instruction.opcode != "parameter" and instruction.metadata is not None:
            found = source_of(module, [instruction])
            if found.file:
                return f"{found.file}:{found.file_line}"
    return ""
