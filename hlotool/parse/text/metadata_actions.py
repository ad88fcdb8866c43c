"""Grammar actions for metadata, frontend attributes, backend configs, statistics."""

from __future__ import annotations

from typing import Any

from hlotool.grammar import Token
from hlotool.ir.attributes import BackendConfig, FrontendAttributes, Metadata, Statistics
from hlotool.ir.printing.metadata import quote
from hlotool.parse.text.syntax import AttributeSyntax, OtherValue, TextError
from hlotool.parse.text.tokens import integer, integers, of_all, of_first, real, string

_INT32_LIMIT = 1 << 31
#: xla_data.proto, ProfileType.
_PROFILE_TYPES = range(4)


class MetadataActions:
    """What annotates instructions.

    Args:
        strict: reject metadata keys that XLA rejects.
    """

    strict: bool

    def metadata(self, children: list[AttributeSyntax]) -> Metadata:
        known: dict[str, Any] = {}
        obsolete: list[tuple[str, str]] = []
        seen: set[str] = set()
        for key, value, position in children:
            if key in seen:
                raise TextError(f"metadata says {key} twice", position)
            seen.add(key)
            if isinstance(value, OtherValue):
                obsolete.append((key, value.text))
            else:
                known[key] = value
        return Metadata(**known, obsolete=tuple(obsolete))

    def metadata_field(self, children: list[Any]) -> AttributeSyntax:
        token, value = children
        key, position = token[:-1], token.start_pos
        if isinstance(value, tuple):
            if not set(value) <= set(_PROFILE_TYPES):
                raise TextError(f"there is no profile type {max(value)}", position)
            return AttributeSyntax(key, value, position)
        if value.type == "STRING":
            return AttributeSyntax(key, string(value), position)
        number = integer(value)
        if not -_INT32_LIMIT <= number < _INT32_LIMIT:
            raise TextError(f"{key}={value} does not fit in 32 bits", position)
        return AttributeSyntax(key, number, position)

    def obsolete_field(self, children: list[Any]) -> AttributeSyntax:
        token, value = children
        if self.strict:
            raise TextError(f"metadata takes no {token[:-1]}", token.start_pos)
        return AttributeSyntax(token[:-1], value, token.start_pos)

    other_value = of_first(lambda token: OtherValue(str(token)))
    ints = of_all(integers)

    def raw(self, children: list[Token]) -> OtherValue:
        return OtherValue("".join(children))

    def frontend_attribute(self, children: list[Any]) -> tuple[str, str]:
        key, value = children
        if isinstance(value, OtherValue):
            return key[:-1], value.text
        content = string(value)
        return key[:-1], str(value) if value.startswith('"') else quote(content)

    def frontend_attributes(self, children: list[tuple[str, str]]) -> FrontendAttributes:
        """Where a key repeats, the last value counts, as in XLA."""
        return FrontendAttributes(tuple(dict(children).items()))

    backend_config = of_first(lambda token: BackendConfig(string(token), quoted=True))
    raw_backend_config = of_first(lambda raw: BackendConfig(raw.text))

    def statistics(self, children: list[Token]) -> Statistics:
        if not children:
            return Statistics(0, ())
        pairs = zip(children[2::2], children[3::2])
        return Statistics(integer(children[1]), tuple((key[:-1], real(value)) for key, value in pairs))
