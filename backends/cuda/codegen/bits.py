"""Operations that read the same bits in another way: as another type, in another layout.

XLA: operation_semantics.md#bitcastconverttype, docs/layouts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlotool.backends.cuda.codegen.elements import (
    WORD,
    NotGenerated,
    array_shape,
    computed,
    element_type,
    of_patterns,
    patterns,
)
from hlotool.backends.cuda.codegen.emit import Emitter, writes
from hlotool.backends.cuda.codegen.indices import Expr, Index, digit, linear, split
from hlotool.backends.numpy.layouts import have_same_tiles
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Reads the element at a position of the operand's buffer.
Read = Callable[[Expr], str]


@writes("bitcast-convert")
def bitcast_convert(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A wider type joins elements of the last dimension, a narrower one adds a dimension of parts."""
    source, target = array_shape(instruction.operands[0]), array_shape(instruction)
    return (_reinterpreted(emitter, instruction, index, range(source.rank), range(target.rank)),)


@writes("bitcast")
def bitcast(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The operand's buffer, read in the layout and the type of the result."""
    source, target = array_shape(instruction.operands[0]), array_shape(instruction)
    if not have_same_tiles(source, target):
        raise NotGenerated("layouts with unlike tiles", instruction)
    orders = source.minor_to_major[::-1], target.minor_to_major[::-1]
    return (_reinterpreted(emitter, instruction, index, *orders),)


def _reinterpreted(
    emitter: Emitter,
    instruction: Instruction,
    index: Index,
    source_order: Sequence[int],
    order: Sequence[int],
) -> str:
    """The bits at one place of the result; orders of dimensions are those of the two buffers."""
    operand = instruction.operands[0]
    source, target = array_shape(operand), array_shape(instruction)
    if source.size * source.element_type.bits != target.size * target.element_type.bits:
        raise NotGenerated(f"{source} and {target} have unequal numbers of bits", instruction)

    def read(position: Expr) -> str:
        parts = split(position, [source.dims[d] for d in source_order])
        places = dict(zip(source_order, parts))
        return emitter.value(operand, [places[d] for d in range(source.rank)])

    position = linear([index[d] for d in order], [target.dims[d] for d in order])
    return _element(emitter, read, position, element_type(operand), element_type(instruction))


def _element(emitter: Emitter, read: Read, position: Expr, old: ElementType, new: ElementType) -> str:
    """The element of type `new` at a position of a buffer whose elements are of type `old`."""
    if old.bits > new.bits:
        return _part(emitter, read, position, old, new)
    ratio = new.bits // old.bits
    first = position * ratio
    return _with_bits(emitter, [read(first + i) for i in range(ratio)], old, new)


def _with_bits(emitter: Emitter, values: Sequence[str], old: ElementType, new: ElementType) -> str:
    """One element made of several, lowest bits first."""
    if old is new:
        return values[0]
    words: list[str] = []
    for number, value in enumerate(values):
        place, shift = divmod(number * old.bits, WORD)
        for offset, word in enumerate(patterns(value, old)):
            text = f"{word} << {shift}" if shift else word
            if place + offset < len(words):
                words[place + offset] += f" | {text}"
            else:
                words.append(text)
    names = [emitter.define("u64", word) for word in words]
    return emitter.define(computed(new), of_patterns(names, new))


def _part(emitter: Emitter, read: Read, position: Expr, old: ElementType, new: ElementType) -> str:
    """Some bits of an element."""
    ratio = old.bits // new.bits
    words = patterns(read(digit(position, ratio, None)), old)
    part = emitter.index(digit(position, 1, ratio))
    word = words[0]
    if len(words) > 1:
        half = ratio // 2
        word = f"({part} < {half} ? {words[0]} : {words[1]})"
        part = emitter.index(digit(position, 1, half))
    name = emitter.define("u64", f"{word} >> ({part} * {new.bits})")
    return emitter.define(computed(new), of_patterns([name], new))
