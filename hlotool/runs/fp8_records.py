"""What a program loses to float8, as plain data."""

from __future__ import annotations

from hlotool.system.records import Record, SourceRecord


class Fp8TensorRecord(Record, frozen=True, kw_only=True):
    """A tensor of a float8 type, over all its executions.

    Attributes:
        tensor: name of the instruction that makes it, once calls and fusions are inlined.
        type: such as `f8e4m3fn`.
        shape: with the type.
        made_by: `conversion`, or the opcode of what else makes it: `parameter`, `custom-call`, ….
        executions: how often it was made.
        total: elements, of all executions.
        limit: the largest finite number of the type.
        amax: the largest finite magnitude before it is scaled and rounded.
        scaled_amax: the same once it is scaled, before a clamp.
        scaling: of a conversion: `none`; `constant`; `dynamic`, from its own amax; `delayed`, from an
            argument or what arguments say of earlier steps.
        divides: the tensor is divided by the scale, not multiplied.
        clamped: to the range of the type, before it is rounded.
        least_scale: the smallest one; null where there is none.
        largest_scale: the largest one, likewise.
        underflow: elements that became zero and were not.
        subnormal: elements below the smallest normal number.
        saturated: elements beyond the range, that became its end.
        overflow: elements that became infinite or NaN and were not.
        not_finite: elements that were infinite or NaN before.
        error: root mean square of what rounding changed, relative to that of the tensor; null where it is
            no conversion.
        read_by: products that read it.
        source: where it comes from.
    """

    tensor: str
    type: str
    shape: str
    made_by: str
    executions: int
    total: int
    limit: float
    amax: float
    scaled_amax: float
    scaling: str = ""
    divides: bool = False
    clamped: bool = False
    least_scale: float | None = None
    largest_scale: float | None = None
    underflow: int = 0
    subnormal: int = 0
    saturated: int = 0
    overflow: int = 0
    not_finite: int = 0
    error: float | None = None
    read_by: list[str] = []
    source: SourceRecord


class Fp8ProductRecord(Record, frozen=True, kw_only=True):
    """A product that reads tensors of float8, in its first execution.

    Attributes:
        product: name of the instruction.
        opcode: or the target of the custom call.
        shape: of the result.
        factors: tensors of float8 that it reads.
        scaled_before: a factor is multiplied by its scale before the product.
        error: root mean square of what the rounding of the factors changes in the result, relative to that of
            the result; null where something is not finite, or it could not be computed.
        error_bf16: the same, were these factors bf16.
        error_f16: f16.
        error_f32: f32.
        missing: why it could not be computed.
        source: where it comes from.
    """

    product: str
    opcode: str
    shape: str
    factors: list[str]
    scaled_before: bool = False
    error: float | None = None
    error_bf16: float | None = None
    error_f16: float | None = None
    error_f32: float | None = None
    missing: str = ""
    source: SourceRecord


class Fp8Record(Record, frozen=True, kw_only=True):
    """What a program loses to float8.

    Attributes:
        tensors: of float8 types.
        products: that read them.
    """

    tensors: list[Fp8TensorRecord] = []
    products: list[Fp8ProductRecord] = []
