"""Steps of random fusions: elementwise operations, functions, data movement, calls."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hlotool.ir.types import ELEMENT_TYPES, TypeClass
from support.fusion_text import Fusion, Value, family, ints, shape

#: Whose results are the same to the bit on every machine that rounds correctly.
_BINARY = {
    TypeClass.FLOATING: "add subtract multiply divide maximum minimum remainder",
    TypeClass.SIGNED: "add subtract multiply divide remainder maximum minimum and or xor shift-left "
    "shift-right-logical shift-right-arithmetic power mulhi",
    TypeClass.PRED: "add multiply and or xor maximum minimum",
    TypeClass.COMPLEX: "add subtract",
}
_BINARY[TypeClass.UNSIGNED] = _BINARY[TypeClass.SIGNED]
_UNARY = {
    TypeClass.FLOATING: "abs negate sqrt sign floor ceil round-nearest-even round-nearest-afz copy real imag",
    TypeClass.SIGNED: "abs negate not sign popcnt count-leading-zeros copy",
    TypeClass.UNSIGNED: "not negate popcnt count-leading-zeros copy",
    TypeClass.PRED: "not copy",
    TypeClass.COMPLEX: "negate copy",
}

#: Steps between the results of two libraries, by opcode: each is within half of it of the true value.
_REAL_FUNCTIONS = (
    "exponential exponential-minus-one log log-plus-one sine cosine tan tanh logistic rsqrt cbrt erf asinh "
    "acosh atanh asin acos sinh cosh power atan2"
)
REAL_ULPS = dict.fromkeys(_REAL_FUNCTIONS.split(), 8.0)
#: The same for complex functions, in units of the larger part; the last two lose digits by what they divide.
COMPLEX_ULPS = {
    "multiply": 4.0, "divide": 4.0, "abs": 4.0, "sign": 4.0, "sqrt": 4.0, "rsqrt": 8.0, "exponential": 8.0,
    "exponential-minus-one": 64.0, "log": 64.0, "log-plus-one": 64.0, "logistic": 256.0, "sine": 8.0,
    "cosine": 8.0, "tan": 16.0, "tanh": 16.0, "power": 1e3, "atan2": 1e5,
}  # fmt: skip
_TWO_OPERANDS = ("multiply", "divide", "power", "atan2")


def _binary(f: Fusion, x: Value) -> None:
    f.add(x.kind, x.dims, f"{f.rng.choice(_BINARY[family(x)].split())}({x.name}, {f.alike(x).name})")


def _unary(f: Fusion, x: Value) -> None:
    f.add(x.kind, x.dims, f"{f.rng.choice(_UNARY[family(x)].split())}({x.name})")


def _mixed(f: Fusion, x: Value) -> None:
    """Operands of unequal precision."""
    if x.kind in ("bf16", "f16", "f32"):
        y = f.parameter(f.rng.choice(["bf16", "f32", "f64"]), x.dims)
        kind = f.rng.choice([x.kind, y.kind])
        f.add(kind, x.dims, f"{f.rng.choice(['add', 'multiply'])}({x.name}, {y.name})")


def _compare(f: Fusion, x: Value) -> None:
    order = ""
    if family(x) is TypeClass.FLOATING and f.rng.random() < 0.4:
        # The sign of a NaN that was computed is not specified.
        x, order = f.parameter(x.kind, x.dims), ", type=TOTALORDER"
        y = f.hidden(x.kind, x.dims)
    else:
        y = f.alike(x)
    directions = ["EQ", "NE"] if family(x) is TypeClass.COMPLEX else ["EQ", "NE", "LT", "LE", "GT", "GE"]
    f.add("pred", x.dims, f"compare({x.name}, {y.name}), direction={f.rng.choice(directions)}{order}")


def _select(f: Fusion, x: Value) -> None:
    y = f.alike(x)
    p = f.hidden("pred", f.rng.choice([x.dims, x.dims, ()]))
    f.add(x.kind, x.dims, f"select({p.name}, {x.name}, {y.name})", x, y)


def _clamp(f: Fusion, x: Value) -> None:
    if family(x) is not TypeClass.COMPLEX:
        low, high = (f.hidden(x.kind, f.rng.choice([x.dims, ()])) for _ in range(2))
        f.add(x.kind, x.dims, f"clamp({low.name}, {x.name}, {high.name})")


def _is_finite(f: Fusion, x: Value) -> None:
    if family(x) is TypeClass.FLOATING:
        f.add("pred", x.dims, f"is-finite({x.name})")


def _convert(f: Fusion, x: Value) -> None:
    is_complex = family(x) is TypeClass.COMPLEX
    kinds = [k for k in ELEMENT_TYPES if ELEMENT_TYPES[k].is_complex or not is_complex]
    f.add(f.rng.choice(kinds), x.dims, f"convert({x.name})")


def _complex_parts(f: Fusion, x: Value) -> None:
    if family(x) is TypeClass.COMPLEX:
        part = ELEMENT_TYPES[x.kind].real_part.value
        f.add(part, x.dims, f"{f.rng.choice(['real', 'imag'])}({x.name})")
    elif x.kind in ("f32", "f64"):
        f.add({"f32": "c64", "f64": "c128"}[x.kind], x.dims, f"complex({x.name}, {f.alike(x).name})")


def _reduce_precision(f: Fusion, x: Value) -> None:
    if family(x) is TypeClass.FLOATING:
        exponent, mantissa = f.rng.randint(2, 11), f.rng.randint(1, 24)
        bits = f"exponent_bits={exponent}, mantissa_bits={mantissa}"
        f.add(x.kind, x.dims, f"reduce-precision({x.name}), {bits}")


def _stochastic_convert(f: Fusion, x: Value) -> None:
    if family(x) is TypeClass.FLOATING:
        noise = f.hidden(f"u{ELEMENT_TYPES[x.kind].bits}", x.dims)
        target = f.rng.choice(["s8", "s16", "s32", "u8", "s64", "s4"])
        f.add(target, x.dims, f"stochastic-convert({x.name}, {noise.name})")


def _bitcast_convert(f: Fusion, x: Value) -> None:
    if x.kind == "pred":
        return
    if ELEMENT_TYPES[x.kind].is_inexact:
        # The bits of a NaN that was computed are not specified.
        x = f.parameter(x.kind, x.dims)
    target = f.rng.choice([k for k in ELEMENT_TYPES if k != "pred"])
    old, new = ELEMENT_TYPES[x.kind].bits, ELEMENT_TYPES[target].bits
    if old == new:
        f.add(target, x.dims, f"bitcast-convert({x.name})")
    elif old > new:
        f.add(target, (*x.dims, old // new), f"bitcast-convert({x.name})")
    elif x.dims and x.dims[-1] % (new // old) == 0:
        joined = (*x.dims[:-1], x.dims[-1] * old // new, new // old)
        split = f.line(shape(x.kind, joined), f"reshape({x.name})")
        f.add(target, joined[:-1], f"bitcast-convert({split})")


def _function(f: Fusion, x: Value) -> None:
    """A function that libraries compute to a few units in the last place."""
    if family(x) is TypeClass.FLOATING:
        opcode = f.rng.choice(list(REAL_ULPS))
        operands = [x, f.alike(x)] if opcode in ("power", "atan2") else [x]
        text = f"{opcode}({', '.join(o.name for o in operands)})"
        f.add(x.kind, x.dims, text, ulps=REAL_ULPS[opcode])


def _complex_function(f: Fusion, x: Value) -> None:
    kind = x.kind if family(x) is TypeClass.COMPLEX else f.rng.choice(["c64", "c128"])
    opcode = f.rng.choice(list(COMPLEX_ULPS))
    count = 2 if opcode in _TWO_OPERANDS else 1
    operands = ", ".join(f.hidden(kind, x.dims, "finite").name for _ in range(count))
    result = ELEMENT_TYPES[kind].real_part.value if opcode == "abs" else kind
    f.add(result, x.dims, f"{opcode}({operands})", ulps=COMPLEX_ULPS[opcode])


def _transpose(f: Fusion, x: Value) -> None:
    order = list(range(len(x.dims)))
    f.rng.shuffle(order)
    f.add(x.kind, tuple(x.dims[d] for d in order), f"transpose({x.name}), dimensions={ints(order)}", x)


def _reshape(f: Fusion, x: Value) -> None:
    f.add(x.kind, f.rng.choice([(prod(x.dims),), (1, *x.dims), x.dims[::-1]]), f"reshape({x.name})", x)


def _bitcast(f: Fusion, x: Value) -> None:
    """The same buffer with its dimensions in another order."""
    if not x.layout and len(x.dims) > 1:
        order = list(range(len(x.dims)))
        f.rng.shuffle(order)
        dims = [0] * len(order)
        for place, d in enumerate(order):
            dims[d] = x.dims[place]
        f.add(x.kind, tuple(dims), f"bitcast({x.name})", x, layout=ints(reversed(order)))


def _broadcast(f: Fusion, x: Value) -> None:
    if len(x.dims) < 4:
        at, size = f.rng.randint(0, len(x.dims)), f.rng.choice([2, 3, 7])
        kept = [d for d in range(len(x.dims) + 1) if d != at]
        dims = (*x.dims[:at], size, *x.dims[at:])
        f.add(x.kind, dims, f"broadcast({x.name}), dimensions={ints(kept)}", x)


def _slice(f: Fusion, x: Value) -> None:
    parts = [(f.rng.randrange(size), size, f.rng.choice([1, 1, 2])) for size in x.dims]
    dims = tuple(-(-(end - start) // step) for start, end, step in parts)
    text = ", ".join(f"[{start}:{end}:{step}]" for start, end, step in parts)
    f.add(x.kind, dims, f"slice({x.name}), slice={{{text}}}", x)


def _reverse(f: Fusion, x: Value) -> None:
    if x.dims:
        f.add(x.kind, x.dims, f"reverse({x.name}), dimensions={{{f.rng.randrange(len(x.dims))}}}", x)


def _pad(f: Fusion, x: Value) -> None:
    edges = [(f.rng.randint(-1, 2), f.rng.randint(0, 2), f.rng.choice([0, 0, 1])) for _ in x.dims]
    dims = tuple(max(0, lo + hi + n + max(0, n - 1) * gap) for (lo, hi, gap), n in zip(edges, x.dims))
    filler = f.scalar(x.kind, 1)
    text = "x".join(f"{lo}_{hi}_{gap}" for lo, hi, gap in edges)
    if x.dims and 0 not in dims:
        f.add(x.kind, dims, f"pad({x.name}, {filler.name}), padding={text}", x)


def _concatenate(f: Fusion, x: Value) -> None:
    if x.dims:
        d, parts = f.rng.randrange(len(x.dims)), [x, *(f.alike(x) for _ in range(f.rng.randint(1, 2)))]
        dims = tuple(n * len(parts) if k == d else n for k, n in enumerate(x.dims))
        f.add(x.kind, dims, f"concatenate({', '.join(p.name for p in parts)}), dimensions={{{d}}}", *parts)


def _iota(f: Fusion, x: Value) -> None:
    if x.dims and x.kind != "pred":
        f.add(x.kind, x.dims, f"iota(), iota_dimension={f.rng.randrange(len(x.dims))}")


def _starts(f: Fusion, x: Value) -> list[str]:
    kind = f.rng.choice(["s32", "s32", "s64", "u8", "u64"])
    return [f.hidden(kind, ()).name for _ in x.dims]


def _dynamic_slice(f: Fusion, x: Value) -> None:
    starts = _starts(f, x)
    dims = tuple(f.rng.randint(1, n) for n in x.dims)
    names = ", ".join([x.name, *starts])
    f.add(x.kind, dims, f"dynamic-slice({names}), dynamic_slice_sizes={ints(dims)}", x)


def _update(f: Fusion, x: Value) -> None:
    starts = _starts(f, x)
    window = f.parameter(x.kind, tuple(f.rng.randint(1, n) for n in x.dims))
    names = ", ".join([x.name, window.name, *starts])
    f.add(x.kind, x.dims, f"dynamic-update-slice({names})", x)


def _gather(f: Fusion, x: Value) -> None:
    if len(x.dims) == 2:
        count = f.rng.randint(1, 5)
        indices = f.hidden(f.rng.choice(["s32", "s32", "u8", "s64"]), (count, 1))
        f.add(
            x.kind, (count, x.dims[1]), f"gather({x.name}, {indices.name}), offset_dims={{1}}, "
            f"collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
            f"slice_sizes={{1,{x.dims[1]}}}", x,
        )  # fmt: skip


def _called(f: Fusion, x: Value) -> None:
    """A computation called by the fusion, of any kind of call."""
    y = f.alike(x)
    unary, binary = (f.rng.choice(table[family(x)].split()) for table in (_UNARY, _BINARY))
    lines = [f"u = {x.shape} {unary}(a)", f"ROOT r = {x.shape} {binary}(u, b)"]
    name = f.computation("called", [x.shape] * 2, lines)
    how = f.rng.choice([f"fusion({{}}), kind=kLoop, calls={name}", f"call({{}}), to_apply={name}"])
    f.add(x.kind, x.dims, how.format(f"{x.name}, {y.name}"))


def _map(f: Fusion, x: Value) -> None:
    y = f.alike(x)
    unary, binary = (f.rng.choice(table[family(x)].split()) for table in (_UNARY, _BINARY))
    scalar = f"{x.kind}[]"
    lines = [f"u = {scalar} {unary}(b)", f"ROOT r = {scalar} {binary}(a, u)"]
    name = f.computation("mapped", [scalar] * 2, lines)
    dims = ints(range(len(x.dims)))
    f.add(x.kind, x.dims, f"map({x.name}, {y.name}), dimensions={dims}, to_apply={name}")


def _barrier(f: Fusion, x: Value) -> None:
    """Through a tuple and a barrier."""
    y = f.rng.choice(f.values)
    pair = f"({x.shape}, {y.shape})"
    name = f.line(pair, f"opt-barrier({f.line(pair, f'tuple({x.name}, {y.name})')})")
    f.add(x.kind, x.dims, f"get-tuple-element({name}), index=0", x, layout=x.layout)


def _size(f: Fusion, x: Value) -> None:
    if x.dims:
        d = f.rng.randrange(len(x.dims))
        size = f.line("s32[]", f"get-dimension-size({x.name}), dimensions={{{d}}}")
        f.add("s32", x.dims, f"broadcast({size}), dimensions={{}}")


Step = Callable[[Fusion, Value], None]

#: What may follow a value that is not exact.
MOVEMENT_STEPS: tuple[Step, ...] = (
    _transpose, _reshape, _bitcast, _broadcast, _slice, _reverse, _pad, _concatenate, _dynamic_slice, _update,
    _gather, _barrier, _select,
)  # fmt: skip

STEPS: tuple[Step, ...] = (
    *MOVEMENT_STEPS, _binary, _binary, _binary, _binary, _unary, _unary, _mixed, _compare, _clamp, _is_finite,
    _convert, _convert, _complex_parts, _reduce_precision, _stochastic_convert, _bitcast_convert, _iota,
    _called, _map, _size,
)  # fmt: skip

#: Whose results are as far apart as two libraries are.
FUNCTION_STEPS: tuple[Step, ...] = (_function, _function, _complex_function)
