"""Lost widths, lost exactness, constants that are a little off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.adversary.plants import kind
from benchmarks.adversary.text import FLOATS, Place, Text, filled

Edits = Iterator[tuple[str, ...]]

#: Integer types that an integer goes through, and back.
_NARROWER = {"s32": ("s16", "s8"), "u32": ("u16",), "s16": ("s8",)}

#: What computes a value that may lose width.
_COMPUTED = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "dot",
    "reduce",
    "exponential",
    "tanh",
    "logistic",
    "fusion",
    "select",
    "reduce-window",
    "rsqrt",
    "sqrt",
    "log",
    "scatter",
    "gather",
    "convert",
    "maximum",
    "minimum",
)


def _arrays(text: Text, *types: str) -> Iterator[Place]:
    for p in text.of(*_COMPUTED):
        if p.line.type in types and text.read(p):
            yield p


def _there_and_back(text: Text, p: Place, through: str) -> str:
    return text.wrapped(
        p, (p.line.retyped(through), "convert", ("@",), ""), (p.line.shape, "convert", ("@0",), "")
    )


@kind("V1", after=True)
def middle_bf16(text: Text) -> Edits:
    """A value of f32 goes through bf16."""
    for p in _arrays(text, "f32"):
        yield f"{p.line.name} {p.line.opcode} through bf16", _there_and_back(text, p, "bf16")


@kind("V1", after=True)
def middle_f16(text: Text) -> Edits:
    """A value of f32 goes through f16."""
    for p in _arrays(text, "f32"):
        yield f"{p.line.name} {p.line.opcode} through f16", _there_and_back(text, p, "f16")


@kind("V1", after=True)
def parameter_bf16(text: Text) -> Edits:
    """An argument of f32 is rounded to bf16."""
    for p in text.of("parameter"):
        if p.entry and p.line.type == "f32" and text.read(p):
            yield f"{p.line.name} through bf16", _there_and_back(text, p, "bf16")


@kind("V1", after=True)
def dot_operands_bf16(text: Text) -> Edits:
    """Operands of a product of f32 are rounded to bf16."""
    for p in text.of("dot", "convolution"):
        a = text.operand(p, 0)
        if p.line.type == "f32" and a is not None and a.line.type == "f32":
            shape = a.line.shape
            yield (
                f"{p.line.name}: first operand through bf16",
                text.before(
                    p, 0, (a.line.retyped("bf16"), "convert", ("@",), ""), (shape, "convert", ("@0",), "")
                ),
            )


@kind("V1", after=True)
def accumulator_bf16(text: Text) -> Edits:
    """A sum of f32 is added up in bf16."""
    for p in text.of("reduce"):
        a, start = text.operand(p, 0), text.operand(p, 1)
        adder = p.line.attribute("to_apply")
        body = text.inside(adder)
        if (
            p.line.type != "f32"
            or a is None
            or start is None
            or not any(q.line.opcode == "add" for q in body)
            or len(body) != 3
        ):
            continue
        line = p.line
        made = text.replaced(
            p,
            f"  {line.name}.a = {a.line.retyped('bf16')} convert({a.line.name})",
            f"  {line.name}.z = bf16[] constant(0)",
            f"  {line.name}.s = {line.retyped('bf16')} reduce({line.name}.a, {line.name}.z)"
            + line.attributes.replace(f"to_apply={adder}", "to_apply=%adv_adder"),
            f"  {'ROOT ' if line.root else ''}{line.name} = {line.shape} convert({line.name}.s)",
        )
        lines = made.splitlines()
        head = min(text.heads.values())
        adding = [
            "%adv_adder (p: bf16[], q: bf16[]) -> bf16[] {",
            "  %p = bf16[] parameter(0)",
            "  %q = bf16[] parameter(1)",
            "  ROOT %s = bf16[] add(%p, %q)",
            "}",
            "",
        ]
        yield f"{line.name} adds up in bf16", "\n".join(lines[:head] + adding + lines[head:]) + "\n"


@kind("V1", after=True)
def carry_narrow(text: Text) -> Edits:
    """A float that a loop carries is narrow between two iterations."""
    for loop in text.of("while"):
        for p in text.inside(loop.line.attribute("body")):
            if p.line.root and p.line.opcode == "tuple":
                for number in range(len(p.line.operands)):
                    a = text.operand(p, number)
                    if a is not None and a.line.type == "f32":
                        yield (
                            f"carry {number} of {loop.line.name} through bf16",
                            text.before(
                                p,
                                number,
                                (a.line.retyped("bf16"), "convert", ("@",), ""),
                                (a.line.shape, "convert", ("@0",), ""),
                            ),
                        )


@kind(exact=True)
def integer_narrow(text: Text) -> Edits:
    """An integer goes through a narrower type."""
    for p in text.places:
        if p.line.opcode in (
            "add",
            "multiply",
            "subtract",
            "parameter",
            "shift-left",
            "dot",
            "reduce",
            "get-tuple-element",
            "convert",
        ):
            for through in _NARROWER.get(p.line.type, ()):
                if text.read(p):
                    yield (
                        f"{p.line.name} {p.line.opcode} through {through}",
                        _there_and_back(text, p, through),
                    )


@kind(exact=True)
def integer_through_float(text: Text) -> Edits:
    """An integer of 32 bits goes through f32, which has 24."""
    for p in text.places:
        if (
            p.line.opcode in ("add", "multiply", "parameter", "subtract")
            and p.line.type in ("s32", "u32")
            and text.read(p)
        ):
            yield f"{p.line.name} {p.line.opcode} through f32", _there_and_back(text, p, "f32")


@kind("V13")
def reduce_precision_lost(text: Text) -> Edits:
    """An explicit reduce-precision is gone."""
    for p in text.of("reduce-precision"):
        yield f"{p.line.name} dropped", text.forwarded(p, 0)


@kind("V13")
def reduce_precision_other(text: Text) -> Edits:
    """A reduce-precision keeps a bit more, or an exponent's."""
    for p in text.of("reduce-precision"):
        bits = int(p.line.attribute("mantissa_bits"))
        other = p.line.attributes.replace(f"mantissa_bits={bits}", f"mantissa_bits={bits + 1}")
        yield f"{p.line.name}: {bits + 1} bits of mantissa", text.changed(p, attributes=other)


@kind("V11", after=True)
def expm1_naive(text: Text) -> Edits:
    """expm1 is exp(x) - 1."""
    for p in text.of("exponential-minus-one"):
        plain = replace(p, line=replace(p.line, opcode="exponential"))
        minus = (p.line.shape, "subtract", ("@", "@1"), "")
        yield f"{p.line.name} as exp - 1", text.wrapped(plain, *filled(p.line, 1), minus)


@kind("V11", after=True)
def log1p_naive(text: Text) -> Edits:
    """log1p is log(1 + x)."""
    for p in text.of("log-plus-one"):
        plain = replace(p, line=replace(p.line, opcode="log"))
        more = (p.line.shape, "add", ("@", "@1"), "")
        yield f"{p.line.name} as log(1 + x)", text.before(plain, 0, *filled(p.line, 1), more)


@kind("V11", after=True)
def through_thousand(text: Text) -> Edits:
    """a - b is computed by way of 1000 + a: digits are lost in the middle."""
    for p in text.of("subtract", "add"):
        if p.line.type == "f32" and text.read(p):
            large = text.before(p, 0, *filled(p.line, 1000), (p.line.shape, "add", ("@", "@1"), ""))
            moved = next(
                q for q in Text(large).places if q.computation == p.computation and q.line.name == p.line.name
            )
            back = (p.line.shape, "subtract", ("@", "@1"), "")
            made = Text(large).wrapped(moved, *filled(p.line, 1000), back)
            yield f"{p.line.name} {p.line.opcode} by way of 1000", made


def _float_constants(text: Text) -> Iterator[tuple[Place, float]]:
    for p in text.of("constant"):
        value = text.constant(p)
        if p.line.type in FLOATS and value is not None and text.read(p) and 0 < abs(value) < 1e30:
            yield p, value


@kind()
def constant_fourth_digit(text: Text) -> Edits:
    """A constant is off in its fourth digit."""
    for p, value in _float_constants(text):
        if abs(value) > 1e-4:
            yield (
                f"{p.line.name}: {value:g} off by 3e-4 of it",
                text.changed(p, operands=(repr(value * 1.0003),)),
            )


@kind("V2")
def epsilon_scaled(text: Text) -> Edits:
    """An epsilon is a hundred times as large."""
    for p, value in _float_constants(text):
        if 0 < abs(value) <= 1e-3:
            yield f"{p.line.name}: {value:g} times 100", text.changed(p, operands=(repr(value * 100),))


@kind("V2")
def epsilon_lost(text: Text) -> Edits:
    """An epsilon is 0."""
    for p, value in _float_constants(text):
        if 0 < abs(value) <= 1e-3:
            yield f"{p.line.name}: 0 in place of {value:g}", text.changed(p, operands=("0",))


@kind()
def integer_constant_off(text: Text) -> Edits:
    """A constant integer is off by one."""
    for p in text.of("constant"):
        value = text.constant(p)
        if (
            p.line.type in ("s32", "u32", "s16", "u8")
            and value is not None
            and text.read(p)
            and abs(value) < 2**31 - 1
        ):
            yield f"{p.line.name}: {int(value) + 1}", text.changed(p, operands=(str(int(value) + 1),))


@kind("V9", promise=True)
def precision_dropped(text: Text) -> Edits:
    """A product does not ask for high precision any more."""
    for p in text.of("dot", "convolution"):
        if "operand_precision" in p.line.attributes:
            yield (
                f"{p.line.name} without operand_precision",
                text.changed(p, attributes=re.sub(r", operand_precision=\{[^}]*\}", "", p.line.attributes)),
            )


@kind("V9", promise=True)
def algorithm_named(text: Text) -> Edits:
    """A product is told to be computed in bf16."""
    for p in text.of("dot"):
        a = text.operand(p, 0)
        if (
            p.line.type == "f32"
            and a is not None
            and a.line.type == "f32"
            and "algorithm" not in p.line.attributes
        ):
            attributes = re.sub(r", operand_precision=\{[^}]*\}", "", p.line.attributes)
            shape = a.line.shape
            obeyed = text.before(
                p, 0, (a.line.retyped("bf16"), "convert", ("@",), ""), (shape, "convert", ("@0",), "")
            )
            yield (
                f"{p.line.name} algorithm=dot_bf16_bf16_f32",
                text.changed(p, attributes=f", algorithm=dot_bf16_bf16_f32{attributes}"),
                obeyed,
            )
