"""Compute what ships in hlo.tables.bin: `python -m hlotool.grammar.build`."""

from __future__ import annotations

import lark

from hlotool.grammar.analysis import engine_tables
from hlotool.grammar.definition import STARTS, TABLES_PATH, Tables, grammar_checksum, grammar_text
from hlotool.grammar.regular import RegularRules

#: Rules that are also wanted as regular expressions, and what may stand before each of their tokens.
PATTERNS = {
    "metadata": "[ ]?",
    "array_shape": "",
    "booleans": "",
    "ints": "",
    "slice": "[ ]?",
}
#: What no such expression matches: metadata keys that XLA does not know, and all of a shape that is more than
#: a type, sizes and an order of dimensions. To compile that takes longer than to have the parser read it.
EXCLUDED = ("obsolete_field", "bounded_dimension", "unbounded_dimension", "_layout_properties")


def build_parser(strict: bool = False) -> lark.Lark:
    """lark's parser, from the text of the grammar: it makes trees.

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
    rules = RegularRules(grammar_text(), parser.terminals, EXCLUDED)
    patterns = {rule: rules.pattern(rule, blank) for rule, blank in PATTERNS.items()}
    terminals = {t.name: t.pattern.to_regexp() for t in parser.terminals}
    literals = {t.name: t.pattern.value for t in parser.terminals if t.pattern.type == "str"}
    return Tables(grammar_checksum(), engine_tables(parser), patterns, terminals, literals)


if __name__ == "__main__":
    TABLES_PATH.write_bytes(compute_tables().dump())
