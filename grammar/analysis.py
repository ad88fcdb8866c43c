"""From lark's parser to the tables of the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from re import _constants as codes
from re import _parser  # the only description of what expressions match
from typing import Any, TypeAlias

from lark import Lark
from lark.lexer import ContextualLexer
from lark.parsers.lalr_analysis import Shift

from hlotool.grammar.engine import EngineTables, Rule, Terminal

#: How expressions of words end.
_WORD_END = r"(?![A-Za-z0-9_.\-:=])"

#: An expression as `re` reads it: operations with their arguments.
_Parsed: TypeAlias = Any


def engine_tables(parser: Lark) -> EngineTables:
    """What `engine.Engine` needs of a LALR parser with a contextual lexer.

    Raises:
        ValueError: a fixed string of the grammar is also what another terminal of the same state matches; the
            engine does not know such exceptions.
    """
    table = parser.parser.parser._parse_table
    rules = {rule: number for number, rule in enumerate(parser.rules)}
    states = [
        {name: target if action is Shift else ~rules[target] for name, (action, target) in row.items()}
        for _, row in sorted(table.states.items())
    ]
    expected = [tuple(_order(parser.parser.lexer, state)) for state in range(len(states))]
    orders = sorted(set(expected))
    expressions = {t.name: t.pattern.to_regexp() for t in parser.terminals}
    numbers = {order: number for number, order in enumerate(orders)}
    return EngineTables(
        tuple(states),
        tuple(_rule(rule) for rule in rules),
        {name: _terminal(expression, expressions) for name, expression in expressions.items()},
        tuple(numbers[order] for order in expected),
        tuple(orders),
        frozenset(parser.ignore_tokens),
        {start: (first, table.end_states[start]) for start, first in table.start_states.items()},
    )


def _order(lexer: ContextualLexer, state: int) -> Iterator[str]:
    """The terminals that the lexer tries in a state."""
    here: Any = lexer.lexers[state]
    scanner = here._build_scanner()
    if here.callback:
        raise ValueError(f"terminals {sorted(here.callback)} match fixed strings of the grammar")
    return (terminal.name for terminal in scanner.terminals)


def _rule(rule: Any) -> Rule:
    """What lark's tree builder does with the values of a production."""
    is_kept = rule.options.keep_all_tokens
    children = tuple(
        (position, not symbol.is_term and symbol.name.startswith("_"))
        for position, symbol in enumerate(rule.expansion)
        if is_kept or not (symbol.is_term and symbol.filter_out)
    )
    name = str(rule.alias or rule.origin.name)
    is_transparent = bool(rule.options.expand1) and rule.alias is None
    action = None if name.startswith("_") or is_transparent else name
    return Rule(str(rule.origin.name), len(rule.expansion), action, children, is_transparent)


def _terminal(expression: str, expressions: Mapping[str, str]) -> Terminal:
    """A terminal that lists keys or words is read as any key or word, and looked up."""
    listed = {"KEY": expression}
    if expression.endswith(_WORD_END):
        listed["IDENTIFIER"] = expression.removesuffix(_WORD_END)
    for general, words in ((name, _words(_parser.parse(listed[name]))) for name in listed):
        whole = expressions.get(general)
        if whole is not None and words and all(re.fullmatch(whole, word) for word in words):
            return Terminal(whole, frozenset(words), frozenset(word[0] for word in words))
    return Terminal(expression, None, _first(_parser.parse(expression))[0])


def _words(parsed: _Parsed) -> set[str] | None:
    """All that an expression matches; None if that is more than a list of words."""
    words = {""}
    for operation, argument in parsed:
        parts = _alternatives(operation, argument)
        if parts is None:
            return None
        words = {word + part for word in words for part in parts}
    return words


def _alternatives(operation: Any, argument: Any) -> set[str] | None:
    if operation is codes.LITERAL:
        return {chr(argument)}
    if operation is codes.IN:
        return _characters(argument)
    if operation is codes.SUBPATTERN:
        return _words(argument[-1])
    if operation is codes.BRANCH:
        options = [_words(option) for option in argument[1]]
        listed = [words for words in options if words is not None]
        return {word for words in listed for word in words} if len(listed) == len(options) else None
    return None


def _characters(items: Any) -> set[str] | None:
    """Those in brackets; None if they are only what is excluded."""
    found: set[str] = set()
    for operation, argument in items:
        if operation is codes.LITERAL:
            found.add(chr(argument))
        elif operation is codes.RANGE:
            found.update(map(chr, range(argument[0], argument[1] + 1)))
        else:
            return None
    return found


def _first(parsed: _Parsed) -> tuple[frozenset[str] | None, bool]:
    """Characters that a match may begin with, None for any; and whether it may be empty."""
    found: frozenset[str] = frozenset()
    for operation, argument in parsed:
        characters, may_be_empty = _first_of(operation, argument)
        if characters is None:
            return None, may_be_empty
        found |= characters
        if not may_be_empty:
            return found, False
    return found, True


def _first_of(operation: Any, argument: Any) -> tuple[frozenset[str] | None, bool]:
    if operation is codes.LITERAL:
        return frozenset(chr(argument)), False
    if operation is codes.IN:
        listed = _characters(argument)
        return (None if listed is None else frozenset(listed)), False
    if operation is codes.SUBPATTERN:
        return _first(argument[-1])
    if operation is codes.MAX_REPEAT:
        characters, may_be_empty = _first(argument[-1])
        return characters, may_be_empty or argument[0] == 0
    if operation is codes.BRANCH:
        options = [_first(option) for option in argument[1]]
        sets = [characters for characters, _ in options if characters is not None]
        union = frozenset().union(*sets) if len(sets) == len(options) else None
        return union, any(may_be_empty for _, may_be_empty in options)
    if operation in (codes.ASSERT, codes.ASSERT_NOT):
        return frozenset(), True
    return None, False
