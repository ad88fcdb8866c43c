"""Seeded random fusions: elementwise operations, data movement and reductions of all element types."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from hlotool.ir.dtypes import DTYPES
from hlotool.ir.types import ELEMENT_TYPES, TypeClass

#: The more often, the more programs use it.
_WEIGHTED = (
    "f32 f32 f32 bf16 f16 f64 s32 s32 u32 s64 u64 s8 u8 s16 u16 s4 u4 pred f8e4m3fn f8e5m2 f8e3m4 "
    "f8e4m3fnuz f8e5m2fnuz f8e4m3b11fnuz f8e4m3 f4e2m1fn c64 c128"
)
TYPES = tuple(_WEIGHTED.split())

#: Whose results are the same to the bit on every machine that rounds correctly.
_BINARY = {
    TypeClass.FLOATING: "add subtract multiply divide maximum minimum",
    TypeClass.SIGNED: "add subtract multiply divide remainder maximum minimum and or xor shift-left "
    "shift-right-logical shift-right-arithmetic power mulhi",
    TypeClass.PRED: "and or xor maximum minimum",
    TypeClass.COMPLEX: "add subtract multiply",
}
_BINARY[TypeClass.UNSIGNED] = _BINARY[TypeClass.SIGNED]
_UNARY = {
    TypeClass.FLOATING: "abs negate sqrt sign floor ceil round-nearest-even round-nearest-afz copy",
    TypeClass.SIGNED: "abs negate not sign popcnt count-leading-zeros copy",
    TypeClass.UNSIGNED: "not popcnt count-leading-zeros copy",
    TypeClass.PRED: "not copy",
    TypeClass.COMPLEX: "negate copy",
}
_REDUCED = {
    TypeClass.FLOATING: "maximum minimum",
    TypeClass.SIGNED: "add multiply maximum minimum and or xor",
    TypeClass.UNSIGNED: "add multiply maximum minimum and or xor",
    TypeClass.PRED: "and or",
    TypeClass.COMPLEX: "",
}
#: Largest array of a fusion.
_LIMIT = 40_000


@dataclass(frozen=True)
class Value:
    """A named array of the fusion."""

    name: str
    kind: str
    dims: tuple[int, ...]

    @property
    def shape(self) -> str:
        return shape(self.kind, self.dims)


def shape(kind: str, dims: tuple[int, ...]) -> str:
    """`f32[2,3]`."""
    return f"{kind}[{','.join(map(str, dims))}]"


def ints(numbers: Any) -> str:
    """`{1,2}`."""
    return "{" + ",".join(map(str, numbers)) + "}"


@dataclass
class Fusion:
    """A fused computation under construction."""

    rng: random.Random
    number: int
    lines: list[str] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)

    def add(self, kind: str, dims: tuple[int, ...], text: str) -> Value:
        """Append an instruction."""
        value = Value(f"v{len(self.lines)}", kind, dims)
        self.lines.append(f"{value.name} = {value.shape} {text}")
        self.values.append(value)
        return value

    def parameter(self, kind: str, dims: tuple[int, ...]) -> Value:
        """A new parameter."""
        value = self.add(kind, dims, f"parameter({len(self.parameters)})")
        self.parameters.append(value)
        return value

    def scalar(self, kind: str, number: int) -> Value:
        """A constant."""
        text = {"pred": "true", "c64": f"({number}, 1)", "c128": f"({number}, 1)"}.get(kind, str(number))
        value = self.add(kind, (), f"constant({text})")
        self.values.pop()
        return value

    def alike(self, value: Value) -> Value:
        """Any value of the same shape."""
        found = [v for v in self.values if v.kind == value.kind and v.dims == value.dims]
        return self.rng.choice(found) if self.rng.random() < 0.7 else self.parameter(value.kind, value.dims)


def family(value: Value) -> TypeClass:
    """Of its element type."""
    return ELEMENT_TYPES[value.kind].family


def _binary(f: Fusion, x: Value) -> None:
    f.add(x.kind, x.dims, f"{f.rng.choice(_BINARY[family(x)].split())}({x.name}, {f.alike(x).name})")


def _unary(f: Fusion, x: Value) -> None:
    f.add(x.kind, x.dims, f"{f.rng.choice(_UNARY[family(x)].split())}({x.name})")


def _select(f: Fusion, x: Value) -> None:
    y = f.alike(x)
    directions = ["EQ", "NE"] if family(x) is TypeClass.COMPLEX else ["EQ", "NE", "LT", "LE", "GT", "GE"]
    p = f.add("pred", x.dims, f"compare({x.name}, {y.name}), direction={f.rng.choice(directions)}")
    f.values.pop()
    f.add(x.kind, x.dims, f"select({p.name}, {x.name}, {y.name})")


def _convert(f: Fusion, x: Value) -> None:
    if family(x) is not TypeClass.COMPLEX:
        kinds = [k for k in TYPES if not k.startswith("c")]
        f.add(f.rng.choice(kinds), x.dims, f"convert({x.name})")


def _transpose(f: Fusion, x: Value) -> None:
    order = list(range(len(x.dims)))
    f.rng.shuffle(order)
    f.add(x.kind, tuple(x.dims[d] for d in order), f"transpose({x.name}), dimensions={ints(order)}")


def _reshape(f: Fusion, x: Value) -> None:
    f.add(x.kind, f.rng.choice([(prod(x.dims),), (1, *x.dims), x.dims[::-1]]), f"reshape({x.name})")


def _broadcast(f: Fusion, x: Value) -> None:
    if len(x.dims) < 4:
        at, size = f.rng.randint(0, len(x.dims)), f.rng.choice([2, 3, 7])
        kept = [d for d in range(len(x.dims) + 1) if d != at]
        f.add(x.kind, (*x.dims[:at], size, *x.dims[at:]), f"broadcast({x.name}), dimensions={ints(kept)}")


def _slice(f: Fusion, x: Value) -> None:
    parts = [(f.rng.randrange(size), size, f.rng.choice([1, 1, 2])) for size in x.dims]
    dims = tuple(-(-(end - start) // step) for start, end, step in parts)
    text = ", ".join(f"[{start}:{end}:{step}]" for start, end, step in parts)
    f.add(x.kind, dims, f"slice({x.name}), slice={{{text}}}")


def _reverse(f: Fusion, x: Value) -> None:
    if x.dims:
        f.add(x.kind, x.dims, f"reverse({x.name}), dimensions={{{f.rng.randrange(len(x.dims))}}}")


def _pad(f: Fusion, x: Value) -> None:
    edges = [(f.rng.randint(-1, 2), f.rng.randint(0, 2), f.rng.choice([0, 0, 1])) for _ in x.dims]
    dims = tuple(max(0, lo + hi + n + max(0, n - 1) * gap) for (lo, hi, gap), n in zip(edges, x.dims))
    filler = f.scalar(x.kind, 1)
    text = "x".join(f"{lo}_{hi}_{gap}" for lo, hi, gap in edges)
    if x.dims and 0 not in dims:
        f.add(x.kind, dims, f"pad({x.name}, {filler.name}), padding={text}")


def _concatenate(f: Fusion, x: Value) -> None:
    if x.dims:
        d, parts = f.rng.randrange(len(x.dims)), [x, *(f.alike(x) for _ in range(f.rng.randint(1, 2)))]
        dims = tuple(n * len(parts) if k == d else n for k, n in enumerate(x.dims))
        f.add(x.kind, dims, f"concatenate({', '.join(p.name for p in parts)}), dimensions={{{d}}}")


def _iota(f: Fusion, x: Value) -> None:
    if x.dims and x.kind != "pred":
        f.add(x.kind, x.dims, f"iota(), iota_dimension={f.rng.randrange(len(x.dims))}")


def _dynamic_slice(f: Fusion, x: Value) -> None:
    starts = [f.parameter("s32", ()) for _ in x.dims]
    del f.values[len(f.values) - len(starts) :]
    dims = tuple(f.rng.randint(1, n) for n in x.dims)
    names = ", ".join([x.name, *(s.name for s in starts)])
    f.add(x.kind, dims, f"dynamic-slice({names}), dynamic_slice_sizes={ints(dims)}")


def _update(f: Fusion, x: Value) -> None:
    starts = [f.parameter("s32", ()) for _ in x.dims]
    del f.values[len(f.values) - len(starts) :]
    window = f.parameter(x.kind, tuple(f.rng.randint(1, n) for n in x.dims))
    names = ", ".join([x.name, window.name, *(s.name for s in starts)])
    f.add(x.kind, x.dims, f"dynamic-update-slice({names})")


def _gather(f: Fusion, x: Value) -> None:
    if len(x.dims) == 2:
        count = f.rng.randint(1, 5)
        indices = f.parameter("s32", (count, 1))
        f.values.pop()
        f.add(
            x.kind, (count, x.dims[1]), f"gather({x.name}, {indices.name}), offset_dims={{1}}, "
            f"collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
            f"slice_sizes={{1,{x.dims[1]}}}",
        )  # fmt: skip


def _reduce(f: Fusion, x: Value) -> None:
    if (opcodes := _REDUCED[family(x)].split()) and x.dims:
        opcode, name = f.rng.choice(opcodes), f"combine{f.number}_{len(f.helpers)}"
        a = f"{x.kind}[]"
        f.helpers.append(
            f"{name} {{\n a = {a} parameter(0)\n b = {a} parameter(1)\n ROOT r = {a} {opcode}(a, b)\n}}\n"
        )
        reduced = sorted(f.rng.sample(range(len(x.dims)), f.rng.randint(1, len(x.dims))))
        start = f.scalar(x.kind, 1)
        dims = tuple(n for d, n in enumerate(x.dims) if d not in reduced)
        f.add(x.kind, dims, f"reduce({x.name}, {start.name}), dimensions={ints(reduced)}, to_apply={name}")


_STEPS: tuple[Callable[[Fusion, Value], None], ...] = (
    _binary, _binary, _binary, _unary, _unary, _select, _convert, _transpose, _reshape, _broadcast, _slice,
    _reverse, _pad, _concatenate, _iota, _dynamic_slice, _update, _gather, _reduce,
)  # fmt: skip


def random_fusion(seed: int) -> Fusion:
    """A computation of a dozen operations whose last value is the result."""
    rng = random.Random(seed)
    fusion = Fusion(rng, seed)
    dims = tuple(rng.choice([1, 2, 3, 4, 5, 8, 16, 33, 40]) for _ in range(rng.choice([1, 2, 2, 3])))
    fusion.parameter(rng.choice(TYPES), dims)
    for _ in range(rng.randint(3, 12)):
        lists = (fusion.lines, fusion.values, fusion.parameters, fusion.helpers)
        before = [len(items) for items in lists]
        rng.choice(_STEPS)(fusion, rng.choice(fusion.values[-3:]))
        if fusion.values and prod(fusion.values[-1].dims) > _LIMIT:
            for items, length in zip(
                (fusion.lines, fusion.values, fusion.parameters, fusion.helpers), before
            ):
                del items[length:]
    last = fusion.values[-1]
    if last in fusion.parameters:
        fusion.add(last.kind, last.dims, f"copy({last.name})")
    return fusion


def module_of(fusions: list[Fusion]) -> str:
    """A program that runs the fusions one after the other and returns all results."""
    texts, entry, results = [], [], []
    count = 0
    for number, fusion in enumerate(fusions):
        texts += fusion.helpers
        root = fusion.values[-1].name
        body = "\n".join(
            f"  {'ROOT ' if line.startswith(root + ' =') else ''}{line}" for line in fusion.lines
        )
        texts.append(f"fused{number} {{\n{body}\n}}\n")
        names = []
        for parameter in fusion.parameters:
            entry.append(f"  p{count} = {parameter.shape} parameter({count})")
            names.append(f"p{count}")
            count += 1
        shape_ = fusion.values[-1].shape
        called = f"fusion({', '.join(names)}), kind=kLoop, calls=fused{number}"
        entry.append(f"  r{number} = {shape_} {called}")
        results.append((f"r{number}", shape_))
    shapes, names_ = ", ".join(s for _, s in results), ", ".join(n for n, _ in results)
    entry.append(f"  ROOT result = ({shapes}) tuple({names_})")
    return "HloModule fusions\n\n" + "".join(texts) + "ENTRY main {\n" + "\n".join(entry) + "\n}\n"


def arguments_of(fusions: list[Fusion], seed: int) -> list[Any]:
    """Values of all parameters: small numbers, among them zeros, NaN and infinities."""
    rng = np.random.default_rng(seed)
    return [_argument(rng, parameter) for fusion in fusions for parameter in fusion.parameters]


def _argument(rng: np.random.Generator, parameter: Value) -> Any:
    kind, dtype = ELEMENT_TYPES[parameter.kind], DTYPES[ELEMENT_TYPES[parameter.kind]]
    if kind.is_inexact:
        wide = rng.standard_normal(parameter.dims) * 3
        special = rng.choice([0.0, -0.0, np.nan, np.inf, 1.0, 0.5], parameter.dims)
        with np.errstate(all="ignore"):
            return np.asarray(np.where(rng.random(parameter.dims) < 0.2, special, wide)).astype(dtype)
    high = 2 if kind.family is TypeClass.PRED else 1 << (kind.bits - 1 if kind.bits > 1 else 1)
    low = -high if kind.is_signed else 0
    return np.asarray(rng.integers(low, min(high, 1 << 40), parameter.dims)).astype(dtype)
