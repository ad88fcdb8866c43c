"""Comparisons and selections (PTX ISA, "Comparison and Selection Instructions", half-precision ones, too)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.lowering import Reader, Site, Step, Writer, elementwise, executes
from hlotool.backends.gpu_ptx.model import Operand, Pair
from hlotool.backends.gpu_ptx.operations.floats import flushed
from hlotool.backends.gpu_ptx.types import Type, Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

Relation = Callable[[Values, Values], Values]

PREDICATE = type_of("pred")
_ORDERED: dict[str, Relation] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
#: Of unsigned integers.
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_FLOAT = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_COMBINE: dict[str, Relation] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _nan(a: Values, b: Values) -> Values:
    return (a != a) | (b != b)


def relation(word: str, floats: bool) -> Relation:
    """The comparison that a word names; of floats, NaN is related to nothing but by the words with `u`."""
    if not floats:
        return _ORDERED[_UNSIGNED.get(word, word)]
    if word == "num":
        return lambda a, b: ~_nan(a, b)
    if word == "nan":
        return _nan
    plain = _ORDERED[word[:2]]
    if word.endswith("u"):
        return plain if word == "neu" else lambda a, b: plain(a, b) | _nan(a, b)
    return plain if word != "ne" else lambda a, b: plain(a, b) & ~_nan(a, b)


def _compared(site: Site, kind: Type) -> tuple[list[Reader], Relation, str | None]:
    """What reads both operands, how they are compared, and the word that combines the result with a third."""
    words = site.accept(*_ORDERED, *_UNSIGNED, *_FLOAT, *_COMBINE, "ftz")
    compare = relation(words[0], kind.kind == "f")
    combine = next((word for word in words[1:] if word in _COMBINE), None)
    if "ftz" in words and kind.element == "f32":
        plain = compare
        compare = lambda a, b: plain(flushed(a), flushed(b))  # noqa: E731
    return [site.read(1, kind), site.read(2, kind)], compare, combine


@executes("setp")
def compare(site: Site) -> Step:
    """One or two predicates: the comparison, its opposite, each combined with a third predicate; of `x2` one
    for each half.
    """
    kind = site.type()
    if kind.kind == "b" and kind.bits < 16:
        raise site.unsupported("this type is not known")
    reads, related, combine = _compared(site, kind)
    first, second = _destinations(site.operands[0])
    writes: list[Writer] = [site.writer(first, PREDICATE)]
    if second is not None:
        writes.append(site.writer(second, PREDICATE))
    third = site.read(3, PREDICATE) if combine else None
    packed = kind.lanes > 1

    def step(machine: Machine) -> None:
        found = related(reads[0](machine), reads[1](machine))
        if packed:
            results = [row if len(row) > 1 else row[0] for row in found]
        else:
            results = [found, ~found] if len(writes) > 1 else [found]
        if third is not None and combine is not None:
            other = third(machine)
            results = [_COMBINE[combine](one, other) for one in results]
        for write, one in zip(writes, results):
            write(machine, one if packed is False else one.copy())

    return step


def _destinations(operand: Operand) -> tuple[Operand, Operand | None]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)


@executes("set")
def compare_into_register(site: Site) -> Step:
    """All bits set, or 1.0, where the comparison holds; else zero."""
    kind = type_of(site.types[-1])
    result = type_of(site.types[0])
    if kind.lanes > 1 or result.lanes > 1:
        lanes = type_of(f"u{result.bits // result.lanes}x2") if result.kind != "f" else result
        return _compare_packed(site, kind, lanes)
    reads, related, combine = _compared(site, kind)
    write = site.write(0, result)
    third = site.read(3, PREDICATE) if combine else None
    if result.kind == "f":
        true, false = np.float64(1) if result.bits == 64 else np.float32(1), np.float32(0)
    else:
        true, false = result.unsigned((1 << result.bits) - 1), result.unsigned(0)

    def step(machine: Machine) -> None:
        found = related(reads[0](machine), reads[1](machine))
        if third is not None and combine is not None:
            found = _COMBINE[combine](found, third(machine))
        values = np.where(found, true, false)
        if result.kind == "s":
            values = values.view(np.dtype(f"i{result.bits // 8}"))
        write(machine, values if values.ndim else values[()])

    return step


def _compare_packed(site: Site, kind: Type, result: Type) -> Step:
    """`set.f16x2.f16x2` and `set.u32.f16x2`: half by half."""
    words = site.accept(*_ORDERED, *_FLOAT, "ftz")
    if result.kind == "f":
        related = relation(words[0], True)
        return elementwise(site, result, [kind, kind], lambda a, b: related(a, b).astype(np.float32))
    raise site.unsupported("these types are not known together")


@executes("selp")
def select(site: Site) -> Step:
    """The first operand where the predicate holds, else the second."""
    site.accept()
    kind = site.type()
    bits = type_of(f"b{kind.bits}")
    return elementwise(site, bits, [bits, bits, PREDICATE], lambda a, b, p: np.where(p, a, b))


@executes("slct")
def select_by_sign(site: Site) -> Step:
    """The first operand where the third is not negative, else the second; NaN counts as negative."""
    site.accept("ftz")
    kind, sign = type_of(f"b{type_of(site.types[0]).bits}"), type_of(site.types[-1])
    return elementwise(site, kind, [kind, kind, sign], lambda a, b, c: np.where(c >= 0, a, b))
