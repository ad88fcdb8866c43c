"""What the backend config of a library call says, and its results: a few arrays, then memory that it works
in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.errors import Unsupported
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

_T = TypeVar("_T")

_ENTRY = re.compile(r'([\w.$-]+)\s*=\s*("(?:[^"\\]|\\.)*"|array<[^>]*>|\[[^\]]*\]|[^,{}\[\]]+)')

#: Fields of the protos that wrap the attributes of a typed FFI call.
_WRAPPERS = ("custom_call_backend_config", "custom_call_config")


@dataclass(frozen=True, slots=True)
class Config:
    """Named values.

    Every accessor raises Unsupported when the value is of another type. What is absent has the default that
    the accessor is given, else that of its type in a config that leaves out defaults; elsewhere it is unknown
    it, which is Unsupported as well.

    Attributes:
        values: as decoded.
        unsupported: makes the error for a config that cannot be handled, from the reason.
        leaves_out_defaults: it is a message of proto3; other configs say everything.
    """

    values: Mapping[str, Any]
    unsupported: Callable[[str], Unsupported]
    leaves_out_defaults: bool = True

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def section(self, name: str) -> Config:
        """A nested message; an empty one when it is absent."""
        values = self.values.get(name, {})
        if not isinstance(values, Mapping):
            raise self._malformed(name)
        return Config(values, self.unsupported, self.leaves_out_defaults)

    def needed(self, *names: str) -> Config:
        """This config, in which all of `names` must stand although a default may be left out."""
        for name in names:
            if name not in self.values:
                raise self.unsupported(f"no {name} in the backend config")
        return self

    def flag(self, name: str, default: bool | None = None) -> bool:
        """A boolean; FFI calls also write 0 and 1."""
        return bool(self._typed(name, int, default, False))

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer, which JSON may write as a string."""
        return self._converted(name, int, default, 0)

    def number(self, name: str, default: float | None = None) -> float:
        """A floating-point number, which JSON writes as a string when it is infinite or NaN."""
        return self._converted(name, float, default, 0.0)

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        return str(self._typed(name, str, default, ""))

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of integers."""
        return self._listed(name, int)

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of floating-point numbers."""
        return self._listed(name, float)

    def choice(self, name: str, names: Sequence[str]) -> str:
        """The name of an enum's value, of which `names` lists all by number."""
        value = self._value(name, None, 0)
        if str(value).isdecimal() and int(value) < len(names):
            return names[int(value)]
        if value in names:
            return str(value)
        raise self.unsupported(f"{name} {value!r} in the backend config")

    def choices(self, name: str, names: Sequence[str]) -> list[str]:
        """The names of a list of enum values."""
        values = self._typed(name, Sequence, None, ())
        return [Config({name: value}, self.unsupported).choice(name, names) for value in values]

    def _value(self, name: str, default: Any, of_type: Any) -> Any:
        """The value, else the default of this name, else that of its type."""
        if name not in self.values and default is None and not self.leaves_out_defaults:
            raise self.unsupported(f"no {name} in the backend config")
        return self.values.get(name, of_type if default is None else default)

    def _typed(self, name: str, kind: type | tuple[type, ...], default: Any, of_type: Any) -> Any:
        value = self._value(name, default, of_type)
        if not isinstance(value, kind):
            raise self._malformed(name)
        return value

    def _converted(self, name: str, convert: Callable[[Any], _T], default: _T | None, of_type: _T) -> _T:
        value = self._value(name, default, of_type)
        try:
            return convert(value)
        except (TypeError, ValueError):
            raise self._malformed(name) from None

    def _listed(self, name: str, convert: Callable[[Any], _T]) -> tuple[_T, ...]:
        values = self._typed(name, Sequence, None, ())
        try:
            return tuple(map(convert, values))
        except (TypeError, ValueError):
            raise self._malformed(name) from None

    def _malformed(self, name: str) -> Unsupported:
        return self.unsupported(f"{name} is malformed in the backend config: {self.values.get(name)!r}")


def read_config(instruction: Instruction, lowering: Lowering, message: str = "") -> Config:
    """The backend config of an instruction, or the `message` in it; empty when there is none."""
    values, is_proto = _decode(instruction.config_text)
    config = Config(values, partial(lowering.unsupported, instruction), is_proto)
    if not message:
        return config
    return replace(config.section(message), leaves_out_defaults=is_proto and message in config)


def _decode(text: str) -> tuple[Mapping[str, Any], bool]:
    """The values, and whether they are a message of proto3, which `{}` need not be."""
    try:
        values = json.loads(text)
    except ValueError:
        return _dictionary(text), False
    if not isinstance(values, Mapping):
        return {}, False
    for wrapper in _WRAPPERS:
        inner = values.get(wrapper)
        if isinstance(inner, Mapping):
            return _dictionary(str(inner.get("attributes", ""))), False
    return values, bool(values)


def _dictionary(text: str) -> Mapping[str, Any]:
    """The entries of an MLIR dictionary whose values are scalars or strings; others stay text."""
    return {name: _scalar(value.strip()) for name, value in _ENTRY.findall(text)}


def _scalar(text: str) -> Any:
    if text.startswith('"'):
        return text[1:-1]
    value = text.split(":")[0].strip()
    named = {"true": True, "false": False}
    if value in named:
        return named[value]
    for convert in (int, float):
        try:
            return convert(value)
        except ValueError:
            continue
    return text


#: From the arrays that a library computes to the value of its call.
Assemble = Callable[[Sequence[Any]], Any]


def result_shapes(instruction: Instruction, lowering: Lowering) -> list[ArrayShape]:
    """The shapes of all results, workspace included."""
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    arrays = [part for part in parts if isinstance(part, ArrayShape)]
    if len(arrays) < len(parts):
        raise lowering.unsupported(instruction, f"a library call with results of shape {shape}")
    return arrays


def result_types(instruction: Instruction, lowering: Lowering) -> list[ElementType]:
    """The element types of all results, workspace included."""
    return [shape.element_type for shape in result_shapes(instruction, lowering)]


def assembler(instruction: Instruction, lowering: Lowering) -> Assemble:
    """The function that puts computed arrays first and fills the rest of the tuple with zeros.

    None stands for an array that the library leaves undefined; it becomes zeros as well. Workspace takes no
    memory here.
    """
    shapes = result_shapes(instruction, lowering)
    if isinstance(instruction.shape, ArrayShape):
        return lambda values: values[0]
    zeros = [np.broadcast_to(np.zeros((), dtype_of(s.element_type)), s.dims) for s in shapes]

    def assemble(values: Sequence[Any]) -> Any:
        computed = [zero if value is None else value for value, zero in zip(values, zeros)]
        return tuple(computed + zeros[len(computed) :])

    return assemble
