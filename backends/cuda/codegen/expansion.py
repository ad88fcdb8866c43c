"""A computation in the form that rules know: no calls, no tuples inside, libraries and batch normalisation
spelt out.

Also how far floats narrower than f32 are rounded inside of a fusion.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape, element_type
from hlotool.backends.registry import Options
from hlotool.errors import UsageError
from hlotool.facts.retyping import without_narrow_floats
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import by_opcode
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes
from hlotool.ir.walk import post_order

#: What an instruction is worth: an array, or as many as a tuple has.
Value: TypeAlias = "Instruction | tuple[Value, ...]"

#: Writes an instruction in simpler ones, given its operands; None where it is left as it is.
Spelling: TypeAlias = Callable[[Instruction, Sequence[Instruction]], "Value | None"]

SPELLINGS: dict[str, Spelling] = {}


def spells(*opcodes: str) -> Callable[[Spelling], Spelling]:
    """Register what writes `opcodes` in simpler instructions."""
    return by_opcode(SPELLINGS, opcodes)


def expanded(computation: Computation, arguments: Sequence[Value]) -> dict[Instruction, Value]:
    """What every instruction of a computation is worth, given its parameters' values.

    Raises:
        NotGenerated: a called computation is not simply to be executed.
    """
    values: dict[Instruction, Value] = {}
    for instruction in post_order([computation.root, *computation.instructions]):
        if instruction.opcode == "parameter":
            values[instruction] = arguments[instruction.parameter_number or 0]
        else:
            values[instruction] = simplified(instruction, [values[o] for o in instruction.operands])
    return values


def simplified(instruction: Instruction, operands: Sequence[Value]) -> Value:
    """What one instruction is worth, given its operands' values."""
    match instruction.opcode:
        case "call" | "fusion":
            (called,) = instruction.called
            return expanded(called, operands)[called.root]
        case "tuple":
            return tuple(operands)
        case "get-tuple-element" if isinstance(operands[0], tuple):
            return operands[0][instruction.integer("index")]
        case "opt-barrier" | "add-dependency" | "domain":
            return operands[0]
        case "get-dimension-size":
            return _size(instruction, operands[0])
    arrays = [_array(operand, instruction) for operand in operands]
    spelling = SPELLINGS.get(instruction.opcode)
    spelt = spelling(instruction, arrays) if spelling is not None else None
    if spelt is not None:
        return spelt
    if all(new is old for new, old in zip(arrays, instruction.operands)):
        return instruction
    return replace(instruction, operands=tuple(arrays))


def leaves_of(value: Value) -> tuple[Instruction, ...]:
    """The arrays of a value, those of tuples that single instructions make included."""
    if isinstance(value, tuple):
        return tuple(leaf for part in value for leaf in leaves_of(part))
    return parts_of(value)


def parts_of(
    instruction: Instruction, known: Mapping[int, Instruction] | None = None
) -> tuple[Instruction, ...]:
    """The results of an instruction, each as what takes it out.

    Args:
        instruction: whatever its shape.
        known: instructions that take results out, by number; others are made up.
    """
    if not isinstance(instruction.shape, TupleShape):
        return (instruction,)
    takers = known or {}
    shapes = enumerate(instruction.shape.elements)
    return tuple(takers.get(number) or _part(instruction, number, shape) for number, shape in shapes)


def _part(instruction: Instruction, number: int, shape: Shape) -> Instruction:
    name = f"{instruction.name}.{number}"
    return Instruction(
        name, "get-tuple-element", shape, (instruction,), {"index": number}, line=instruction.line
    )


def _array(value: Value, user: Instruction) -> Instruction:
    if isinstance(value, tuple):
        raise NotGenerated("an operand is a tuple", user)
    return value


def _size(instruction: Instruction, operand: Value) -> Value:
    """The size of a dimension that does not change."""
    (dimension,) = instruction.integers("dimensions")
    size = array_shape(_array(operand, instruction)).dims[dimension]
    literal = Literal(instruction.shape, np.array(size, np.int32))
    return replace(instruction, opcode="constant", operands=(), attributes={}, literal=literal)


@dataclass(frozen=True, slots=True)
class Graph:
    """Makes instructions.

    Attributes:
        origin: that they stand for; gives them its name and line.
    """

    origin: Instruction

    def apply(self, opcode: str, *operands: Instruction) -> Instruction:
        """An elementwise operation; the result is like the first operand."""
        return self._made(opcode, array_shape(operands[0]).without_layout(), operands)

    def constant(self, value: float, kind: ElementType) -> Instruction:
        """A scalar."""
        shape = ArrayShape(kind, ())
        name, line = f"{self.origin.name}.constant", self.origin.line
        return Instruction(
            name, "constant", shape, literal=Literal(shape, np.array(value, dtype_of(kind))), line=line
        )

    def convert(self, value: Instruction, kind: ElementType) -> Instruction:
        """`value` in an element type."""
        if element_type(value) is kind:
            return value
        return self._made("convert", ArrayShape(kind, array_shape(value).dims), (value,))

    def broadcast(self, value: Instruction, dimensions: Iterable[int], dims: Sequence[int]) -> Instruction:
        """`value`, whose dimensions become the given ones of `dims`."""
        shape = ArrayShape(element_type(value), tuple(dims))
        return self._made("broadcast", shape, (value,), dimensions=tuple(dimensions))

    def sum(self, value: Instruction, dimensions: Iterable[int]) -> Instruction:
        """Over some dimensions."""
        kind, reduced = element_type(value), tuple(dimensions)
        kept = tuple(size for d, size in enumerate(array_shape(value).dims) if d not in reduced)
        operands = (value, self.constant(0, kind))
        return self._made(
            "reduce", ArrayShape(kind, kept), operands, dimensions=reduced, to_apply=_addition(kind)
        )

    def _made(
        self, opcode: str, shape: ArrayShape, operands: Sequence[Instruction], **attributes: AttributeValue
    ) -> Instruction:
        name = f"{self.origin.name}.{opcode}"
        return Instruction(name, opcode, shape, tuple(operands), attributes, line=self.origin.line)


def _addition(kind: ElementType) -> Computation:
    scalar = ArrayShape(kind, ())
    a, b = (Instruction(name, "parameter", scalar, parameter_number=n) for n, name in enumerate("ab"))
    root = Instruction("sum", "add", scalar, (a, b))
    return Computation(f"add.{kind}", [a, b, root], root)


@dataclass(frozen=True, slots=True)
class _Features:
    """Arithmetic on arrays and on one value for each feature.

    Attributes:
        graph: makes the instructions.
        kind: type of the computation.
        dims: of the arrays.
        axis: of the features.
        epsilon: added to variances.
    """

    graph: Graph
    kind: ElementType
    dims: tuple[int, ...]
    axis: int
    epsilon: float

    @classmethod
    def of(cls, instruction: Instruction) -> _Features:
        """Read off the attributes."""
        operand = instruction.operands[0]
        kind = ElementType.F32 if element_type(operand).is_narrow_float else element_type(operand)
        axis = instruction.integer("feature_index")
        # XLA holds the attribute in f32.
        epsilon = float(np.float32(instruction.number("epsilon")))
        return cls(Graph(instruction), kind, array_shape(operand).dims, axis, epsilon)

    def widened(self, operands: Sequence[Instruction]) -> list[Instruction]:
        """The operands in the type of the computation."""
        return [self.graph.convert(operand, self.kind) for operand in operands]

    def finished(self, results: Sequence[Instruction]) -> Value:
        """The results in their declared types."""
        shapes = array_shapes(self.graph.origin.shape)
        parts = tuple(self.graph.convert(r, s.element_type) for r, s in zip(results, shapes))
        return parts if len(parts) > 1 else parts[0]

    def add(self, a: Instruction, b: Instruction) -> Instruction:
        """a + b."""
        return self.graph.apply("add", a, b)

    def subtract(self, a: Instruction, b: Instruction) -> Instruction:
        """a - b."""
        return self.graph.apply("subtract", a, b)

    def multiply(self, a: Instruction, b: Instruction) -> Instruction:
        """a * b."""
        return self.graph.apply("multiply", a, b)

    def spread(self, feature: Instruction) -> Instruction:
        """One value for each feature, over the whole array."""
        return self.graph.broadcast(feature, (self.axis,), self.dims)

    def sum(self, x: Instruction) -> Instruction:
        """Over everything but the features."""
        return self.graph.sum(x, (d for d in range(len(self.dims)) if d != self.axis))

    def mean(self, x: Instruction) -> Instruction:
        """Over everything but the features."""
        features = self.dims[self.axis]
        count = int(np.prod(self.dims)) // features if features else 0
        return self.graph.apply("divide", self.sum(x), self._all(count))

    def factor(self, variance: Instruction) -> Instruction:
        """One over the standard deviation."""
        return self.graph.apply("rsqrt", self.add(variance, self._all(self.epsilon)))

    def normalised(
        self,
        x: Instruction,
        scale: Instruction,
        offset: Instruction,
        mean: Instruction,
        variance: Instruction,
    ) -> Instruction:
        """`x` moved and scaled to the mean `offset` and the standard deviation `scale`."""
        centred = self.subtract(x, self.spread(mean))
        scaled = self.multiply(centred, self.spread(self.multiply(scale, self.factor(variance))))
        return self.add(scaled, self.spread(offset))

    def _all(self, value: float) -> Instruction:
        constant = self.graph.constant(value, self.kind)
        return self.graph.broadcast(constant, (), (self.dims[self.axis],))


@spells("batch-norm-training")
def batch_norm_training(instruction: Instruction, operands: Sequence[Instruction]) -> Value:
    """The normalised array, the mean and the biased variance of each feature."""
    features = _Features.of(instruction)
    x, scale, offset = features.widened(operands)
    mean = features.mean(x)
    centred = features.subtract(x, features.spread(mean))
    variance = features.mean(features.multiply(centred, centred))
    output = features.normalised(x, scale, offset, mean, variance)
    return features.finished([output, mean, variance])


@spells("batch-norm-inference")
def batch_norm_inference(instruction: Instruction, operands: Sequence[Instruction]) -> Value:
    """Normalised by given means and variances."""
    features = _Features.of(instruction)
    x, scale, offset, mean, variance = features.widened(operands)
    return features.finished([features.normalised(x, scale, offset, mean, variance)])


@spells("batch-norm-grad")
def batch_norm_grad(instruction: Instruction, operands: Sequence[Instruction]) -> Value:
    """Gradients with respect to the operand, the scale and the offset of a training step."""
    features = _Features.of(instruction)
    x, scale, mean, variance, grad = features.widened(operands)
    factor = features.factor(variance)
    normalised = features.multiply(features.subtract(x, features.spread(mean)), features.spread(factor))
    product = features.multiply(grad, normalised)
    pulled = features.subtract(grad, features.spread(features.mean(grad)))
    pulled = features.subtract(pulled, features.multiply(normalised, features.spread(features.mean(product))))
    of_operand = features.multiply(pulled, features.spread(features.multiply(scale, factor)))
    return features.finished([of_operand, features.sum(product), features.sum(grad)])


class Precision(enum.Enum):
    """What happens to f16, bf16, f8 and f4 between the operations of one fusion.

    HLO rounds after every operation, as HLO says. WIDE keeps them in f32 and rounds what the fusion stores,
    as XLA may do (float_normalization.cc, simplify_fp_conversions.cc; `--xla_allow_excess_precision`), and
    as the numpy backend does with option `excess`: conversions to a narrow type inside of the fusion round
    nothing, either, while `reduce-precision` does.
    """

    HLO = "hlo"
    WIDE = "wide"


def precision_of(backend: str, options: Options) -> Precision:
    """What option `precision` of a backend's spec says.

    Raises:
        UsageError: there is no such precision.
    """
    name = options.get("precision", Precision.HLO.value)
    if name not in {p.value for p in Precision}:
        raise UsageError(f"backend {backend}: precision={name} is neither hlo nor wide")
    return Precision(name)


def widened(computation: Computation) -> tuple[dict[Instruction, Value], tuple[Instruction, ...]]:
    """Values of a fused computation in f32 where they are narrower, and its results in their declared types.

    Returns:
        What the instructions are worth, as `expanded`, and the arrays of the result.

    Raises:
        NotGenerated: as `expanded`.
    """
    retyped = without_narrow_floats(Module("fusion", [computation], computation))
    copy = retyped.module.entry
    arguments = [_converted(p, c) for p, c in zip(computation.parameters, copy.parameters)]
    values = expanded(copy, arguments)
    results = zip(leaves_of(values[copy.root]), leaves_of(computation.root))
    origins = {copied: origin for copied, origin in retyped.origins.items() if copied in values}
    seen = {origin: _declared(values[copied], origin) for copied, origin in origins.items()}
    return seen, tuple(_converted(value, declared) for value, declared in results)


def _declared(value: Value, origin: Instruction) -> Value:
    return _converted(value, origin) if isinstance(value, Instruction) else value


def _converted(value: Instruction, like: Instruction) -> Instruction:
    """`value` in the element type of another array."""
    if not isinstance(value.shape, ArrayShape) or not isinstance(like.shape, ArrayShape):
        return value
    if value.shape.element_type is like.shape.element_type:
        return value
    return Instruction(f"{value.name}.as.{like.shape.element_type}", "convert", like.shape, (value,))
