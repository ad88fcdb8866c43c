"""Convolutions with a graph of pointwise operations behind them, which cuDNN compiles together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.backend_configs import Config, read_config
from hlotool.backends.numpy.contraction import rounded, widened
from hlotool.backends.numpy.convolution_call import read_convolution
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.library_results import assembler
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.post_ops import elu, relu
from hlotool.backends.numpy.precision import compute_dtype, limited
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ELEMENT_TYPES, ElementType
from hlotool.numerics.retyping import declared_types, is_retyped

_OPERATION = re.compile(r"(\d+):\[(\w+)\](\w+)\(([\d,]*)\);")

_UNARY: Mapping[str, Callable[[Array], Array]] = {"relu": relu, "elu": elu}
_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "scale": np.multiply,
    "invscale": np.divide,
    "min": floats.minimum,
    "max": floats.maximum,
}

_POINTWISE: Mapping[str, Callable[..., Any]] = {**_UNARY, **_BINARY}


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation of a serialized graph.

    Attributes:
        uid: its number.
        kind: element type of its value.
        name: what it does.
        inputs: numbers of the operations it reads; a second input that is not among them is an operand.
    """

    uid: int
    kind: ElementType
    name: str
    inputs: tuple[int, ...]

    @property
    def takes_operand(self) -> bool:
        """Whether it reads an operand of the call besides what is in the graph."""
        return self.name in _BINARY and len(self.inputs) == 1

    def apply(self, values: Sequence[Array]) -> Array:
        """Its value in the type of the computation, which is then rounded."""
        if self.name == "amax":
            return np.asarray(np.abs(values[0]).max(initial=0))
        return np.asarray(_POINTWISE[self.name](*values))

    def rounded(self, value: Array, kind: ElementType) -> Array:
        """`value` as the operation passes it on, of type `kind`: of an f8 operation within its range."""
        return rounded(limited(value, self.kind) if self.kind.bits == 8 else value, kind)


@custom_call("__cudnn$convForwardGraph", widens=True)
def convolve_graph(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Convolution, then the operations of `serialized_graph`, each computed in f32 and rounded to its type.

    Operands: input, kernel, then what binary operations read from outside, in the order of the graph.
    Results: the value that nothing in the graph reads, largest magnitudes (`amax`), workspace.

    XLA: service/gpu/transforms/cudnn_fused_conv_rewriter.cc (GraphString), stream_executor/cuda/cuda_dnn.cc.
    """
    call = read_convolution(instruction, lowering, "iko")
    first, *operations = _read_graph(read_config(instruction, lowering, "cudnn_conv_backend_config"))
    final = _final(operations, first, lowering, instruction)
    kinds = instruction.operand_types
    if len(kinds) != 2 + sum(operation.takes_operand for operation in operations):
        raise lowering.unsupported(instruction, f"a convolution graph for other than {len(kinds)} operands")
    if declared_types(instruction)[1][0] is not final.kind:
        raise lowering.unsupported(instruction, f"a convolution graph that ends in {final.kind}")
    assemble = assembler(instruction, lowering)
    is_wide = is_retyped(instruction)
    held = {
        o.uid: ElementType.F64 if is_wide and o.kind.is_floating else o.kind for o in (first, *operations)
    }

    def kernel(*operands: Array) -> object:
        values = {first.uid: first.rounded(call.forward(operands[0], operands[1]), held[first.uid])}
        outside = iter(zip(operands[2:], kinds[2:]))
        for operation in operations:
            inputs = [_wide(values[uid], held[uid]) for uid in operation.inputs]
            if operation.takes_operand:
                inputs.append(_wide(*next(outside)))
            values[operation.uid] = operation.rounded(operation.apply(inputs), held[operation.uid])
        maxima = [values[operation.uid] for operation in operations if operation.name == "amax"]
        return assemble([values[final.uid], *maxima])

    return kernel


def _wide(value: Array, kind: ElementType) -> Array:
    return widened(value, kind, compute_dtype(kind))


def _final(
    operations: Sequence[_Operation], first: _Operation, lowering: Lowering, instruction: Instruction
) -> _Operation:
    """The operation whose value is the first result."""
    read = {uid for operation in operations for uid in operation.inputs if operation.name != "amax"}
    ends = [o for o in (first, *operations) if o.uid not in read and o.name != "amax"]
    if len(ends) != 1:
        raise lowering.unsupported(instruction, f"a convolution graph with {len(ends)} ends")
    return ends[0]


def _read_graph(config: Config) -> list[_Operation]:
    """The operations of a serialized graph, in order, the convolution first.

    Raises:
        Unsupported: an operation or a type that is not known.
    """
    text = config.text("serialized_graph")
    operations = list(_operations(text, config))
    known = "".join(match.group(0) for match in _OPERATION.finditer(text)) == text
    if not operations or not known or operations[0].name != "conv":
        raise config.unsupported(f"serialized_graph {text!r}")
    return operations


def _operations(text: str, config: Config) -> Iterator[_Operation]:
    names = {"conv", "amax", *_POINTWISE}
    for uid, kind, name, inputs in _OPERATION.findall(text):
        if name not in names or kind not in ELEMENT_TYPES:
            raise config.unsupported(f"operation {kind} {name} in a convolution graph")
        numbers = tuple(int(number) for number in inputs.split(",") if number)
        yield _Operation(int(uid), ELEMENT_TYPES[kind], name, numbers)
