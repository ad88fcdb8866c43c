"""Every elementwise operation of every element type, against the numpy reference at corner values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.differential import leaves
from support.elementwise import corner_pairs
from support.kernels import differing, emulator, needs_compiler, on_numpy

from hlotool.facts.float_order import ulp_distance
from hlotool.ir.types import ELEMENT_TYPES, ElementType, TypeClass
from hlotool.parser.reader import parse_module

pytestmark = needs_compiler

_EXACT = {
    TypeClass.FLOATING: "add subtract multiply divide maximum minimum abs negate sign floor ceil sqrt copy "
    "round-nearest-even round-nearest-afz is-finite remainder",
    TypeClass.SIGNED: "add subtract multiply divide remainder power mulhi maximum minimum and or xor not abs "
    "negate sign shift-left shift-right-logical shift-right-arithmetic popcnt count-leading-zeros copy",
    TypeClass.PRED: "add multiply and or xor not maximum minimum copy",
    TypeClass.COMPLEX: "add subtract negate copy",
}
_EXACT[TypeClass.UNSIGNED] = _EXACT[TypeClass.SIGNED].replace("abs negate sign ", "")
#: Functions of two libraries; each is within 4 units in the last place of the mathematical value.
_NEAR = (
    "exponential exponential-minus-one log log-plus-one sine cosine tanh logistic rsqrt cbrt atan2 erf asinh "
    "acosh atanh asin acos sinh cosh power"
)
_NEAR_ULPS = 8
_ONE_OPERAND = (
    "abs negate sign floor ceil sqrt copy not popcnt count-leading-zeros is-finite round-nearest-even "
    "round-nearest-afz exponential exponential-minus-one log log-plus-one sine cosine tanh logistic rsqrt "
    "cbrt erf asinh acosh atanh asin acos sinh cosh"
)
_UNARY = set(_ONE_OPERAND.split())
_TYPES = list(ELEMENT_TYPES)
#: One of each kind; the others take a long compilation.
_QUICK = ("pred", "s4", "u8", "s32", "f8e4m3fn", "bf16", "f32", "c64")


def _operations(kind: ElementType, types: Sequence[str]) -> list[tuple[str, str]]:
    """Lines of the fused computation with their result types; operands are a and b."""
    names = _EXACT[kind.family].split()
    if kind in (ElementType.F32, ElementType.F64, ElementType.BF16):
        names += _NEAR.split()
    found = []
    for name in names:
        result = "pred" if name == "is-finite" else kind.value
        found.append((result, f"{name}({'a' if name in _UNARY else 'a, b'})"))
    directions = ["EQ", "NE"] if kind.is_complex else ["EQ", "NE", "LT", "LE", "GT", "GE"]
    found += [("pred", f"compare(a, b), direction={d}") for d in directions]
    if kind.is_floating:
        found.append(("pred", "compare(a, b), direction=LT, type=TOTALORDER"))
        found += [(kind.value, "clamp(a, b, a)")]
    if kind.is_complex:
        found.append((kind.real_part.value, "real(a)"))
    else:
        targets = [t for t in types if not ELEMENT_TYPES[t].is_complex and t != kind.value]
        found += [(t, "convert(a)") for t in targets]
    return found


def _module(types: Sequence[str]) -> tuple[str, list[Any], list[tuple[str, str]]]:
    """One fusion for each type."""
    texts, entry, arguments, labels, results = [], [], [], [], []
    for number, name in enumerate(types):
        a, b = corner_pairs(name, 600)
        operations = _operations(ELEMENT_TYPES[name], types)
        size = len(a)
        body = [f"a = {name}[{size}] parameter(0)", f"b = {name}[{size}] parameter(1)"]
        body += [f"v{i} = {kind}[{size}] {text}" for i, (kind, text) in enumerate(operations)]
        shapes = ", ".join(f"{kind}[{size}]" for kind, _ in operations)
        body.append(f"ROOT r = ({shapes}) tuple({', '.join(f'v{i}' for i in range(len(operations)))})")
        texts.append(f"fused{number} {{\n" + "\n".join(body) + "\n}\n")
        entry += [f"a{number} = {name}[{size}] parameter({2 * number})"]
        entry += [f"b{number} = {name}[{size}] parameter({2 * number + 1})"]
        entry.append(f"r{number} = ({shapes}) fusion(a{number}, b{number}), kind=kLoop, calls=fused{number}")
        results.append(f"({shapes})")
        arguments += [a, b]
        labels += [(name, text) for _, text in operations]
    names = ", ".join(f"r{i}" for i in range(len(types)))
    entry.append(f"ROOT all = ({', '.join(results)}) tuple({names})")
    text = "HloModule elementwise\n" + "".join(texts) + "ENTRY main {\n" + "\n".join(entry) + "\n}\n"
    return text, arguments, labels


@pytest.mark.parametrize("types", [_QUICK, pytest.param(_TYPES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_every_operation(types: Sequence[str]) -> None:
    text, arguments, labels = _module(types)
    module = parse_module(text)
    executable = emulator().compile(module)
    assert executable.notes == ()
    ours, theirs = leaves(executable.run(arguments)), on_numpy(module, arguments)
    wrong = {}
    for label, a, b in zip(labels, ours, theirs):
        opcode = label[1].partition("(")[0]
        count = _far(a, b, ELEMENT_TYPES[label[0]]) if opcode in _NEAR.split() else differing(a, b)
        if count:
            wrong[label] = count
    assert len(labels) > 20 * len(types)
    assert wrong == {}


def _far(a: Any, b: Any, kind: ElementType) -> int:
    """Elements of a function's results that are farther apart than two libraries may be."""
    if not kind.is_floating:
        return differing(a, b)
    with np.errstate(all="ignore"):
        nan = a != a, b != b
    far = (ulp_distance(a, b, kind) > _NEAR_ULPS) & ~nan[0]
    return int((far | (nan[0] != nan[1])).sum())
