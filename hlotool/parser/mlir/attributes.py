"""Attributes of MLIR text as Python values.

Attributes of other dialects than StableHLO's are kept as text; they have no effect on values.

MLIR: docs/Dialects/Builtin.md. StableHLO: dialect/StablehloAttrs.td.
"""

from __future__ import annotations

import re
import struct

from hlotool.parser.mlir.syntax import Attribute, Dense, Dictionary, Foreign, OtherType, Symbol, Type, Word
from hlotool.parser.mlir.tokens import Text
from hlotool.parser.mlir.types import TypeReader

_ESCAPED = re.compile(r"\\([0-9A-Fa-f]{2}|.)")
#: Dialects whose attributes are lists of `key = value`, or one word.
_OWN = ("#stablehlo", "#mhlo", "#chlo", "#vhlo")
#: Words that begin a type: what stands alone is one.
_TYPES = frozenset(
    {"index", "none", "bf16", "f16", "f32", "f64", "tf32", "tuple", "complex", "memref", "vector"}
)


def unquoted(text: str) -> str:
    """The text of a quoted string; MLIR writes bytes as `\\22`, two hexadecimal digits."""
    return _ESCAPED.sub(_unescaped, text[1:-1]) if "\\" in text else text[1:-1]


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said, 16)) if len(said) == 2 else {"n": "\n", "t": "\t"}.get(said, said)


class AttributeReader(TypeReader):
    """Reads attributes; `aliases` are those that the text has given a name."""

    def __init__(self, source: Text) -> None:
        super().__init__(source)
        self.aliases: dict[str, Attribute] = {}
        self._is_bare = False

    def bare(self) -> Attribute:
        """An attribute behind which a colon has nothing to do with it."""
        self._is_bare = self.kind in ("number", "string", "word")
        try:
            return self.attribute()
        finally:
            self._is_bare = False

    def attribute(self) -> Attribute:
        """One attribute with its type, where it has one."""
        kind, word = self.kind, self.word
        if kind == "dense":
            position = self.position
            self.next()
            return Dense(word, self._type_behind(), position)
        if kind == "number":
            return self._number()
        if kind == "string":
            self.next()
            self._type_behind()
            return unquoted(word)
        if kind == "symbol":
            return self.symbol()
        if kind == "hash":
            return self._dialect_attribute()
        if word == "[":
            return tuple(self.listed("[", "]", self.attribute))
        if word == "{":
            return self.dictionary()
        if kind == "word":
            return self._word()
        if kind in ("tensor", "bang") or word == "(":
            return self.type()
        raise self.error("an attribute")

    def symbol(self) -> Symbol:
        """`@name`, `@"name"`; of a path its last part."""
        word = self.of_kind("symbol", "a symbol")[1:]
        while self.word == "::":
            self.next()
            word = self.of_kind("symbol", "a symbol")[1:]
        return Symbol(unquoted(word) if word.startswith('"') else word)

    def dictionary(self) -> Dictionary:
        """`{key = attribute, key}`."""
        start = self.position
        found = Dictionary(self.listed("{", "}", self.entry))
        found.text = self.source.text[start : self.starts[self.at - 1] + 1]
        return found

    def entry(self) -> tuple[str, Attribute]:
        """`key = attribute`, or `key` alone."""
        if self.kind == "string":
            key = unquoted(self.next())
        else:
            key = self.of_kind("word", "the name of an attribute")
        return key, self.attribute() if self.taken("=") else True

    def _type_behind(self) -> Type | None:
        return self.type() if not self._is_bare and self.taken(":") else None

    def _number(self) -> int | float:
        """An integer or a float; hexadecimal digits are a float's bits where its type says so."""
        position, word = self.position, self.next()
        kind = self._type_behind()
        named = kind.text if isinstance(kind, OtherType) else ""
        try:
            if word.startswith(("0x", "-0x")):
                bits = int(word, 16)
                if named in ("f32", "f64"):
                    size, code = (4, "f") if named == "f32" else (8, "d")
                    return float(struct.unpack(f"<{code}", bits.to_bytes(size, "little"))[0])
                return bits
            is_float = named.startswith(("f", "bf")) or any(sign in word for sign in ".eE")
            return float(word) if is_float else int(word)
        except (ValueError, OverflowError):
            raise self.source.error(f"{word[:40]!r} is no number", position) from None

    def _word(self) -> Attribute:
        word = self.word
        if word in ("true", "false"):
            self.next()
            self._type_behind()
            return word == "true"
        if word == "unit":
            self.next()
            return True
        if word == "array" and self.ahead() == "<":
            return self._array()
        if word in _TYPES or (word.lstrip("su").startswith("i") and word.lstrip("sui").isdigit()):
            return self.type()
        if word == "loc" and self.ahead() == "(":
            self.next()
            return Foreign(self.balanced())
        self.next()
        if self.word == "<":  # affine_map<…>, strided<…>
            text = word + self.balanced()
            self._type_behind()
            return Foreign(text)
        return Word(word)

    def _array(self) -> tuple[Attribute, ...]:
        """`array<i64: 1, 2>`."""
        self.next()
        self.take("<")
        self.type()
        found: list[Attribute] = []
        while not self.taken(">"):
            self.take("," if found else ":")
            found.append(self.attribute())
        return tuple(found)

    def _dialect_attribute(self) -> Attribute:
        start, word = self.position, self.next()
        if self.word != "<":
            return self.aliases.get(word, Foreign(word)) if "." not in word else Foreign(word)
        is_own = word.partition(".")[0] in _OWN
        if is_own and self._is_word_of():
            words = self.balanced()[1:-1].split()
            return Word(words[-1])
        if is_own and self.kind_ahead() == "word" and self.ahead(2) == "=":
            return dict(self.listed("<", ">", self.entry))
        self.balanced()
        end = self.starts[self.at - 1] + len(self.words[self.at - 1])
        return Foreign(self.source.text[start:end])

    def _is_word_of(self) -> bool:
        """Whether `<LT>` or `<comparison_direction LT>` follows."""
        count = 1
        while self.kind_ahead(count) == "word":
            count += 1
        return 2 <= count <= 3 and self.ahead(count) == ">"
