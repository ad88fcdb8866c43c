"""Types of MLIR text: tensors, tuples and tokens as shapes of HLO.

StableHLO: docs/spec.md#types.
"""

from __future__ import annotations

import re

from hlotool.ir.types import ELEMENT_TYPES, TOKEN, UNBOUNDED, ArrayShape, BufferShape, Shape, TupleShape
from hlotool.parser.mlir.syntax import FunctionType, FutureType, OtherType, Type
from hlotool.parser.mlir.tokens import Cursor, Text

_DIMENSION = re.compile(r"\s*(\d+|\?)\s*x")
_BOUNDS = re.compile(r"bounds\s*(?:=\s*\[|<)([^\]>]*)")
_INTEGER = re.compile(r"(si|ui|i)(\d+)")
_NAMES = {"i1": "pred", "index": "s64", "complex<f32>": "c64", "complex<f64>": "c128"}


def element_name(text: str) -> str:
    """HLO's name of an element type, which may be none of HLO's."""
    text = "".join(text.split())
    if text in _NAMES:
        return _NAMES[text]
    if integer := _INTEGER.fullmatch(text):
        return ("u" if integer[1] == "ui" else "s") + integer[2]
    return text.lower()


def as_shape(source: Text, found: object, position: int) -> Shape:
    """A type that a value of HLO has.

    Args:
        source: the text.
        found: the type; of a future what it will be.
        position: of the value, for an error where the type does not know its own.

    Raises:
        Unsupported: it is none of HLO's.
    """
    if isinstance(found, OtherType):
        at = position if found.position is None else found.position
        raise source.unsupported(f"{found.text} is no type of HLO", at)
    if isinstance(found, FutureType):
        return found.result
    if isinstance(found, FunctionType):
        raise source.unsupported("a function is no type of HLO", position)
    return found  # type: ignore[return-value]


class TypeReader(Cursor):
    """Reads types; `type_aliases` are those that the text has given a name."""

    def __init__(self, source: Text) -> None:
        super().__init__(source)
        self.type_aliases: dict[str, Type] = {}

    def type(self) -> Type:
        """One type: a shape where it is a value's."""
        word, position = self.word, self.position
        if self.kind == "tensor":
            self.next()
            return self._tensor(word[word.index("<") + 1 : -1], position)
        if word == "tuple" and self.ahead() == "<":
            self.next()
            return TupleShape(tuple(map(self.as_shape, self.listed("<", ">", self.type))))
        if self.kind == "bang":
            self.next()
            if word in self.type_aliases:
                return self.type_aliases[word]
            if word == "!stablehlo.future":
                self.take("<")
                found = FutureType(self.as_shape(self.type()))
                self.take(">")
                return found
            body = self.balanced() if self.word == "<" else ""
            return TOKEN if word in ("!stablehlo.token", "!mhlo.token") else OtherType(word + body)
        if word == "(":
            return self.function_type()
        if self.kind == "word":
            self.next()
            body = self.balanced() if self.word == "<" else ""
            held = self._tensor(body[1:-1], position) if word == "memref" else None
            return BufferShape(held) if isinstance(held, ArrayShape) else OtherType(word + body)
        raise self.error("a type")

    def as_shape(self, found: Type) -> Shape:
        """A type that a value of HLO has; raises Unsupported as `as_shape`."""
        return as_shape(self.source, found, self.position)

    def types(self) -> tuple[Type, ...]:
        """`(type, type)`, or one type without parentheses."""
        if self.word != "(":
            return (self.type(),)
        return tuple(self.listed("(", ")", self.type))

    def function_type(self) -> FunctionType:
        """`(types) -> types`."""
        operands = self.types()
        self.take("->")
        return FunctionType(operands, self.types())

    def _tensor(self, text: str, position: int) -> ArrayShape | OtherType:
        """The shape of a tensor; what only other functions of the text have costs this one nothing."""
        body, _, encoding = text.partition(",") if "quant" not in text else (text, "", "")
        dims: list[int] = []
        at = 0
        while (found := _DIMENSION.match(body, at)) is not None:
            dims.append(UNBOUNDED if found[1] == "?" else int(found[1]))
            at = found.end()
        kind = ELEMENT_TYPES.get(element_name(body[at:]))
        if kind is None:
            return OtherType(f"tensor<{text}>", position)
        if UNBOUNDED not in dims:
            return ArrayShape(kind, tuple(dims))
        dynamic = tuple(size == UNBOUNDED for size in dims)
        bounds = _BOUNDS.search(encoding)
        stated = [word.strip() for word in bounds[1].split(",")] if bounds else []
        if len(stated) == len(dims):
            dims = [int(b) if b.isdigit() and d == UNBOUNDED else d for d, b in zip(dims, stated)]
        return ArrayShape(kind, tuple(dims), dynamic)
