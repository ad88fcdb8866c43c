"""The grammar of HLO text, and the parsers built from it.

`hlo.lark` is the definition. Its LALR tables ship beside it in `hlo.tables.bin` so that starting up costs
milliseconds; `python -m hlotool.grammar.build` writes them anew after a change. Tables that do not belong to
this hlo.lark or to the installed lark are not used: then the parser is built from the text, in a second.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark, Transformer

_FOLDER = Path(__file__).parent
GRAMMAR_PATH = _FOLDER / "hlo.lark"
TABLES_PATH = _FOLDER / "hlo.tables.bin"

#: Rules that a parse may start from.
STARTS = ("module", "computations", "remainder", "instruction", "attributes", "metadata", "shape", "literal")


@dataclass(frozen=True, slots=True)
class Tables:
    """What is computed from hlo.lark.

    Attributes:
        lark_version: the tables fit this version of lark only.
        grammar_checksum: of the hlo.lark they were computed from.
        parser: lark's serialized parser, `data` and `memo`.
        patterns: regular expressions of rules, by name; see `regular.py`.
    """

    lark_version: str
    grammar_checksum: int
    parser: dict[str, Any]
    patterns: dict[str, str]

    def dump(self) -> bytes:
        """The content of hlo.tables.bin."""
        fields = (self.lark_version, self.grammar_checksum, self.parser, self.patterns)
        return zlib.compress(pickle.dumps(fields, protocol=5), 9)

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


@cache
def tables() -> Tables:
    """The shipped tables where they fit, else fresh ones."""
    import lark

    try:
        shipped = Tables.load(TABLES_PATH.read_bytes())
    except FileNotFoundError:
        shipped = None
    if (
        shipped is not None
        and shipped.lark_version == lark.__version__
        and shipped.grammar_checksum == grammar_checksum()
    ):
        return shipped
    from hlotool.grammar.build import compute_tables

    return compute_tables()


@cache
def load(transformer: Transformer[Any, Any] | None = None) -> Lark:
    """The parser with all its start rules.

    Args:
        transformer: its methods are called instead of building trees, each with the list of children.
    """
    from lark import Lark

    data = tables().parser
    loaded: Lark = Lark._load_from_dict(  # type: ignore[no-untyped-call]  # what Lark.load does, with options
        data["data"], data["memo"], transformer=transformer
    )
    return loaded


@cache
def parser(start: str = "module", transformer: Transformer[Any, Any] | None = None) -> Callable[[Any], Any]:
    """A function that parses a string (or a `lark.TextSlice`).

    Args:
        start: one of STARTS.
        transformer: as for `load`.

    Returns:
        What parses; it raises `lark.UnexpectedInput` and returns a tree, or what the transformer makes of it.

    Raises:
        ValueError: there is no such start rule.
    """
    if start not in STARTS:
        raise ValueError(f"no start rule {start}; there are {', '.join(STARTS)}")
    return partial(load(transformer).parse, start=start)


def pattern(rule: str) -> str:
    """A regular expression; what it matches in full, the rule derives."""
    return tables().patterns[rule]


@cache
def terminal(name: str) -> str:
    """The regular expression of a terminal."""
    return load().get_terminal(name).pattern.to_regexp()
