"""Compute what ships in hlo.tables.bin: `python -m hlotool.grammar.build`."""

from __future__ import annotations

import io
import pickle

import lark

from hlotool.grammar import STARTS, TABLES_PATH, Tables, grammar_checksum, grammar_text
from hlotool.grammar.regular import RegularRules

#: Rules that are also wanted as regular expressions, and what may stand before each of their tokens.
PATTERNS = {
    "metadata": "[ ]?",
    "array_shape": "",
    "int_lists": "",
    "name_rows": "[ \\n]?",
    "field_rows": "[ \\n]?",
}


def build_parser(strict: bool = False) -> lark.Lark:
    """The parser, from the text of the grammar.

    Args:
        strict: raise `lark.GrammarError` or `lark.exceptions.LexError` on a conflict between rules, or where
            two terminals of one state match the same text and neither has priority.
    """
    return lark.Lark(
        grammar_text(),
        parser="lalr",
        lexer="contextual",
        start=list(STARTS),
        maybe_placeholders=False,
        strict=strict,
    )


def compute_tables() -> Tables:
    """All of hlo.tables.bin."""
    parser = build_parser()
    serialized = io.BytesIO()
    parser.save(serialized)
    rules = RegularRules(grammar_text(), parser.terminals, excluded=["obsolete_field"])
    patterns = {rule: rules.pattern(rule, blank) for rule, blank in PATTERNS.items()}
    data = pickle.loads(serialized.getvalue())
    return Tables(lark.__version__, grammar_checksum(), data, patterns)


if __name__ == "__main__":
    TABLES_PATH.write_bytes(compute_tables().dump())
