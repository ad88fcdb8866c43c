"""Batch normalisation and its gradient as sums and elementwise operations.

Narrow floats are computed in f32. XLA: operation_semantics.md#batchnormtraining, #batchnorminference,
#batchnormgrad; batchnorm_expander.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.backends.cuda.codegen.elements import array_shape, element_type
from hlotool.backends.cuda.codegen.expansion import Graph, Value, spells
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, array_shapes


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
