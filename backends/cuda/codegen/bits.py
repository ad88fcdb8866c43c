"""Operations on bits: the same ones as another type or in another layout, and random ones from a counter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

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
from hlotool.backends.cuda.codegen.indices import Expr, Index, constant, digit, linear, split
from hlotool.backends.cuda.codegen.movement import takes
from hlotool.backends.numpy.bit_patterns import have_same_tiles
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

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


@takes("rng-bit-generator")
def rng_bit_generator(emitter: Emitter, instruction: Instruction, number: int, index: Index) -> str:
    """The new state (0) or the bits (1)."""
    generator = _Generator.of(emitter, instruction)
    return generator.state_word(index[0]) if number == 0 else generator.bits(index)


@dataclass(frozen=True, slots=True)
class _Generator:
    """One use of a generator.

    Attributes:
        emitter: where to write.
        is_threefry: which one it is; the default is Philox.
        shape: of the bits.
        key: its name.
        low: of the counter's lower half.
        high: of its upper half.
    """

    emitter: Emitter
    is_threefry: bool
    shape: ArrayShape
    key: str
    low: str
    high: str

    @classmethod
    def of(cls, emitter: Emitter, instruction: Instruction) -> _Generator:
        """The state is a key and a counter; of 64 bits, Philox takes the key as the upper half."""
        (state,) = instruction.operands
        algorithm = instruction.attributes.get("algorithm")
        shapes = instruction.shape.elements if isinstance(instruction.shape, TupleShape) else ()
        words = array_shape(state).size
        if algorithm not in ("rng_default", "rng_philox", "rng_three_fry") or len(shapes) != 2:
            raise NotGenerated(f"random algorithm {algorithm}", instruction)
        bits = shapes[1]
        if not isinstance(bits, ArrayShape) or bits.element_type.bits > WORD or words not in (2, 3):
            raise NotGenerated(f"random bits of shape {bits}", instruction)
        key, low = (emitter.value(state, [constant(n)]) for n in (0, 1))
        high = emitter.value(state, [constant(2)]) if words == 3 else key
        return cls(emitter, algorithm == "rng_three_fry", bits, key, low, high)

    @property
    def width(self) -> int:
        """The width of an element in bits."""
        return self.shape.element_type.bits

    @property
    def axis(self) -> int | None:
        """Along which Threefry's words are neighbours: the first of even size, else the largest."""
        dims = self.shape.dims
        even = (d for d, size in enumerate(dims) if size % 2 == 0)
        return next(even, max(range(len(dims)), key=lambda d: dims[d], default=None))

    @property
    def half(self) -> tuple[int, ...]:
        """Counters of Threefry for narrower elements, of which two share one."""
        dims = self.shape.dims
        return tuple(-(-size // 2) if d == self.axis else size for d, size in enumerate(dims))

    @property
    def steps(self) -> int:
        """How far the counter moves."""
        if self.is_threefry:
            return prod(self.shape.dims if self.width == WORD else self.half)
        words = prod(self.shape.dims) * (2 if self.width == WORD else 1)
        return -(-words // 4)

    def state_word(self, part: Expr) -> str:
        """An element of the new state."""
        place = self.emitter.index(part)
        moved = self.emitter.define("u64", f"{self.low} + {self.steps}ull")
        carry = "0ull" if self.is_threefry else f"{self.high} + ({moved} < {self.low})"
        return self.emitter.define("u64", f"{place} == 0 ? {self.key} : {place} == 1 ? {moved} : {carry}")

    def bits(self, index: Index) -> str:
        """An element of the bits."""
        word = self._threefry(index) if self.is_threefry else self._philox(index)
        kind = self.shape.element_type
        return self.emitter.define(computed(kind), of_patterns([self.emitter.define("u64", word)], kind))

    def _threefry(self, index: Index) -> str:
        axis, which, place = self.axis, "0", list(index)
        dims = self.shape.dims
        if self.width < WORD and axis is not None:
            which, dims = self.emitter.index(digit(index[axis], 1, 2)), self.half
            place[axis] = digit(index[axis], 2, None)
        counter = self.emitter.define("u64", f"{self.low} + (u64)({linear(place, dims)})")
        words = self.emitter.define("RandomWords", f"threefry({self.key}, {counter})")
        if self.width == WORD:
            return f"joined({words}.word[0], {words}.word[1])"
        return f"{words}.word[{which}]"

    def _philox(self, index: Index) -> str:
        place = self.emitter.index(linear(index, self.shape.dims))
        share = 2 if self.width == WORD else 4
        low = self.emitter.define("u64", f"{self.low} + (u64)({place} / {share})")
        high = self.emitter.define("u64", f"{self.high} + ({low} < {self.low})")
        words = self.emitter.define("RandomWords", f"philox({self.key}, {low}, {high})")
        if self.width == WORD:
            return f"joined({words}.word[{place} % 2 * 2], {words}.word[{place} % 2 * 2 + 1])"
        return f"{words}.word[{place} % 4]"
