"""Steps of random fusions: reductions, products, scatter and gather's kin, random bits, batch normalisation.

Sums of floats are sums of small whole numbers, which are exact in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.numpy.windows import output_sizes
from hlotool.ir.attributes import WindowDim
from hlotool.ir.types import ELEMENT_TYPES, TypeClass
from support.fusion_steps import FUNCTION_STEPS, Step
from support.fusion_text import Fusion, Value, family, ints, shape

_REDUCED = {
    TypeClass.FLOATING: "maximum minimum",
    TypeClass.SIGNED: "add multiply maximum minimum and or xor",
    TypeClass.UNSIGNED: "add multiply maximum minimum and or xor",
    TypeClass.PRED: "and or add multiply",
    TypeClass.COMPLEX: "",
}
#: Applied in the order of the updates, so that floats add to the same bits.
_ORDERED = {**_REDUCED, TypeClass.FLOATING: "add maximum minimum", TypeClass.COMPLEX: "add"}


def _opcode(f: Fusion, x: Value, table: dict[TypeClass, str]) -> str:
    return f.rng.choice(table[family(x)].split() or ["add"])


def _whole(f: Fusion, kind: str, dims: tuple[int, ...]) -> Value:
    """Small whole numbers, perhaps moved or negated on the way."""
    x = f.hidden(kind, dims, "whole")
    is_signed = ELEMENT_TYPES[kind].family in (TypeClass.FLOATING, TypeClass.SIGNED, TypeClass.COMPLEX)
    if is_signed and kind != "f8e8m0fnu" and f.rng.random() < 0.3:
        return Value(f.line(shape(kind, dims), f"negate({x.name})"), kind, dims)
    if dims and f.rng.random() < 0.3:
        return Value(f.line(shape(kind, dims), f"reverse({x.name}), dimensions={{0}}"), kind, dims)
    return x


def _reduce(f: Fusion, x: Value) -> None:
    opcode = _opcode(f, x, _REDUCED)
    if family(x) is TypeClass.COMPLEX or (family(x) is TypeClass.FLOATING and f.rng.random() < 0.4):
        x, opcode = _whole(f, x.kind, x.dims), "add"
    if x.dims:
        reduced = sorted(f.rng.sample(range(len(x.dims)), f.rng.randint(1, len(x.dims))))
        dims = tuple(n for d, n in enumerate(x.dims) if d not in reduced)
        rest = f"dimensions={ints(reduced)}, to_apply={f.combiner(x.kind, f'{opcode}(a, b)')}"
        f.add(x.kind, dims, f"reduce({x.name}, {f.scalar(x.kind, 1).name}), {rest}")


def _reduce_in_order(f: Fusion, x: Value) -> None:
    """A computation that is no monoid: elements in row-major order."""
    if x.dims and family(x) is not TypeClass.PRED:
        d = f.rng.randrange(len(x.dims))
        dims = tuple(n for k, n in enumerate(x.dims) if k != d)
        rest = f"dimensions={{{d}}}, to_apply={f.combiner(x.kind, 'subtract(a, b)')}"
        f.add(x.kind, dims, f"reduce({x.name}, {f.scalar(x.kind, 1).name}), {rest}")


def _arg_max(f: Fusion, x: Value) -> None:
    """Two results: the largest element and where it is."""
    if not x.dims or family(x) in (TypeClass.COMPLEX, TypeClass.PRED):
        return
    x = _whole(f, x.kind, x.dims)
    d, kind = f.rng.randrange(len(x.dims)), x.kind
    places = f.line(shape("s32", x.dims), f"iota(), iota_dimension={d}")
    scalars = [f"{kind}[]", "s32[]"]
    lines = [
        "p = pred[] compare(a, c), direction=GE",
        f"v = {kind}[] select(p, a, c)",
        "i = s32[] select(p, b, d)",
        f"ROOT r = ({', '.join(scalars)}) tuple(v, i)",
    ]
    name = f.computation("larger", scalars * 2, lines)
    dims = tuple(n for k, n in enumerate(x.dims) if k != d)
    inits = f"{f.scalar(kind, 0 if kind in ('u1', 'u2') else 1).name}, {f.scalar('s32', -1).name}"
    pair = f"({shape(kind, dims)}, {shape('s32', dims)})"
    both = f.line(pair, f"reduce({x.name}, {places}, {inits}), dimensions={{{d}}}, to_apply={name}")
    index = f.rng.randrange(2)
    f.add((kind, "s32")[index], dims, f"get-tuple-element({both}), index={index}")


def _window(f: Fusion, sizes: Sequence[int], holes: bool = True) -> tuple[list[WindowDim], str]:
    """A window over some dimensions, and its text."""
    dims = [
        WindowDim(
            f.rng.randint(1, min(3, n)),
            f.rng.choice([1, 1, 2]),
            f.rng.randint(0, 1),
            f.rng.randint(0, 2),
            f.rng.choice([1, 1, 2]) if holes else 1,
            f.rng.choice([1, 1, 2]) if holes else 1,
        )
        for n in sizes
    ]
    parts = {
        "size": [d.size for d in dims],
        "stride": [d.stride for d in dims],
        "pad": [f"{d.pad_low}_{d.pad_high}" for d in dims],
        "lhs_dilate": [d.base_dilation for d in dims],
        "rhs_dilate": [d.window_dilation for d in dims],
    }
    shown = {k: v for k, v in parts.items() if holes or "dilate" not in k}
    return dims, " ".join(f"{name}={'x'.join(map(str, values))}" for name, values in shown.items())


def _reduce_window(f: Fusion, x: Value) -> None:
    if x.dims and _REDUCED[family(x)]:
        dims, text = _window(f, x.dims)
        name = f.combiner(x.kind, f"{_opcode(f, x, _REDUCED)}(a, b)")
        result = output_sizes(dims, x.dims)
        rest = f"window={{{text}}}, to_apply={name}"
        f.add(x.kind, result, f"reduce-window({x.name}, {f.scalar(x.kind, 1).name}), {rest}")


def _select_and_scatter(f: Fusion, x: Value) -> None:
    if not x.dims or family(x) in (TypeClass.COMPLEX, TypeClass.PRED):
        return
    dims, text = _window(f, x.dims, holes=False)
    result = output_sizes(dims, x.dims)
    if 0 in result:
        return
    source = f.hidden(x.kind, result)
    select = f.combiner(x.kind, f"compare(a, b), direction={f.rng.choice(['GE', 'GT'])}", "pred")
    scatter = f.combiner(x.kind, f"{_opcode(f, x, _ORDERED)}(a, b)")
    operands = f"{x.name}, {source.name}, {f.scalar(x.kind, 1).name}"
    rest = f"window={{{text}}}, select={select}, scatter={scatter}"
    f.add(x.kind, x.dims, f"select-and-scatter({operands}), {rest}")


def _scatter(f: Fusion, x: Value) -> None:
    if not x.dims or family(x) is TypeClass.PRED:
        return
    count, rest = f.rng.choice([1, 3, 20, 60]), len(x.dims) - 1
    text = "copy(b)" if f.rng.random() < 0.3 else f"{_opcode(f, x, _ORDERED)}(a, b)"
    name = f.combiner(x.kind, text)
    indices = f.hidden(f.rng.choice(["s32", "s32", "u8", "s64"]), (count, 1))
    if f.rng.random() < 0.7:
        # Rows of the first dimension.
        window, inserted, updates = range(1, 1 + rest), [0], (count, *x.dims[1:])
    else:
        window, inserted = range(1, 2 + rest), []
        updates = (count, f.rng.randint(1, x.dims[0]), *x.dims[1:])
    update = f.hidden(x.kind, updates)
    attributes = (
        f"update_window_dims={ints(window)}, inserted_window_dims={ints(inserted)}, "
        f"scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={name}"
    )
    f.add(x.kind, x.dims, f"scatter({x.name}, {indices.name}, {update.name}), {attributes}")


_WIDER = {
    "s8": "s32",
    "u8": "s32",
    "s4": "s32",
    "bf16": "f32",
    "f16": "f32",
    "f8e4m3fn": "bf16",
    "f32": "f64",
}


def _dot(f: Fusion, x: Value) -> None:
    rows, columns = (f.rng.choice([1, 2, 7, 16, 70]) for _ in range(2))
    terms, batch = f.rng.choice([1, 3, 32, 40, 65]), f.rng.choice([(), (), (2,)])
    turned = [f.rng.random() < 0.5 for _ in range(2)]
    left = (*batch, *((terms, rows) if turned[0] else (rows, terms)))
    right = (*batch, *((columns, terms) if turned[1] else (terms, columns)))
    operands = [_whole(f, x.kind, dims).name for dims in (left, right)]
    n = len(batch)
    text = f"lhs_contracting_dims={{{n + (not turned[0])}}}, rhs_contracting_dims={{{n + turned[1]}}}"
    if batch:
        text += ", lhs_batch_dims={0}, rhs_batch_dims={0}"
    kind, opcode = _WIDER.get(x.kind, x.kind) if f.rng.random() < 0.5 else x.kind, "dot"
    if ELEMENT_TYPES[x.kind].is_floating and f.rng.random() < 0.2:
        scales = [tuple(1 if d == n + t else size for d, size in enumerate(dims))
                  for dims, t in zip((left, right), (not turned[0], turned[1]))]  # fmt: skip
        operands += [_whole(f, x.kind, dims).name for dims in scales]
        opcode = "scaled-dot"
    f.add(kind, (*batch, rows, columns), f"{opcode}({', '.join(operands)}), {text}")


def _convolution(f: Fusion, x: Value) -> None:
    rank, images = f.rng.choice([1, 2]), f.rng.choice([2, 4])
    features, outputs = f.rng.choice([1, 3, 12]), f.rng.choice([1, 2, 10])
    groups = f.rng.choice(["", "", "feature", "batch"])
    spatial = tuple(f.rng.randint(2, 7) for _ in range(rank))
    dims, text = _window(f, spatial)
    text += f" rhs_reversal={'x'.join(str(f.rng.randrange(2)) for _ in dims)}"
    sizes = output_sizes(dims, spatial)
    outputs *= 2 if groups else 1
    image = (images, features * (2 if groups == "feature" else 1), *spatial)
    kernel = (outputs, features, *(d.size for d in dims))
    numbers = "".join(map(str, range(rank)))
    operands = ", ".join(_whole(f, x.kind, dims_).name for dims_ in (image, kernel))
    rest = f"window={{{text}}}, dim_labels=bf{numbers}_oi{numbers}->b{numbers}f"
    rest += f", {groups}_group_count=2" if groups else ""
    result = (images // (2 if groups == "batch" else 1), *sizes, outputs)
    if 0 not in sizes:
        f.add(x.kind, result, f"convolution({operands}), {rest}")


def _random_bits(f: Fusion, x: Value) -> None:
    if family(x) in (TypeClass.COMPLEX, TypeClass.PRED):
        return
    algorithm = f.rng.choice(["rng_default", "rng_philox", "rng_three_fry"])
    words = f.rng.choice([2, 3]) if algorithm != "rng_three_fry" else 2
    state = f.hidden("u64", (words,))
    pair = f"(u64[{words}], {shape(x.kind, x.dims)})"
    both = f.line(pair, f"rng-bit-generator({state.name}), algorithm={algorithm}")
    if f.rng.random() < 0.3:
        f.add("u64", (words,), f"get-tuple-element({both}), index=0")
    else:
        f.add(x.kind, x.dims, f"get-tuple-element({both}), index=1")


def _batch_norm(f: Fusion, x: Value) -> None:
    """Computed in other orders and precisions than by the reference: a few digits are lost."""
    if x.kind not in ("f32", "f64", "bf16", "f16") or not x.dims:
        return
    axis = f.rng.randrange(len(x.dims))
    row, rest = (x.dims[axis],), f"epsilon=0.01, feature_index={axis}"
    y, grad = (f.hidden(x.kind, x.dims, "finite").name for _ in range(2))
    scale, offset, mean = (f.hidden(x.kind, row, "finite").name for _ in range(3))
    positive = f.line(shape(x.kind, row), f"abs({f.hidden(x.kind, row, 'finite').name})")
    both, single = shape(x.kind, x.dims), shape(x.kind, row)
    absolute = {"f64": 1e-9, "f32": 1e-2, "bf16": 0.5, "f16": 0.1}[x.kind]
    training = f"batch-norm-training({y}, {scale}, {offset}), {rest}"
    backward = f"batch-norm-grad({y}, {scale}, {mean}, {positive}, {grad}), {rest}"
    if f.rng.random() < 0.4:
        text = f"batch-norm-inference({y}, {scale}, {offset}, {mean}, {positive}), {rest}"
        f.add(x.kind, x.dims, text, ulps=16, absolute=absolute)
        return
    name = f.line(f"({both}, {single}, {single})", f.rng.choice([training, backward]))
    index = f.rng.randrange(3)
    dims = row if index else x.dims
    f.add(x.kind, dims, f"get-tuple-element({name}), index={index}", ulps=16, absolute=absolute)


LIBRARY_STEPS: tuple[Step, ...] = (
    _reduce, _reduce, _reduce_in_order, _arg_max, _reduce_window, _select_and_scatter, _scatter, _scatter,
    _dot, _convolution, _random_bits,
)  # fmt: skip

#: Whose results are as far apart as two libraries are.
INEXACT_STEPS: tuple[Step, ...] = (*FUNCTION_STEPS, *FUNCTION_STEPS, _batch_norm)
