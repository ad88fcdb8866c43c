"""What XLA's parser demands of single opcodes, and asynchronous operations that are written short.

The verifier judges shapes; here stand only the rules, beyond operand counts and attributes, without which
XLA does not build the instruction at all. `custom-call-start(…)` is short for an async-start around one
custom-call.

XLA: hlo_parser.cc (CreateInstruction; ParseOpcode, kAsyncStart), async_ops.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlotool.ir.attribute_kinds import COMMON_ATTRIBUTES
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, leaves
from hlotool.ir.walk import async_start
from hlotool.parser.text.attributes import BoundAttributes, bind
from hlotool.parser.text.syntax import AttributeSyntax, CallSyntax, Draft, Scope, TextError
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from hlotool.parser.text.builder import Builder


Values = Mapping[str, Any]
#: Says what is wrong, or None.
Rule = Callable[[Shape, Sequence[Instruction], Values], str | None]

#: Opcodes whose shape must be written. XLA: CanInferShape.
EXPLICIT_SHAPE = opcodes_with(Trait.STATES_SHAPE)


def operand_count_error(opcode: str, count: int) -> str | None:
    """What is wrong with so many operands, or None."""
    row = OPCODES[opcode]
    low, high = row.min_operands, row.max_operands
    if low <= count and (high is None or count <= high):
        return None
    needed = f"{low}" if low == high else f"at least {low}" if high is None else f"{low} to {high}"
    return f"{opcode} takes {needed} operand{'' if needed == '1' else 's'}, not {count}"


def instruction_error(
    opcode: str, shape: Shape, operands: Sequence[Instruction], values: Values
) -> str | None:
    """What is wrong with an instruction of this opcode, or None."""
    rule = RULES.get(opcode)
    return rule(shape, operands, values) if rule is not None else None


def same_array(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same but for layouts and dynamic dimensions."""
    if _equal_but_for_layouts(a, b):
        return True
    from hlotool.ir.shapes.base import compatible

    return compatible(a, b)


def _equal_but_for_layouts(a: Shape, b: Shape) -> bool:
    """What can be checked without NumPy, which knows more types than shapes have here."""
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape):
        return a.element_type is b.element_type and a.dims == b.dims and a.dynamic == b.dynamic
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return len(a.elements) == len(b.elements) and all(map(_equal_but_for_layouts, a.elements, b.elements))
    return a == b


def _one_dimension(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    count = len(values.get("dimensions", (0,)))
    return None if count == 1 else f"dimensions names {count} dimensions, not one"


def _tuple(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    if not isinstance(shape, TupleShape):
        return f"a tuple has a tuple shape, not {shape}"
    if len(shape.elements) != len(operands):
        return f"a tuple of {len(shape.elements)} elements is given {len(operands)} operands"
    return None


def _even_operands(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    return f"expected an even number of operands, not {len(operands)}" if len(operands) % 2 else None


def _odd_operands(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    return None if len(operands) % 2 else f"expected an odd number of operands, not {len(operands)}"


def _start_indices(before: int) -> Rule:
    """Start indices are one vector, or one scalar for each dimension of the first operand."""

    def rule(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
        indices = operands[before:]
        sliced = operands[0].shape
        rank = sliced.rank if isinstance(sliced, ArrayShape) else 0
        is_vector = (
            len(indices) == 1 and isinstance(indices[0].shape, ArrayShape) and indices[0].shape.rank == 1
        )
        if is_vector or len(indices) == rank:
            return None
        return f"expected {rank} start indices, or one vector of them, not {len(indices)}"

    return rule


def _permute(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    if any(len(pair) != 2 for pair in values["source_target_pairs"]):
        return "source_target_pairs is a list of pairs"
    if "slice_sizes" in values and len(operands) != 4:
        return f"an in-place collective-permute takes 4 operands, not {len(operands)}"
    return None


def _group_mode(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    if values.get("use_global_device_ids") and "channel_id" not in values and "mode" not in values:
        return "use_global_device_ids=true needs a channel_id"
    return None


def _reduce_scatter(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    return _group_mode(shape, operands, values) or _one_dimension(shape, operands, values)


def _first_of_tuple(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    is_filled = isinstance(shape, TupleShape) and bool(shape.elements)
    return None if is_filled else f"the shape is a non-empty tuple, not {shape}"


def _same_channel(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    started = operands[0]
    if started.opcode in ("send", "recv") and started.attributes.get("channel_id") != values.get(
        "channel_id"
    ):
        return f"channel_id differs from that of {started.name}"
    return None


def _broadcast(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    operand = operands[0].shape
    if "dimensions" in values or (isinstance(operand, ArrayShape) and not operand.rank):
        return None
    return "broadcast needs the attribute dimensions unless its operand is a scalar"


def _conditional(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    chooser = operands[0].shape
    if not isinstance(chooser, ArrayShape) or chooser.rank:
        return "the first operand is a scalar"
    if chooser.element_type not in (ElementType.PRED, ElementType.S32):
        return "the first operand is a scalar of pred or s32"
    predicated, indexed = ("true_computation", "false_computation"), ("branch_computations",)
    is_predicated = chooser.element_type is ElementType.PRED
    for name in indexed if is_predicated else predicated:
        if name in values:
            return f'unexpected attribute "{name}" where the first operand is {chooser}'
    for name in predicated if is_predicated else indexed:
        if name not in values:
            return f"conditional needs the attribute {name} where the first operand is {chooser}"
    branches = 2 if is_predicated else len(values["branch_computations"])
    if not branches or len(operands) != branches + 1:
        return f"{branches} branches are given {len(operands) - 1} operands"
    return None


def _custom_call(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    layouts = values.get("operand_layout_constraints")
    if layouts is None:
        return None
    if len(layouts) != len(operands):
        return f"{len(operands)} operands are given {len(layouts)} layout constraints"
    for layout, operand in zip(layouts, operands):
        if not same_array(layout, operand.shape):
            return f"layout constraint {layout} does not fit operand {operand.name} of shape {operand.shape}"
    return None


def _replication(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    flags = values.get("parameter_replication")
    if flags is None or len(flags) == (count := sum(1 for _ in leaves(shape))):
        return None
    return f"parameter_replication has {len(flags)} flags, the parameter {count} buffers"


def _async_start(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    is_chain = isinstance(shape, TupleShape) and len(shape.elements) > 1
    if is_chain and isinstance(shape, TupleShape) and isinstance(shape.elements[0], TupleShape):
        return None
    return "the shape is ((operands), result, …)"


def _async_done(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    begun = operands[0]
    if begun.opcode not in ("async-start", "async-update"):
        return f"the operand is an asynchronous instruction, not {begun.opcode} {begun.name}"
    start = async_start(begun)
    thread = start.text("async_execution_thread", "main")
    if values.get("async_execution_thread", thread) != thread:
        return f"async_execution_thread differs from that of {start.name}, which is {thread}"
    if values.get("calls", start.attributes["calls"]) is not start.attributes["calls"]:
        return f"calls differs from that of {start.name}"
    return None


def _async_update(shape: Shape, operands: Sequence[Instruction], values: Values) -> str | None:
    return _async_done(shape, operands, values) or _async_start(shape, operands, values)


#: By opcode.
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("all-gather", "all-gather-start", "all-to-all", "concatenate", "get-dimension-size"), _one_dimension
    ),
    **dict.fromkeys(("ragged-all-to-all", "set-dimension-size", "sort", "scan"), _one_dimension),
    **dict.fromkeys(("reduce", "reduce-window"), _even_operands),
    **dict.fromkeys(("collective-permute", "collective-permute-start"), _permute),
    **dict.fromkeys(("all-reduce", "all-reduce-start"), _group_mode),
    **dict.fromkeys(("infeed", "recv"), _first_of_tuple),
    **dict.fromkeys(("send-done", "recv-done"), _same_channel),
    "async-start": _async_start,
    "async-update": _async_update,
    "async-done": _async_done,
    "broadcast": _broadcast,
    "conditional": _conditional,
    "custom-call": _custom_call,
    "dynamic-slice": _start_indices(1),
    "dynamic-update-slice": _start_indices(2),
    "parameter": _replication,
    "reduce-scatter": _reduce_scatter,
    "scatter": _odd_operands,
    "tuple": _tuple,
}


_SUFFIXES = {"-start": "async-start", "-update": "async-update", "-done": "async-done"}
#: Attributes of the asynchronous instruction that the wrapped one does not share.
_NOT_SHARED = ("async_execution_thread", "sharding")


def opcode_of(call: CallSyntax) -> tuple[str, str | None]:
    """The opcode, and the one that `custom-call-start` and its like wrap."""
    if call.opcode in OPCODES:
        return call.opcode, None
    for suffix, opcode in _SUFFIXES.items():
        wrapped = call.opcode.removesuffix(suffix)
        if wrapped == call.opcode:
            continue
        if wrapped in OPCODES and wrapped not in ("constant", "parameter"):
            return opcode, wrapped
        raise TextError(f"no opcode is called {call.opcode}, and {wrapped} cannot be run so", call.position)
    meant = did_you_mean(call.opcode, OPCODES)
    raise TextError(f"no opcode is called {call.opcode}{meant}", call.position)


def wrapped_instruction(
    builder: Builder, draft: Draft, wrapped: str, attributes: Sequence[AttributeSyntax]
) -> Instruction:
    """Add the instruction of `draft` and, where the operation starts, a computation of one `wrapped`."""
    position = draft.call.position
    if draft.opcode != "async-start":
        instruction = builder.new(draft, bind(draft.opcode, attributes, position, builder.strict))
        _check_opcode(instruction, wrapped)
        return instruction
    if not (isinstance(draft.shape, TupleShape) and len(draft.shape.elements) > 1):
        raise TextError("the shape is ((operands), result, …)")
    inner = bind(wrapped, attributes, position, builder.strict, also=("async_execution_thread",))
    computation = _computation(builder, draft, wrapped, draft.shape.elements[1], inner)
    builder.add_anonymous(computation)
    own: dict[str, AttributeValue] = {"calls": computation}
    kept = {*COMMON_ATTRIBUTES, "async_execution_thread"}
    own |= {key: value for key, value in inner.values.items() if key in kept}
    return builder.new(draft, BoundAttributes(own, (), inner.predecessors, inner.metadata))


def _computation(
    builder: Builder, draft: Draft, opcode: str, shape: Shape, bound: BoundAttributes
) -> Computation:
    """Parameters like the operands, and one instruction on them."""
    call, scope = draft.call, Scope()
    line = call.line + builder.line_offset
    for number, operand in enumerate(draft.operands):
        name = f"async_param.{number}" if number else "async_param"
        parameter = Instruction(name, "parameter", operand.shape, parameter_number=number, line=line)
        scope.add_parameter(parameter, call.position)
    values = {key: value for key, value in bound.values.items() if key not in _NOT_SHARED}
    inner = BoundAttributes(values, bound.pending, None, bound.metadata)
    inner_call = CallSyntax(opcode, call.position, call.line)
    builder.new(Draft("async_op", opcode, shape, tuple(scope.instructions), inner_call, scope), inner)
    computation = scope.finish("async_wrapped", line, call.position)
    computation.execution_thread = str(bound.values.get("async_execution_thread", "main"))
    return computation


def _check_opcode(instruction: Instruction, wrapped: str) -> None:
    start = async_start(instruction)
    opcode = next(start.called).root.opcode
    if opcode != wrapped:
        raise TextError(f"{start.name} runs {opcode}, not {wrapped}")
