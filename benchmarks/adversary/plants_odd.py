"""Signed zeros, conversions, windows, branches, complex parts, reducers of collectives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.adversary.plants import kind
from benchmarks.adversary.plants_guards import in_values
from benchmarks.adversary.plants_indices import indices
from benchmarks.adversary.text import Text, filled

Edits = Iterator[tuple[str, ...]]


@kind("V11", exact=True)
def minus_zero(text: Text) -> Edits:
    """A 0 is added: -0 is 0 then."""
    for p in text.of("parameter", "multiply", "negate", "floor", "round-nearest-even", "ceil"):
        if p.line.type == "f32" and text.read(p) and in_values(text, p):
            more = (p.line.shape, "add", ("@", "@1"), "")
            made = text.wrapped(p, *filled(p.line, 0), more)
            yield f"{p.line.name} {p.line.opcode}: a 0 is added", made


@kind("V11", exact=True)
def conversion_wraps(text: Text) -> Edits:
    """A float beyond an integer type wraps in place of saturating."""
    for p in text.of("convert"):
        a = text.operand(p, 0)
        if p.line.type in ("s32", "s8", "s16", "u8") and a is not None and a.line.type == "f32":
            wide = (a.line.retyped("s64"), "convert", ("@",), "")
            yield f"{p.line.name} by way of s64", text.before(p, 0, wide)


@kind("V11", exact=True)
def conversion_rounds(text: Text) -> Edits:
    """A float is rounded to an integer where it should be cut."""
    for p in text.of("convert"):
        a = text.operand(p, 0)
        if p.line.type in ("s32", "s8", "s16") and a is not None and a.line.type == "f32":
            step = (a.line.shape, "round-nearest-even", ("@",), "")
            yield f"{p.line.name} rounds", text.before(p, 0, step)


@kind("V6", exact=True)
def index_narrow(text: Text) -> Edits:
    """A position goes through eight bits."""
    for p, number, a in indices(text):
        if a.line.type == "s32":
            narrow = (a.line.retyped("s8"), "convert", ("@",), "")
            back = (a.line.shape, "convert", ("@0",), "")
            yield (
                f"{p.line.name} {p.line.opcode}: operand {number} through s8",
                text.before(p, number, narrow, back),
            )


@kind(exact=True)
def window_padding(text: Text) -> Edits:
    """A window is padded on the other side."""
    for p in text.of("reduce-window", "convolution"):
        for low, high in re.findall(r"(\d+)_(\d+)", p.line.attribute("window")):
            if low != high:
                other = p.line.attributes.replace(f"{low}_{high}", f"{high}_{low}", 1)
                yield f"{p.line.name} padded {high}_{low}", text.changed(p, attributes=other)


@kind(exact=True)
def branches_swapped(text: Text) -> Edits:
    """Two branches change places."""
    for p in text.of("conditional"):
        names = re.findall(r"%[\w.\-]+", p.line.attribute("branch_computations"))
        if len(names) > 1:
            old, new = ", ".join(names), ", ".join([*names[:-2], names[-1], names[-2]])
            yield (
                f"{p.line.name}: last two branches",
                text.reworded(p, old, new),
            )


@kind(exact=True)
def complex_parts(text: Text) -> Edits:
    """The real part is taken for the imaginary one."""
    for p in text.of("imag", "real"):
        other = "real" if p.line.opcode == "imag" else "imag"
        yield f"{p.line.name} is {other}", text.changed(p, opcode=other)


@kind()
def transform_direction(text: Text) -> Edits:
    """A Fourier transform goes the other way, without its factor."""
    for p in text.of("fft"):
        if "fft_type=FFT" in p.line.attributes:
            other = p.line.attributes.replace("fft_type=FFT", "fft_type=IFFT")
            yield f"{p.line.name} IFFT", text.changed(p, attributes=other)


@kind()
def triangle(text: Text) -> Edits:
    """A triangular solve reads the other triangle, or solves the transposed system."""
    for p in text.of("triangular-solve", "cholesky"):
        for old, new in (
            ("lower=true", "lower=false"),
            ("NO_TRANSPOSE", "TRANSPOSE"),
            ("unit_diagonal=false", "unit_diagonal=true"),
        ):
            if old in p.line.attributes:
                yield f"{p.line.name} {new}", text.reworded(p, old, new)


@kind(exact=True)
def devices_reducer(text: Text) -> Edits:
    """A sum over devices is a maximum, and the other way round."""
    for p in text.of("all-reduce", "reduce-scatter"):
        name = p.line.attribute("to_apply")
        shared = [q for q in text.places if q.line.attribute("to_apply") == name]
        for q in text.inside(name):
            other = {"add": "maximum", "maximum": "add"}.get(q.line.opcode)
            if q.line.root and other and len(shared) == 1:
                yield f"{p.line.name} {other}", text.replaced(q, replace(q.line, opcode=other))


@kind(exact=True)
def off_by_wrap(text: Text) -> Edits:
    """A sum of integers saturates at the largest number that a signed 16 bit integer has."""
    for p in text.of("add", "multiply"):
        if p.line.type in ("s32", "u32") and text.read(p) and in_values(text, p):
            least = (p.line.shape, "minimum", ("@", "@1"), "")
            made = text.wrapped(p, *filled(p.line, 32767), least)
            yield f"{p.line.name} {p.line.opcode} at most 32767", made
