"""Attributes of an instruction, checked by the opcode table: allowed, complete, of possible values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from hlotool.ir.attribute_kinds import COMMON_ATTRIBUTES, Kind
from hlotool.ir.attributes import Metadata, RawText
from hlotool.ir.opcodes import OPCODES, attribute_kind
from hlotool.parser.text.syntax import (
    AnonymousComputation,
    AttributeSyntax,
    CalleeName,
    OtherValue,
    Predecessors,
    Span,
    TextError,
    TypedLiteral,
    TypedLiteralTuple,
)

#: Instruction attributes of older XLA, accepted and carried as text unless the reader is strict.
OBSOLETE_ATTRIBUTES = frozenset(
    {
        "all_reduce_barrier", "all_reduce_id", "async_group_id", "barrier", "is_cross_program_prefetch",
        "opaque", "shard_count", "sparsity",
    }
)  # fmt: skip

#: What older printers write where nothing is said, which XLA's parser does not take today.
UNSAID: Mapping[str, str] = {"api_version": "API_VERSION_UNSPECIFIED"}

#: Values that are meant where the attribute is missing, and older parsers do not take the attribute.
_IMPLIED: Mapping[tuple[str, str], object] = {
    ("collective-broadcast", "has_dynamic_root"): False,
    ("compare", "order"): "PARTIAL",
    ("topk", "is_stable"): True,
}

#: Attributes whose words may be written in any case. XLA: hlo_instruction.cc, StringToEnum.
_ANY_CASE = frozenset(("algorithm", "api_version", "distribution", "operand_precision", "schedule"))

#: Words that an attribute may have as its value; `(opcode, attribute)` where it depends on the opcode.
ENUMERATIONS: Mapping[str | tuple[str, str], tuple[str, ...]] = {
    "api_version": (
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    ),
    "convolution_kind": ("unset", "fprop", "wgrad", "dgrad"),
    "direction": ("EQ", "NE", "LT", "LE", "GT", "GE"),
    "distribution": ("rng_uniform", "rng_normal"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "kind": ("kLoop", "kInput", "kOutput", "kCustom"),
    "mode": ("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id"),
    "operand_precision": ("default", "high", "highest"),
    "order": ("TOTAL", "PARTIAL"),
    "padding_type": ("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"),
    "schedule": ("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
    "transpose_a": ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "type": ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    ("rng-bit-generator", "algorithm"): ("rng_default", "rng_three_fry", "rng_philox"),
    "algorithm": (
        "unset",
        "dot_any_f8_any_f8_f32",
        "dot_any_f8_any_f8_f32_fast_accum",
        "dot_f16_f16_f16",
        "dot_f16_f16_f32",
        "dot_bf16_bf16_bf16",
        "dot_bf16_bf16_f32",
        "dot_bf16_bf16_f32_x3",
        "dot_bf16_bf16_f32_x6",
        "dot_bf16_bf16_f32_x9",
        "dot_tf32_tf32_f32",
        "dot_tf32_tf32_f32_x3",
        "dot_f32_f32_f32",
        "dot_f64_f64_f64",
        "dot_bf16_bf16_fp8x3",
        "dot_bf16_bf16_fp8x4",
    ),
}


class BoundAttributes(NamedTuple):
    """Checked attributes of one instruction; nothing in them depends on where it stands.

    Attributes:
        values: those whose value is final.
        pending: those that need names or the source: computations, literals, carried text.
        predecessors: `control-predecessors`.
        metadata: `metadata`.
    """

    values: Mapping[str, Any]
    pending: tuple[AttributeSyntax, ...] = ()
    predecessors: Predecessors | None = None
    metadata: Metadata | None = None


#: Kinds whose values are what they are, whatever the opcode.
_FINAL = frozenset(
    {
        Kind.BACKEND_CONFIG, Kind.BOOL, Kind.DIM_LABELS, Kind.FRONTEND, Kind.INSTRUCTIONS, Kind.INT,
        Kind.INTS, Kind.METADATA, Kind.PADDING, Kind.SHARDING, Kind.SLICE, Kind.STRING, Kind.WINDOW,
    }
)  # fmt: skip
_PENDING = (AnonymousComputation, CalleeName, Span, TypedLiteral, TypedLiteralTuple)


def bind(
    opcode: str, attributes: Iterable[AttributeSyntax], position: int, strict: bool, also: Iterable[str] = ()
) -> BoundAttributes:
    """Check `attributes` of an instruction.

    Args:
        opcode: of the table.
        attributes: as written.
        position: of the instruction, for what is missing.
        strict: reject attributes that XLA has given up.
        also: attributes that are allowed besides those of the opcode.

    Raises:
        TextError: an attribute repeats, is not allowed, is missing, or has an impossible value.
    """
    values: dict[str, Any] = {}
    pending: list[AttributeSyntax] = []
    kinds, unchecked = _kinds(opcode)
    seen: set[str] = set()
    for attribute in attributes:
        key, value, at = attribute
        if key in seen:
            raise TextError(f"the attribute {key} is given twice", at)
        seen.add(key)
        if key in unchecked:
            values[key] = value
            continue
        if key in UNSAID and not strict and UNSAID[key] == value:
            continue
        if _IMPLIED.get((opcode, key)) == value:
            continue
        kind = kinds.get(key)
        if kind is None and key not in also:
            values[key] = _obsolete(opcode, attribute, strict)
        elif isinstance(value, _PENDING) or _is_list_of_callees(value):
            pending.append(attribute)
        else:
            values[key] = _checked_value(opcode, kind, attribute)
    for key in OPCODES[opcode].required:
        if key not in seen:
            raise TextError(f"the attribute {key} of {opcode} is missing", position)
    if opcode == "compare" and "order" in seen:
        _with_order(values, seen, position)
    predecessors, metadata = values.pop("control-predecessors", None), values.pop("metadata", None)
    return BoundAttributes(values, tuple(pending), predecessors, metadata)


def _with_order(values: dict[str, Any], seen: set[str], position: int) -> None:
    """Put the order of a comparison as every version of XLA reads it: as its type."""
    if "type" in seen:
        raise TextError("compare has a type or an order, not both", position)
    if values.pop("order", "PARTIAL") == "TOTAL":
        values["type"] = "TOTALORDER"


@cache
def _kinds(opcode: str) -> tuple[Mapping[str, Kind | None], frozenset[str]]:
    """How each attribute that the opcode takes is written, and those whose value needs no further look."""
    keys = (*COMMON_ATTRIBUTES, *OPCODES[opcode].attributes)
    kinds = {key: attribute_kind(opcode, key) for key in keys}
    looked_at = {*UNSAID, "slice_sizes", *(key for of, key in _IMPLIED if of == opcode)}
    return kinds, frozenset(key for key, kind in kinds.items() if kind in _FINAL and key not in looked_at)


def _is_list_of_callees(value: object) -> bool:
    return (
        isinstance(value, tuple) and bool(value) and isinstance(value[0], (CalleeName, AnonymousComputation))
    )


def _obsolete(opcode: str, attribute: AttributeSyntax, strict: bool) -> RawText:
    """The text of an attribute that only older XLA knows; an error for any other."""
    key, value, at = attribute
    if key in OBSOLETE_ATTRIBUTES and isinstance(value, OtherValue) and not strict:
        return RawText(value.text)
    own = ", ".join(sorted(OPCODES[opcode].attributes)) or "none of its own"
    common = ", ".join(sorted(COMMON_ATTRIBUTES))
    raise TextError(
        f'unexpected attribute "{key}"; {opcode} takes {own}; every instruction takes {common}', at
    )


def _checked_value(opcode: str, kind: Kind | None, attribute: AttributeSyntax) -> Any:
    """The value: words must be known, and lists of lists stand only where the opcode takes them."""
    key, value, at = attribute
    if kind is Kind.ENUM:
        return _known_word(opcode, key, value, at)
    if kind is Kind.ENUMS:
        return tuple(_known_word(opcode, key, word, at) for word in value)
    if key == "slice_sizes" and value and isinstance(value[0], tuple) is (kind is Kind.INTS):
        form = "a list of numbers" if kind is Kind.INTS else "lists of numbers"
        raise TextError(f"slice_sizes of {opcode} is {form}", at)
    return value


def _known_word(opcode: str, key: str, word: str, at: int) -> str:
    """A word in the case in which XLA prints it."""
    allowed = ENUMERATIONS.get((opcode, key)) or ENUMERATIONS[key]
    if word in allowed:
        return word
    if key in _ANY_CASE:
        for known in allowed:
            if known.lower() == word.lower():
                return known
    raise TextError(f"{word} is not a value of {key}, which is one of {', '.join(allowed)}", at)
