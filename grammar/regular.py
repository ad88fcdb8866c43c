"""Regular expressions from grammar rules, for reading large texts faster than a token at a time.

What such an expression matches in full, its rule derives; the converse need not hold: comments, nesting
beyond a depth and alternatives that are left out on purpose do not match. So a match proves a text, and what
does not match is left to the parser.

Every terminal becomes an atomic group, and so does every choice and repetition: tokens are as long as the
lexer takes them, and a text that does not match fails at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from lark import Token, Tree
from lark.grammar import NonTerminal, Terminal
from lark.lexer import TerminalDef
from lark.load_grammar import load_grammar

#: Matches nothing.
_NOTHING = "(?!)"


class RegularRules:
    """Turns rules of one grammar into regular expressions.

    Args:
        text: of the grammar.
        terminals: as lark compiled them.
        excluded: aliases of alternatives, and rules, to leave out.
        depth: how often a rule may occur within itself.
    """

    def __init__(
        self, text: str, terminals: Collection[TerminalDef], excluded: Collection[str] = (), depth: int = 1
    ) -> None:
        grammar: Any = load_grammar(text, "<grammar>", [], False)[0]  # type: ignore[no-untyped-call]
        self._rules = {str(name): tree for name, _, tree, _ in grammar.rule_defs}
        self._terminals = {t.name: t.pattern.to_regexp() for t in terminals}
        self._by_value = {t.pattern.value: t.name for t in terminals}
        self._excluded = frozenset(excluded)
        self._depth = depth

    def pattern(self, rule: str, blank: str) -> str:
        """The expression of `rule`, with `blank` allowed before each token."""
        expression = self._rule(rule, blank, {})
        re.compile(expression)
        return expression

    def _rule(self, name: str, blank: str, open_rules: dict[str, int]) -> str:
        level = open_rules.get(name, 0)
        if level > self._depth or name in self._excluded:
            return _NOTHING
        return self._tree(self._rules[name], blank, {**open_rules, name: level + 1})

    def _terminal(self, name: str, blank: str) -> str:
        return f"{blank}(?>{self._terminals[name]})"

    def _tree(
        self, tree: Tree[Token] | Token | NonTerminal | Terminal, blank: str, within: dict[str, int]
    ) -> str:
        if isinstance(tree, NonTerminal):
            return self._rule(tree.name, blank, within)
        if isinstance(tree, Terminal):
            return self._terminal(tree.name, blank)
        if isinstance(tree, Token):
            return self._literal(tree, blank)
        parts = [part for part in tree.children if isinstance(part, (Tree, Token, NonTerminal, Terminal))]
        match tree.data:
            case "expansions":
                return self._choice([self._tree(part, blank, within) for part in parts])
            case "alias":
                alias: Any = tree.children[1]
                left_out = alias.name in self._excluded
                return _NOTHING if left_out else self._tree(parts[0], blank, within)
            case "expansion":
                return self._sequence([self._tree(part, blank, within) for part in parts])
            case "expr":
                return self._repeated(self._tree(parts[0], blank, within), str(tree.children[1]))
            case "value" | "literal":
                return self._tree(parts[0], blank, within)
        raise ValueError(f"no regular expression for {tree.data}")

    def _literal(self, token: Token, blank: str) -> str:
        return f"{blank}{re.escape(str(token)[1:-1])}"

    @staticmethod
    def _choice(options: list[str]) -> str:
        possible = [option for option in options if option != _NOTHING]
        if not possible:
            return _NOTHING
        return possible[0] if len(possible) == 1 else f"(?>{'|'.join(possible)})"

    @staticmethod
    def _sequence(parts: list[str]) -> str:
        return _NOTHING if _NOTHING in parts else "".join(parts)

    @staticmethod
    def _repeated(part: str, operator: str) -> str:
        if part == _NOTHING:
            return "" if operator in "*?" else _NOTHING
        # Atomic, not `(...)*+`: where the part can backtrack Python before 3.11.5 matches that wrongly.
        return f"(?>(?:{part}){operator})"
