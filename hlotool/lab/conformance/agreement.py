"""When values agree: tolerances by opcode and element type, known departures of XLA, and the comparison."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hlotool.facts.float_order import epsilon, ulp_distance
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType

#: What a unit in the last place is measured at: the element itself, or the largest element of the array.
MEASURES = ("value", "leaf", "terms")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart floats may be.

    Attributes:
        ulps: units in the last place; 0 asks for equality (all NaN are equal, the zeros are not).
        of: the magnitude whose last place counts. `value`: the element's own, of a complex number that of
            its larger part. `leaf`: the largest finite one of the array. `terms`: given from outside, the
            sum of the absolute terms that were added up.
        bits: NaN payloads count, too.
    """

    ulps: float = 0
    of: str = "value"
    bits: bool = False

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """`exact`, `bits`, `4 ulp`, `4 ulp of leaf`; raises ValueError for anything else."""
        if text in ("exact", "bits"):
            return cls(bits=text == "bits")
        found = re.fullmatch(r"(\d+) ulp(?: of (\w+))?", text)
        if not found or found[2] not in (None, *MEASURES):
            raise ValueError(f"tolerance {text!r}")
        return cls(int(found[1]), found[2] or "value")


EXACT = Tolerance()


def wrong(
    expected: Array,
    actual: Array,
    kind: ElementType,
    tolerance: Tolerance = EXACT,
    scale: Array | None = None,
) -> Array:
    """Where `actual` is further from `expected` than `tolerance` allows.

    Args:
        expected: an array of element type `kind`.
        actual: as `expected`.
        kind: element type of both.
        tolerance: ignored for integers and pred, which must be equal.
        scale: for `terms`: magnitudes that broadcast to the array.
    """
    assert expected.dtype == actual.dtype, f"{actual.dtype} instead of {expected.dtype}"
    assert expected.shape == actual.shape, f"{actual.shape} instead of {expected.shape}"
    if tolerance.bits:
        return other_bits(expected, actual)
    unequal = differing(actual, expected)
    if not tolerance.ulps or not kind.is_inexact or not unequal.any():
        return unequal
    return unequal & ~_close(expected, actual, kind, tolerance, scale)


def other_bits(one: Array, other: Array) -> Array:
    """Where two arrays of one dtype differ in a bit, also of a NaN."""
    size = one.dtype.itemsize
    a, b = (np.ascontiguousarray(array).reshape(*array.shape, 1).view(np.uint8) for array in (one, other))
    return np.asarray((a != b).reshape(*one.shape, size).any(axis=-1))


@np.errstate(all="ignore")
def distances(
    expected: Array, actual: Array, kind: ElementType, of: str = "value", scale: Array | None = None
) -> Array:
    """How far `actual` is off in units in the last place, elementwise; 0 where one of the two is not finite.

    Args:
        expected: an array of element type `kind`, a float or complex one.
        actual: as `expected`.
        kind: element type of both.
        of: whose last place it is, as of a `Tolerance`.
        scale: as of `wrong`.

    Returns:
        f64 numbers; of a complex number those of the part that is further off.
    """
    if of == "value" and not kind.is_complex:
        steps = ulp_distance(expected, actual, kind).astype(np.float64)
        return np.where(np.isfinite(_wide(expected)) & np.isfinite(_wide(actual)), steps, 0.0)
    unit = epsilon(kind) * _magnitude(expected, of, scale)
    parts: Sequence[tuple[Array, Array]] = ((expected, actual),)
    if kind.is_complex:
        parts = ((expected.real, actual.real), (expected.imag, actual.imag))
    gaps = [np.abs(_wide(e) - _wide(a)) / np.where(unit > 0, unit, 1.0) for e, a in parts]
    largest: Array = np.maximum.reduce([np.where(np.isfinite(gap), gap, 0.0) for gap in gaps])
    return largest


@np.errstate(all="ignore")
def _close(
    expected: Array, actual: Array, kind: ElementType, tolerance: Tolerance, scale: Array | None
) -> Array:
    if tolerance.of == "value" and not kind.is_complex:
        either_nan = np.isnan(_wide(expected)) | np.isnan(_wide(actual))
        both_zero = (_wide(expected) == 0) & (_wide(actual) == 0)
        near = np.asarray(ulp_distance(expected, actual, kind) <= tolerance.ulps)
        near &= ~either_nan & ~both_zero
        return near
    magnitude = _magnitude(expected, tolerance.of, scale)
    bound = tolerance.ulps * epsilon(kind) * magnitude
    if not kind.is_complex:
        return _near(_wide(expected), _wide(actual), bound)
    parts = ((expected.real, actual.real), (expected.imag, actual.imag))
    both: Array = np.logical_and.reduce([_near(_wide(e), _wide(a), bound) for e, a in parts])
    return both


def _near(expected: Array, actual: Array, bound: Array) -> Array:
    """Finite and within `bound`, or the same infinity or NaN."""
    same: Array = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    finite: Array = np.isfinite(expected) & np.isfinite(actual) & (np.abs(expected - actual) <= bound)
    return np.asarray(same | finite)


def _magnitude(expected: Array, of: str, scale: Array | None) -> Array:
    size = _size(expected)
    if of == "value":
        return size
    largest = np.asarray(size[np.isfinite(size)].max(initial=0))
    if of == "leaf" or scale is None:
        return largest
    terms = _size(scale)
    return np.where(np.isfinite(terms), terms, largest)


def _size(array: Array) -> Array:
    """Absolute values in f64, of complex numbers those of their larger part."""
    if array.dtype.kind == "c":
        return np.maximum(np.abs(_wide(array.real)), np.abs(_wide(array.imag)))
    return np.abs(_wide(array))


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


@np.errstate(all="ignore")
def differing(ours: Array, theirs: Array) -> Array:
    """Where two arrays differ in a bit; all NaN are equal."""
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if ours.dtype.kind == "c":
        return differing(ours.real.copy(), theirs.real.copy()) | differing(
            ours.imag.copy(), theirs.imag.copy()
        )
    bits = np.dtype(f"u{ours.dtype.itemsize}")
    unequal: Array = ours.view(bits) != theirs.view(bits)
    if is_float(ours):
        unequal &= ~(np.isnan(ours.astype(np.float64)) & np.isnan(theirs.astype(np.float64)))
    return unequal


def is_float(array: Array) -> bool:
    """Whether an array holds real floating-point numbers, narrow ones included."""
    return array.dtype.kind == "f" or "float" in array.dtype.name


@np.errstate(all="ignore")
def flushed(ours: Array, theirs: Array, operands: list[Array]) -> Array:
    """Where a subnormal operand, or a subnormal result that XLA made zero, explains a difference."""
    if ours.dtype.kind == "c":
        parts = ((ours.real.copy(), theirs.real.copy()), (ours.imag.copy(), theirs.imag.copy()))
        found: Array = np.logical_or.reduce([flushed(a, b, operands) for a, b in parts])
        return found
    excused = np.zeros(ours.shape, np.bool_)
    for operand in operands:
        if is_float(operand) and operand.dtype != np.float16:
            excused |= subnormal(operand)
    if is_float(ours) and ours.dtype != np.float16:
        excused |= subnormal(ours) & ((theirs == 0) | np.isnan(theirs.astype(np.float64)))
    return excused


def subnormal(array: Array) -> Array:
    """Where the type that computes (f32, or f64) has only subnormals for the value."""
    tiny = np.finfo(np.float64 if array.dtype == np.float64 else np.float32).smallest_normal
    wide = np.abs(array.astype(np.float64))
    found: Array = (wide != 0) & (wide < tiny)
    return found


TOLERANCES_FILE = Path(__file__).with_name("tolerances.toml")


def rows() -> list[dict[str, Any]]:
    """The rows of the file, each with opcodes, types, ulps and a reason."""
    found: list[dict[str, Any]] = tomllib.loads(TOLERANCES_FILE.read_text(encoding="utf-8"))["tolerance"]
    return found


@cache
def tolerances() -> dict[tuple[str, str], Tolerance]:
    """By opcode and element type of the result; what is not listed must be equal."""
    table = {}
    for row in rows():
        for opcode in row["opcodes"]:
            for kind in row["types"]:
                if (opcode, kind) in table:
                    raise ValueError(f"{TOLERANCES_FILE.name} has {opcode} of {kind} twice")
                table[opcode, kind] = Tolerance(row["ulps"], row.get("of", "value"))
    return table


def tolerance(opcode: str, kind: ElementType) -> Tolerance:
    """How far floats of `kind` may be apart."""
    return tolerances().get((opcode, kind.value), EXACT)


DEPARTURES_FILE = Path(__file__).with_name("departures.toml")


@dataclass(frozen=True, slots=True)
class Departure:
    """One known difference, which is no fault of the program that shows it.

    Attributes:
        id: short name.
        side: `cpu` (XLA's CPU code generator and its passes), `evaluator` (XLA's HloEvaluator, which also
            folds constants), `gpu` or `tpu` (their compilers).
        opcodes: where it shows.
        types: element types that are concerned, in words.
        xla: what XLA gives.
        ours: what the numpy backend gives.
        until: the first version of jaxlib in which some of its cases do not show it any more.
        predicate: function of `predicates` that says which elements it explains; None where
            random tests do not meet it.
        example: a module that shows it; None where a spec case does, or a predicate alone.
    """

    id: str
    side: str
    opcodes: tuple[str, ...]
    types: str
    xla: str
    ours: str
    until: tuple[int, ...] | None = None
    predicate: str | None = None
    example: Example | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A module and HLO literal text: of its inputs, of our result, of XLA's; debug options for XLA."""

    text: str
    inputs: tuple[str, ...]
    ours: str
    xla: str
    options: dict[str, Any] = field(default_factory=dict)


def _read() -> dict[str, Departure]:
    rows = tomllib.loads(DEPARTURES_FILE.read_text(encoding="utf-8"))["departure"]
    return {row["id"]: Departure(**_typed(row)) for row in rows}


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    example = row.get("example")
    if example is not None:
        example = Example(**{**example, "inputs": tuple(example["inputs"])})
    until = tuple(row["until"]) if "until" in row else None
    return {**row, "opcodes": tuple(row["opcodes"]), "until": until, "example": example}


DEPARTURES = _read()
