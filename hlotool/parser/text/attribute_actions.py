"""Grammar actions for tokens, shapes, layouts, metadata and attribute values other than shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from hlotool.grammar import Token
from hlotool.ir.attributes import (
    BufferDonor,
    ConvolutionDimensions,
    EntryLayout,
    OperandAlias,
    PaddingDim,
    ParameterAlias,
    ResultAccuracy,
    SliceDim,
    Window,
    WindowDim,
)
from hlotool.ir.types import ArrayShape, Shape
from hlotool.parser.text.syntax import (
    AnonymousComputation,
    AttributeSyntax,
    CalleeName,
    InstructionSyntax,
    Predecessors,
    Span,
    TextError,
    TypedLiteral,
    TypedLiteralTuple,
)
from hlotool.parser.tokens import unquote

#: What is made of the parts of a rule; the object with all actions comes first.
Action: TypeAlias = Callable[[object, list[Any]], Any]

_INT64_LIMIT, _UINT64_LIMIT = 1 << 63, 1 << 64
#: More digits than any 64-bit number has.
_MOST_DIGITS = 20


def integer(token: Token) -> int:
    """A 64-bit number; from 2**63 on it is the bit pattern of a negative one, as XLA reads it."""
    digits = token.lstrip("-0")
    value = int(token) if len(digits) <= _MOST_DIGITS else _UINT64_LIMIT
    if -_INT64_LIMIT <= value < _INT64_LIMIT:
        return value
    if 0 <= value < _UINT64_LIMIT:
        return value - _UINT64_LIMIT
    raise TextError(f"{token[:40]} does not fit in 64 bits", token.start_pos)


def integers(tokens: Iterable[Token]) -> tuple[int, ...]:
    """Several 64-bit numbers, each read as by `integer`."""
    return tuple(map(integer, tokens))


def real(token: Token) -> float:
    """A double; NaN payloads are of no use here."""
    value = float(token.partition("(")[0])
    if value in (float("inf"), float("-inf")) and "inf" not in token:
        raise TextError(f"{token[:40]} is out of range for a double", token.start_pos)
    return value


def string(token: Token) -> str:
    """The content of a quoted string."""
    try:
        return unquote(token)
    except ValueError as error:
        raise TextError(str(error), token.start_pos) from error


def of_first(value: Callable[[Any], object]) -> Action:
    """The action of a rule that is its first part."""
    return lambda self, children: value(children[0])


def of_all(value: Callable[[tuple[Any, ...]], object], skipped: int = 0) -> Action:
    """The action of a rule that is all of its parts but for the first `skipped`."""
    return lambda self, children: value(tuple(children[skipped:]))


_ALIAS_KINDS = ("may-alias", "must-alias")


def _is_true(token: Token) -> bool:
    return token == "true"


class AttributeActions:
    """Values by form; which opcode takes which attribute is checked when names are resolved."""

    def attribute(self, children: list[Any]) -> AttributeSyntax:
        token, value = children
        return AttributeSyntax(token[:-1], value, token.start_pos)

    # What of the parts stands under no name of its own: all of them, in order.
    attributes = int_lists = nonempty_int_lists = shapes = callees = of_all(tuple)
    slice = operand_aliases = parameter_aliases = buffer_donors = of_all(tuple)

    boolean = of_first(_is_true)
    booleans = of_all(lambda tokens: tuple(map(_is_true, tokens)))
    integer = of_first(integer)
    number = of_first(real)
    string = of_first(string)
    word = of_first(str)
    words = of_all(lambda tokens: tuple(map(str, tokens)))

    # References to what has a name

    callee_name = of_first(CalleeName)
    predecessors = of_all(Predecessors)

    def anonymous_computation(self, children: list[list[InstructionSyntax]]) -> AnonymousComputation:
        first = children[0][0]
        return AnonymousComputation(children[0], first.name.position, first.name.line)

    # Dimensions

    def window(self, children: list[Token]) -> Window:
        fields: dict[str, list[Any]] = {}
        for key, value in zip(children[::2], children[1::2]):
            if fields.setdefault(key[:-1], entries := _window_entries(value)) is not entries:
                raise TextError(f"the window says {key} twice", key.start_pos)
        sizes = fields.pop("size", [])
        for name, entries in fields.items():
            if len(entries) != len(sizes):
                raise TextError(
                    f"the window has {len(sizes)} sizes and {len(entries)} for {name}=", children[0].start_pos
                )
        return Window(tuple(_window_dim(size, fields, i) for i, size in enumerate(sizes)))

    def dim_labels(self, children: list[Token]) -> ConvolutionDimensions:
        token = children[0]
        lhs, rhs, out = token.replace("->", "_").split("_")
        dims = ConvolutionDimensions(
            **_labelled(lhs, "input", {"b": "batch", "f": "feature"}, token),
            **_labelled(rhs, "kernel", {"i": "input_feature", "o": "output_feature"}, token),
            **_labelled(out, "output", {"b": "batch", "f": "feature"}, token),
        )
        if not len(dims.input_spatial) == len(dims.kernel_spatial) == len(dims.output_spatial):
            raise TextError(f"{token} has different numbers of spatial dimensions", token.start_pos)
        return dims

    def padding(self, children: list[Token]) -> tuple[PaddingDim, ...]:
        return tuple(PaddingDim(*map(int, part.split("_"))) for part in children[0].split("x"))

    slice_dim = of_all(lambda tokens: SliceDim(*integers(tokens)))

    # Aliasing and layouts of the entry

    def operand_alias(self, children: list[Any]) -> OperandAlias:
        output, operand, index = children
        return OperandAlias(output, integer(operand), index)

    def parameter_alias(self, children: list[Any]) -> ParameterAlias:
        output, parameter, index, *kind = children
        if kind and kind[0] not in _ALIAS_KINDS:
            raise TextError(f"{kind[0]} is none of {', '.join(_ALIAS_KINDS)}", kind[0].start_pos)
        is_must = bool(kind) and kind[0] == "must-alias"
        return ParameterAlias(output, integer(parameter), index, "must-alias" if is_must else "may-alias")

    def buffer_donor(self, children: list[Any]) -> BufferDonor:
        return BufferDonor(integer(children[0]), children[1])

    def entry_layout(self, children: list[Shape]) -> EntryLayout:
        return EntryLayout(tuple(children[:-1]), children[-1])

    # Accuracy

    def accuracy_mode(self, children: list[Token]) -> ResultAccuracy:
        mode = children[1].lower()
        if mode not in ("default", "highest"):
            raise TextError(f"{children[1]} is none of default, highest", children[1].start_pos)
        return ResultAccuracy(mode=mode)

    def accuracy(self, children: list[Any]) -> ResultAccuracy:
        given = dict(children[1:])
        return ResultAccuracy(None, given.get("atol", 0.0), given.get("rtol", 0.0), int(given.get("ulps", 0)))

    def tolerance(self, children: list[Token]) -> tuple[str, float]:
        return children[0][:-1], real(children[1])

    # Literals, and text that is carried along

    def span(self, children: list[Token]) -> Span:
        """Text that is read later, or carried along."""
        return Span(children[0].start_pos, children[-1].end_pos)

    literal = origin = origin_table = sparsity = span

    def typed_literal(self, children: list[Any]) -> TypedLiteral:
        shape, span = children
        if not isinstance(shape, ArrayShape):
            raise TextError(f"{shape} has no literals")
        return TypedLiteral(shape, span)

    typed_literal_tuple = of_all(TypedLiteralTuple)

    def domain(self, children: list[Any]) -> Span:
        tokens = [child for child in children if isinstance(child, Token)]
        keys = [str(token) for token in tokens if token.endswith("=")]
        kinds = [string(token) for token in tokens if token.type == "STRING"]
        if sorted(keys) != ["entry=", "exit=", "kind="] or kinds != ["sharding"]:
            raise TextError('a domain says kind="sharding", entry and exit, each once', tokens[0].start_pos)
        return self.span(tokens)

    def index(self, children: list[Token]) -> Token:
        integers([token for token in children if token.type == "INT"])
        return children[0]


def _window_entries(value: Token) -> list[Any]:
    """Numbers, or pairs of them in a `pad`."""
    if value.type != "PADDING":
        return [int(part) for part in value.split("x")]
    pairs = [tuple(map(int, part.split("_"))) for part in value.split("x")]
    if any(len(pair) != 2 for pair in pairs):
        raise TextError("the padding of a window has two numbers for each dimension", value.start_pos)
    return pairs


def _window_dim(size: int, fields: dict[str, list[Any]], i: int) -> WindowDim:
    low, high = fields["pad"][i] if "pad" in fields else (0, 0)

    def entry(name: str, default: int) -> int:
        return int(fields[name][i]) if name in fields else default

    return WindowDim(
        size,
        entry("stride", 1),
        low,
        high,
        entry("lhs_dilate", 1),
        entry("rhs_dilate", 1),
        entry("rhs_reversal", 0) == 1,
    )


def _labelled(labels: str, array: str, named: Mapping[str, str], token: Token) -> dict[str, Any]:
    """Fields of ConvolutionDimensions for one array: named dimensions, spatial ones in order, unused ones."""
    used = labels.replace("?", "")
    spatial = sorted(set(used) - set(named))
    if sorted(used) != sorted({*named, *(str(i) for i in range(len(spatial)))}):
        expected = f"{', '.join(named)}, the digits from 0 on, and ?"
        raise TextError(f"{labels} in {token}: each of {expected} once", token.start_pos)
    return {
        **{f"{array}_{part}": labels.index(label) for label, part in named.items()},
        f"{array}_spatial": tuple(map(labels.index, spatial)),
        f"{array}_unused": tuple(i for i, label in enumerate(labels) if label == "?"),
    }
