"""`dataclass` of the standard library, without its compiler at import.

The standard library writes the methods of each class as text and compiles them while the class is made. That
takes a quarter of a millisecond, and a command imports hundreds of classes. Here `__init__` is compiled when
the first object is made; the other methods need no text.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """A class with the fields and methods that `dataclasses.dataclass` gives it.

        Args:
            cls: its annotations are the fields.
            options: `frozen`, `eq`, `order`, `slots` and `kw_only`, as there.
        """
        return _made(cls, **options) if cls is not None else lambda cls: _made(cls, **options)


_ORDERS = ("__lt__", "__le__", "__gt__", "__ge__")


def _made(
    cls: Any,
    frozen: bool = False,
    eq: bool = True,
    order: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    # An `__eq__` of its own makes Python set `__hash__` to None: that is none of its own.
    has_own_hash = "__hash__" in cls.__dict__ and (cls.__hash__ is not None or "__eq__" not in cls.__dict__)
    # What has no docstring would get its signature as one, which is slow to find.
    cls.__doc__ = cls.__doc__ or cls.__name__
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    fields = dataclasses.fields(cls)
    values = _values([field.name for field in fields if field.compare])
    methods = {"__init__": _first_init(cls, fields, frozen), "__repr__": _repr(fields)}
    compared = [*(["__eq__"] if eq else ()), *(_ORDERS if order else ())]
    methods |= {name: _comparison(values, getattr(operator, name)) for name in compared}
    if frozen:
        methods |= _frozen(cls, {field.name for field in fields})
    if frozen and slots:
        methods |= _pickled([field.name for field in fields])
    for name, method in methods.items():
        if name not in cls.__dict__:
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
    if eq and not has_own_hash:
        cls.__hash__ = _hash(values) if frozen else None
    return cls


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The function from an object to the values of some fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _first_init(cls: Any, fields: Iterable[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    """An `__init__` that puts the compiled one into its place."""

    def first(self: Any, *args: Any, **named: Any) -> None:
        compiled = _compiled_init(cls, fields, frozen)
        cls.__init__ = compiled
        compiled(self, *args, **named)

    return first


def _compiled_init(cls: Any, fields: Iterable[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    """The `__init__` of a class, written as text and compiled, as the standard library does it."""
    missing = dataclasses.MISSING
    positional: list[str] = ["self"]
    named: list[str] = []
    lines: list[str] = []
    space: dict[str, Any] = {"_set": object.__setattr__, "_missing": missing}
    for field in fields:
        name, value, parameter = field.name, field.name, field.name
        if field.default is not missing:
            space[f"_default_{name}"] = field.default
            value_made, parameter = f"_default_{name}", f"{name}=_default_{name}"
        elif field.default_factory is not missing:
            space[f"_factory_{name}"] = field.default_factory
            value_made, parameter = f"_factory_{name}()", f"{name}=_missing"
            value = f"{value_made} if {name} is _missing else {name}"
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else positional).append(parameter)
        else:
            value = value_made
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n  " + "\n  ".join(lines or ["pass"]), space)
    made: Callable[..., None] = space["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _repr(fields: Iterable[dataclasses.Field[Any]]) -> Callable[[Any], str]:
    names = [field.name for field in fields if field.repr]

    def shown_as(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return recursive_repr()(shown_as)


def _comparison(
    values: Callable[[Any], tuple[Any, ...]], compare: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    def compared(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return compare(values(self), values(other))
        return NotImplemented

    return compared


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _frozen(cls: Any, names: set[str]) -> dict[str, Callable[..., None]]:
    """What refuses changes; a subclass with a dictionary may have attributes besides its fields."""

    def refuse_set(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse_set, "__delattr__": refuse_delete}


def _pickled(names: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Pickle sets attributes, which frozen objects refuse."""

    def state_of(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, state: Iterable[Any]) -> None:
        for name, value in zip(names, state):
            object.__setattr__(self, name, value)

    return {"__getstate__": state_of, "__setstate__": set_state}
