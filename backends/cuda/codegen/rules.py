"""Every operation that kernels know, and the rule for the gradient of pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

# Importing a family registers its rules.
from hlotool.backends.cuda.codegen import (  # noqa: F401
    bits,
    contractions,
    own_kernels,
    reductions,
    scatters,
)
from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape, element_type
from hlotool.backends.cuda.codegen.elementwise import ELEMENTWISE
from hlotool.backends.cuda.codegen.emit import RULES, Emitter, writes
from hlotool.backends.cuda.codegen.expansion import SPELLINGS, Value, spells
from hlotool.backends.cuda.codegen.indices import Index, linear, variable
from hlotool.backends.cuda.codegen.movement import TAKERS, in_window
from hlotool.backends.cuda.codegen.reductions import scalar_form_of
from hlotool.ir.attributes import WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES as ROWS
from hlotool.ir.types import ArrayShape, ElementType

#: No opcode of HLO: which element each window selects.
_SELECTION = "select-in-windows"


@spells("select-and-scatter")
def with_selection(instruction: Instruction, operands: Sequence[Instruction]) -> Value:
    """Each window selects once, however many readers there are."""
    operand, source, _ = operands
    shape = ArrayShape(ElementType.S64, array_shape(source).dims)
    name = f"{instruction.name}.selection"
    selection = Instruction(
        name, _SELECTION, shape, (operand,), instruction.attributes, line=instruction.line
    )
    return replace(instruction, operands=(*operands, selection))


@writes("select-and-scatter")
def select_and_scatter(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """`scatter` of the initial value and the sources of all windows that select this element."""
    operand, source, init, selection = instruction.operands
    dims = _window(instruction)
    kind = element_type(instruction)
    total = emitter.variable(kind, emitter.value(init, ()))
    own = emitter.index(linear(index, array_shape(operand).dims))
    counters, counts = [emitter.name("o") for _ in index], array_shape(source).dims
    places = [emitter.index(part) for part in index]
    with emitter.block(" ".join(map(_windows_over, counters, places, dims, counts))):
        window = [variable(c, count) for c, count in zip(counters, counts)]
        with emitter.block(f"if ({emitter.value(selection, window)} == {own})"):
            form = scalar_form_of(instruction, "scatter")
            (result,) = emitter.apply(form, [total, emitter.value(source, window)])
            emitter.add(f"{total} = {result};")
    return (total,)


def _window(instruction: Instruction) -> Sequence[WindowDim]:
    dims = instruction.window.dims
    if any(d.base_dilation > 1 or d.window_dilation > 1 or d.reversal for d in dims):
        raise NotGenerated("a window with holes", instruction)
    return dims or [WindowDim(1)] * array_shape(instruction).rank


def _windows_over(counter: str, place: str, dim: WindowDim, count: int) -> str:
    """The loop over the windows that reach a place."""
    last, first = f"((i64){place} + {dim.pad_low})", f"((i64){place} + {dim.pad_low - dim.size + dim.stride})"
    return (
        f"for (i64 {counter} = {first} < 0 ? 0 : {first} / {dim.stride}; "
        f"{last} >= 0 && {counter} <= {last} / {dim.stride} && {counter} < {count}; ++{counter})"
    )


@writes(_SELECTION)
def select_in_windows(emitter: Emitter, instruction: Instruction, window: Index) -> tuple[str, ...]:
    """The position of the element that a window selects, -1 for none."""
    (operand,), dims = instruction.operands, _window(instruction)
    sizes, kind = array_shape(operand).dims, element_type(operand)
    form = scalar_form_of(instruction, "select")
    best, at = emitter.variable(kind), emitter.name("at")
    emitter.add(f"i64 {at} = -1;")
    with emitter.loops([dim.size for dim in dims]) as counters:
        tests, place = in_window(emitter, dims, window, counters, sizes)
        with emitter.where(tests):
            value = emitter.value(operand, place)
            emitter.add(f"bool keep = {at} >= 0;")
            with emitter.block("if (keep)"):
                (kept,) = emitter.apply(form, [best, value])
                emitter.add(f"keep = {kept};")
            position = emitter.index(linear(place, sizes))
            emitter.add(f"if (!keep) {{ {best} = {value}; {at} = {position}; }}")
    return (at,)


# Importing a family registers its rules.

#: Opcodes that are elementwise, have a rule, or are written in simpler instructions.
OPCODES = frozenset(ELEMENTWISE).union(RULES, TAKERS, SPELLINGS, {"get-dimension-size"}).intersection(ROWS)
