"""The programs that are measured, as HLO text, and what is asked of them.

At scale 1 those with a target move 0.25 to 4 GB. Other scales change the dimension that does not decide how a
kernel is laid out; `sized_cases` picks the scale at which a case moves so many bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import ceil, prod, sqrt

from benchmarks import ROOT
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ELEMENT_TYPES, array_shapes
from hlotool.parser.reader import parse_module

#: Element types that every case but the training step is measured in.
KINDS = ("f32", "bf16")

_TRAINING_STEP = ROOT / "corpus/jax/train_mnist_mlp"


class Group(Enum):
    """What a case exercises, and the share of the copy ceiling that it has to reach."""

    ELEMENTWISE = ("elementwise", 0.85)
    ROW = ("row reduction", 0.85)
    COLUMN = ("column reduction", 0.70)
    TRANSPOSE = ("transpose", 0.70)
    NORMALISATION = ("normalisation", None)
    INDEXING = ("indexing", None)
    LIBRARY = ("library or host", None)
    PROGRAM = ("program", None)

    def __init__(self, title: str, target: float | None) -> None:
        self.title = title
        self.target = target

    @property
    def is_fused(self) -> bool:
        """Whether generated kernels do the work: its speed is then compared with that of XLA's fusions."""
        return self not in (Group.LIBRARY, Group.PROGRAM)


@dataclass(frozen=True, slots=True)
class Input:
    """An argument to make up.

    Attributes:
        kind: element type.
        dims: of the array.
        below: integers are from 0 up to this; floats are normally distributed.
    """

    kind: str
    dims: tuple[int, ...]
    below: int = 0

    @property
    def shape(self) -> str:
        """As in HLO."""
        return _shape(self.kind, *self.dims)

    @property
    def byte_size(self) -> int:
        """Bytes of the array."""
        return _bytes(self.kind, *self.dims)


@dataclass(frozen=True, slots=True)
class Case:
    """One program to measure.

    Attributes:
        name: with the element type at its end.
        group: what it exercises.
        text: HLO.
        inputs: its arguments.
        traffic: bytes that cannot be avoided: what is read once and what is written once.
        operations: floating-point operations of a matrix product, else 0.
        build: the same case at another scale; None where it has one size only.
    """

    name: str
    group: Group
    text: str
    inputs: tuple[Input, ...]
    traffic: int
    operations: int = 0
    build: Callable[[float], Case] | None = None


def all_cases(scale: float) -> Iterator[Case]:
    """Every case in every element type.

    Args:
        scale: 1 for a large GPU; 0.001 for a dry run.
    """
    for build in _BUILDERS:
        for kind in KINDS:
            yield replace(build(kind, scale), build=partial(build, kind))
    yield _training_step()


def sized_cases(size: int) -> Iterator[Case]:
    """Every case, such that it moves about `size` bytes, and not less.

    What a library or the host computes is never larger than at scale 1: its time grows faster than its bytes,
    and no target of it depends on caches. The training step has the size that it has.
    """
    for case in all_cases(1):
        if case.build is None:
            yield case
            continue
        scale = size / case.traffic
        yield case.build(min(scale, 1.0) if case.group is Group.LIBRARY else scale)


def _bytes(kind: str, *dims: int) -> int:
    return prod(dims) * ELEMENT_TYPES[kind].bits // 8


def _shape(kind: str, *dims: int) -> str:
    return f"{kind}[{','.join(map(str, dims))}]"


def _scaled(size: int, scale: float, unit: int = 8) -> int:
    """A multiple of `unit`, not less than asked for but by what floats round away."""
    return max(unit, ceil(size * scale / unit - 1e-6) * unit)


def _combiner(name: str, kind: str, opcode: str) -> str:
    scalar = f"{kind}[]"
    return (
        f"{name} {{\n  a = {scalar} parameter(0)\n  b = {scalar} parameter(1)\n"
        f"  ROOT r = {scalar} {opcode}(a, b)\n}}\n"
    )


def _text(name: str, inputs: Sequence[Input], body: str, helpers: str = "") -> str:
    """A module whose entry has the parameters p0, p1, … and then the lines of `body`."""
    parameters = "".join(f"  p{n} = {p.shape} parameter({n})\n" for n, p in enumerate(inputs))
    return f"HloModule {name}\n{helpers}ENTRY main {{\n{parameters}{body}}}\n"


def _case(
    name: str,
    kind: str,
    group: Group,
    inputs: Sequence[Input],
    result: int,
    body: str,
    helpers: str = "",
    traffic: int | None = None,
    operations: int = 0,
) -> Case:
    """A case whose traffic is its inputs and `result` bytes of output, unless given."""
    if traffic is None:
        traffic = result + sum(i.byte_size for i in inputs)
    full = f"{name}_{kind}"
    return Case(full, group, _text(full, inputs, body, helpers), tuple(inputs), traffic, operations)


def _axpy_chain(kind: str, scale: float) -> Case:
    size = _scaled(1 << 27, scale)
    array = _shape(kind, size)
    lines = [f"  h = {kind}[] constant(0.5)\n", f"  half = {array} broadcast(h), dimensions={{}}\n"]
    value = "p0"
    for step in range(8):
        root = "ROOT " if step == 7 else ""
        lines.append(f"  m{step} = {array} multiply({value}, half)\n")
        lines.append(f"  {root}a{step} = {array} add(m{step}, p1)\n")
        value = f"a{step}"
    inputs = [Input(kind, (size,))] * 2
    return _case("axpy_chain", kind, Group.ELEMENTWISE, inputs, _bytes(kind, size), "".join(lines))


def _bias(kind: str, scale: float) -> Case:
    dims = (_scaled(1 << 15, scale), 1 << 12)
    array = _shape(kind, *dims)
    body = f"  b = {array} broadcast(p1), dimensions={{1}}\n  ROOT r = {array} add(p0, b)\n"
    inputs = [Input(kind, dims), Input(kind, dims[1:])]
    return _case("bias", kind, Group.ELEMENTWISE, inputs, _bytes(kind, *dims), body)


def _pad_slice_concatenate(kind: str, scale: float) -> Case:
    rows, columns = _scaled(1 << 14, scale), 1 << 13
    half, wide = columns // 2, columns // 2 + 8
    body = (
        f"  zero = {kind}[] constant(0)\n"
        f"  s = {_shape(kind, rows, half)} slice(p0), slice={{[0:{rows}], [{half}:{columns}]}}\n"
        f"  w = {_shape(kind, rows, wide)} pad(s, zero), padding=0_0x3_5\n"
        f"  ROOT r = {_shape(kind, rows, wide + columns)} concatenate(w, p1), dimensions={{1}}\n"
    )
    written = _bytes(kind, rows, wide + columns)
    read = _bytes(kind, rows, half + columns)
    inputs = [Input(kind, (rows, columns))] * 2
    name = "pad_slice_concatenate"
    return _case(name, kind, Group.ELEMENTWISE, inputs, written, body, traffic=read + written)


def _transpose(kind: str, scale: float) -> Case:
    rows, columns = (_scaled(size, sqrt(scale), 32) for size in (1 << 13, 1 << 14))
    body = f"  ROOT r = {_shape(kind, columns, rows)} transpose(p0), dimensions={{1,0}}\n"
    inputs = [Input(kind, (rows, columns))]
    return _case("transpose", kind, Group.TRANSPOSE, inputs, inputs[0].byte_size, body)


def _sum(name: str, group: Group, kind: str, dims: tuple[int, ...], reduced: Sequence[int]) -> Case:
    kept = tuple(size for d, size in enumerate(dims) if d not in reduced)
    body = (
        f"  zero = {kind}[] constant(0)\n  ROOT r = {_shape(kind, *kept)} reduce(p0, zero), "
        f"dimensions={{{','.join(map(str, reduced))}}}, to_apply=sum\n"
    )
    helpers = _combiner("sum", kind, "add")
    return _case(name, kind, group, [Input(kind, dims)], _bytes(kind, *kept), body, helpers)


def _row_sum(kind: str, scale: float) -> Case:
    return _sum("row_sum", Group.ROW, kind, (_scaled(1 << 16, scale), 1 << 12), (1,))


def _few_rows_sum(kind: str, scale: float) -> Case:
    return _sum("few_rows_sum", Group.ROW, kind, (16, _scaled(1 << 26, scale)), (1,))


def _column_sum(kind: str, scale: float) -> Case:
    return _sum("column_sum", Group.COLUMN, kind, (_scaled(1 << 16, scale), 1 << 12), (0,))


def _full_sum(kind: str, scale: float) -> Case:
    return _sum("full_sum", Group.ROW, kind, (_scaled(1 << 28, scale),), (0,))


def _argmax(kind: str, scale: float) -> Case:
    rows, columns = _scaled(1 << 14, scale), 1 << 13
    pair = f"({kind}[], s32[])"
    helpers = (
        f"larger {{\n  a = {kind}[] parameter(0)\n  i = s32[] parameter(1)\n  b = {kind}[] parameter(2)\n"
        f"  j = s32[] parameter(3)\n  above = pred[] compare(a, b), direction=GT\n"
        f"  equal = pred[] compare(a, b), direction=EQ\n  first = pred[] compare(i, j), direction=LT\n"
        f"  earlier = pred[] and(equal, first)\n  take = pred[] or(above, earlier)\n"
        f"  value = {kind}[] select(take, a, b)\n  place = s32[] select(take, i, j)\n"
        f"  ROOT r = {pair} tuple(value, place)\n}}\n"
    )
    body = (
        f"  places = {_shape('s32', rows, columns)} iota(), iota_dimension=1\n"
        f"  low = {kind}[] constant(-inf)\n  zero = s32[] constant(0)\n"
        f"  best = ({_shape(kind, rows)}, {_shape('s32', rows)}) reduce(p0, places, low, zero), "
        f"dimensions={{1}}, to_apply=larger\n"
        f"  ROOT r = {_shape('s32', rows)} get-tuple-element(best), index=1\n"
    )
    inputs = [Input(kind, (rows, columns))]
    return _case("argmax", kind, Group.ROW, inputs, _bytes("s32", rows), body, helpers)


def _softmax(kind: str, scale: float) -> Case:
    dims = (_scaled(1 << 15, scale), 1 << 12)
    array, column = _shape(kind, *dims), _shape(kind, dims[0])
    body = (
        f"  low = {kind}[] constant(-inf)\n  zero = {kind}[] constant(0)\n"
        f"  top = {column} reduce(p0, low), dimensions={{1}}, to_apply=largest\n"
        f"  tops = {array} broadcast(top), dimensions={{0}}\n  d = {array} subtract(p0, tops)\n"
        f"  e = {array} exponential(d)\n  s = {column} reduce(e, zero), dimensions={{1}}, to_apply=sum\n"
        f"  ss = {array} broadcast(s), dimensions={{0}}\n  ROOT r = {array} divide(e, ss)\n"
    )
    helpers = _combiner("sum", kind, "add") + _combiner("largest", kind, "maximum")
    inputs = [Input(kind, dims)]
    return _case("softmax", kind, Group.NORMALISATION, inputs, _bytes(kind, *dims), body, helpers)


def _layer_norm(kind: str, scale: float) -> Case:
    dims = (_scaled(1 << 15, scale), 1 << 12)
    array, column = _shape(kind, *dims), _shape(kind, dims[0])

    def mean(name: str, of: str) -> str:
        return (
            f"  {name}.sum = {column} reduce({of}, zero), dimensions={{1}}, to_apply=sum\n"
            f"  {name} = {column} multiply({name}.sum, inverse)\n"
        )

    body = (
        f"  zero = {kind}[] constant(0)\n  i = {kind}[] constant({1 / dims[1]})\n"
        f"  inverse = {column} broadcast(i), dimensions={{}}\n  e = {kind}[] constant(1e-05)\n"
        f"  epsilon = {column} broadcast(e), dimensions={{}}\n{mean('mean', 'p0')}"
        f"  means = {array} broadcast(mean), dimensions={{0}}\n  d = {array} subtract(p0, means)\n"
        f"  square = {array} multiply(d, d)\n{mean('variance', 'square')}"
        f"  v = {column} add(variance, epsilon)\n  n = {column} rsqrt(v)\n"
        f"  ns = {array} broadcast(n), dimensions={{0}}\n  normal = {array} multiply(d, ns)\n"
        f"  scales = {array} broadcast(p1), dimensions={{1}}\n"
        f"  biases = {array} broadcast(p2), dimensions={{1}}\n"
        f"  scaled = {array} multiply(normal, scales)\n  ROOT r = {array} add(scaled, biases)\n"
    )
    inputs = [Input(kind, dims), Input(kind, dims[1:]), Input(kind, dims[1:])]
    helpers = _combiner("sum", kind, "add")
    return _case("layer_norm", kind, Group.NORMALISATION, inputs, _bytes(kind, *dims), body, helpers)


#: Rows that the loop below writes.
_UPDATES = 64


def _row_updates(kind: str, scale: float) -> Case:
    """A loop that writes one row of a large buffer each time.

    The buffer is an argument and has to be copied once; with a copy for each row it would be far slower.
    """
    rows, columns = _scaled(1 << 18, scale, _UPDATES), 1 << 10
    state = f"(s32[], {_shape(kind, rows, columns)}, {_shape(kind, columns)})"
    helpers = (
        f"condition {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        f"  n = s32[] constant({_UPDATES})\n  ROOT r = pred[] compare(i, n), direction=LT\n}}\n"
        f"body {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        f"  buffer = {_shape(kind, rows, columns)} get-tuple-element(s), index=1\n"
        f"  row = {_shape(kind, columns)} get-tuple-element(s), index=2\n"
        f"  stride = s32[] constant({rows // _UPDATES})\n  at = s32[] multiply(i, stride)\n"
        f"  zero = s32[] constant(0)\n  one = s32[] constant(1)\n"
        f"  window = {_shape(kind, 1, columns)} reshape(row)\n"
        f"  updated = {_shape(kind, rows, columns)} dynamic-update-slice(buffer, window, at, zero)\n"
        f"  next = s32[] add(i, one)\n  ROOT r = {state} tuple(next, updated, row)\n}}\n"
    )
    body = (
        f"  start = s32[] constant(0)\n  first = {state} tuple(start, p0, p1)\n"
        f"  last = {state} while(first), condition=condition, body=body\n"
        f"  ROOT r = {_shape(kind, rows, columns)} get-tuple-element(last), index=1\n"
    )
    inputs = [Input(kind, (rows, columns)), Input(kind, (columns,))]
    traffic = 2 * inputs[0].byte_size + 2 * _UPDATES * inputs[1].byte_size
    return _case("row_updates", kind, Group.INDEXING, inputs, 0, body, helpers, traffic)


def _embedding(kind: str, scale: float) -> Case:
    count, width = _scaled(1 << 20, scale), 1 << 7
    body = (
        f"  ROOT r = {_shape(kind, count, width)} gather(p0, p1), offset_dims={{1}}, "
        f"collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{width}}}\n"
    )
    inputs = [Input(kind, (count, width)), Input("s32", (count, 1), below=count)]
    return _case("embedding", kind, Group.INDEXING, inputs, _bytes(kind, count, width), body)


def _scatter_add(kind: str, scale: float) -> Case:
    count, width = _scaled(1 << 20, scale), 1 << 7
    body = (
        f"  ROOT r = {_shape(kind, count, width)} scatter(p0, p1, p2), update_window_dims={{1}}, "
        f"inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=sum\n"
    )
    inputs = [Input(kind, (count, width)), Input("s32", (count, 1), count), Input(kind, (count, width))]
    helpers = _combiner("sum", kind, "add")
    return _case("scatter_add", kind, Group.INDEXING, inputs, inputs[0].byte_size, body, helpers)


def _sort(kind: str, scale: float) -> Case:
    size = _scaled(1 << 22, scale)
    helpers = (
        f"less {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n"
        f"  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER\n}}\n"
    )
    array = _shape(kind, size)
    body = f"  ROOT r = {array} sort(p0), dimensions={{0}}, is_stable=true, to_apply=less\n"
    inputs = [Input(kind, (size,))]
    return _case("sort", kind, Group.LIBRARY, inputs, inputs[0].byte_size, body, helpers)


def _matmul(kind: str, scale: float) -> Case:
    size = _scaled(1 << 12, sqrt(scale), 32)
    square = _shape(kind, size, size)
    body = f"  ROOT r = {square} dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
    inputs = [Input(kind, (size, size))] * 2
    written, operations = inputs[0].byte_size, 2 * size**3
    return _case("matmul", kind, Group.LIBRARY, inputs, written, body, operations=operations)


def _training_step() -> Case:
    """One step of a small multilayer perceptron, as JAX writes it: many launches, little work in each."""
    (path,) = _TRAINING_STEP.glob("*.before_optimizations.txt")
    module = parse_module(path.read_text(encoding="utf-8"), path=str(path))
    module.stack_frames = None
    inputs = []
    for parameter in module.entry.parameters:
        (shape,) = array_shapes(parameter.shape)
        inputs.append(Input(shape.element_type.value, shape.dims, below=10))  # labels are digits
    text = print_module(module, PrintOptions(metadata=False))
    traffic = 2 * sum(i.byte_size for i in inputs)
    return Case("mlp_training_step", Group.PROGRAM, text, tuple(inputs), traffic)


_BUILDERS: tuple[Callable[[str, float], Case], ...] = (
    _axpy_chain, _bias, _pad_slice_concatenate, _transpose, _row_sum, _few_rows_sum, _column_sum, _full_sum,
    _argmax, _softmax, _layer_norm, _row_updates, _embedding, _scatter_add, _sort, _matmul,
)  # fmt: skip
