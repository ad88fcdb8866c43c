"""Values that are decoded from their text when somebody looks at them: few commands ask for most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self


class Deferrable:
    """A dataclass whose fields may be filled from a text when one of them is first asked for."""

    __slots__ = ("_source",)

    @classmethod
    def deferred(cls, decode: Callable[[str], Self], text: str) -> Self:
        """What `decode(text)` returns, but not before it is looked at; what it raises is raised there."""
        made = cls.__new__(cls)
        _set_source(made, (decode, text))
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Fill all fields; Python calls this only where the slot of `name` is empty."""
            if name not in type(self).__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            decode, text = object.__getattribute__(self, "_source")
            decoded = decode(text)
            for field_name in type(self).__dataclass_fields__:
                object.__setattr__(self, field_name, getattr(decoded, field_name))
            return getattr(decoded, name)


#: Past the guard of frozen classes; thousands are made of one text.
_set_source = Deferrable._source.__set__  # type: ignore[attr-defined]
