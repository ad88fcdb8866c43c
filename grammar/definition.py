"""The text of the grammar, and the file of what is computed from it."""

from __future__ import annotations

import pickle
import zlib
from pathlib import Path
from typing import NamedTuple

from hlotool.grammar.engine import EngineTables

_FOLDER = Path(__file__).parent
GRAMMAR_PATH = _FOLDER / "hlo.lark"
TABLES_PATH = _FOLDER / "hlo.tables.bin"

#: Rules that a parse may start from.
STARTS = ("module", "computations", "remainder", "instruction", "attributes", "metadata", "shape", "literal")


class Tables(NamedTuple):
    """What is computed from hlo.lark.

    Attributes:
        grammar_checksum: of the hlo.lark they were computed from.
        engine: LALR tables.
        patterns: regular expressions of rules, by name; see `regular.py`.
        terminals: regular expressions of terminals, by name.
        literals: the terminals that are fixed strings, and these.
    """

    grammar_checksum: int
    engine: EngineTables
    patterns: dict[str, str]
    terminals: dict[str, str]
    literals: dict[str, str]

    def dump(self) -> bytes:
        """The content of hlo.tables.bin."""
        return zlib.compress(pickle.dumps(tuple(self), protocol=5), 9)

    @classmethod
    def load(cls, content: bytes) -> Tables:
        """Read what `dump` wrote."""
        return cls(*pickle.loads(zlib.decompress(content)))


def grammar_text() -> str:
    """The text of hlo.lark."""
    return GRAMMAR_PATH.read_text(encoding="utf-8")


def grammar_checksum() -> int:
    """Tells whether hlo.lark has changed."""
    return zlib.crc32(GRAMMAR_PATH.read_bytes())
