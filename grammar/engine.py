"""Runs the LALR tables of the grammar: from a text to what the actions make of it.

lark computes the tables from hlo.lark; running them takes no more than this, and starts within milliseconds.
As with lark's contextual lexer, only the terminals that may stand at a position are looked for there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

#: Name of the terminal that stands for the end of the text.
END = "$END"


class Unexpected(Exception):
    """The text is not what was to be read.

    Attributes:
        position: where that shows; None at the end of the text.
        expected: the terminals that could have stood there.
    """

    def __init__(self, position: int | None, expected: frozenset[str]) -> None:
        super().__init__(position, expected)
        self.position = position
        self.expected = expected


class _Stuck(Exception):
    """No terminal that may stand at `position` does; None at the end of the text."""

    def __init__(self, position: int | None) -> None:
        self.position = position


class Token(str):
    """The text of a terminal.

    Attributes:
        type: name of the terminal.
        start_pos: of its first character in the parsed text.
        end_pos: of the character after it.
        line: counted from 1.
    """

    __slots__ = ("end_pos", "line", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int
    line: int


class Terminal(NamedTuple):
    """How a terminal is recognised.

    Attributes:
        pattern: regular expression.
        words: what `pattern` has to match for it to be this terminal; None where everything does.
        first: the characters it may begin with; None where they are not known.
    """

    pattern: str
    words: frozenset[str] | None = None
    first: frozenset[str] | None = None


class Rule(NamedTuple):
    """One production.

    Attributes:
        origin: the rule, which says where to go on.
        length: how many symbols it replaces.
        action: name of the action; None where the value is the list of children, or the only child.
        children: positions of those that the action gets, and whether to splice it in as a list.
        is_transparent: a single child stands for the whole.
    """

    origin: str
    length: int
    action: str | None
    children: tuple[tuple[int, bool], ...]
    is_transparent: bool


class EngineTables(NamedTuple):
    """What the engine needs.

    Attributes:
        states: for each state, by terminal or rule: the next state, or a rule to apply as `~number`.
        rules: by number.
        terminals: by name.
        expected: for each state, which entry of `orders` it takes.
        orders: terminals that may be met, the first that matches counts.
        ignored: terminals that may stand anywhere.
        starts: first and last state by start rule.
    """

    states: tuple[Mapping[str, int], ...]
    rules: tuple[Rule, ...]
    terminals: Mapping[str, Terminal]
    expected: tuple[int, ...]
    orders: tuple[tuple[str, ...], ...]
    ignored: frozenset[str]
    starts: Mapping[str, tuple[int, int]]


#: `match` of an expression, terminals by what it matched, and the terminal for anything else.
_Candidate = tuple[Callable[[str, int], "re.Match[str] | None"], dict[str, str], "str | None"]


@dataclass(slots=True)
class _Scanner:
    """What may stand somewhere, by its first character; filled in when a character is met there."""

    order: tuple[str, ...]
    terminals: Mapping[str, Terminal]
    known: dict[str, list[_Candidate]] = field(default_factory=dict)

    def candidates(self, first: str) -> list[_Candidate]:
        """What to try at this character, in order; words that share an expression are tried at once."""
        found: list[_Candidate] = []
        previous = None
        for name in self.order:
            terminal = self.terminals[name]
            if terminal.first is not None and first not in terminal.first:
                continue
            if terminal.pattern != previous or found[-1][2] is not None:
                found.append((re.compile(terminal.pattern).match, {}, None))
                previous = terminal.pattern
            match, words, _ = found[-1]
            if terminal.words is None:
                found[-1] = (match, words, name)
            for word in terminal.words or ():
                words.setdefault(word, name)
        self.known[first] = found
        return found


class Engine:
    """A parser.

    Args:
        tables: of the grammar.
        actions: has a method for every rule that makes a value, called with the values of its children,
            and perhaps one for a terminal, called with each of its tokens.
    """

    def __init__(self, tables: EngineTables, actions: object) -> None:
        self._tables = tables
        self._actions = [_action(rule, actions) for rule in tables.rules]
        scanners = [_Scanner(order, tables.terminals) for order in tables.orders]
        self._scanners = [scanners[number] for number in tables.expected]
        methods = {name: getattr(actions, name, None) for name in tables.terminals}
        self._token_actions = {name: method for name, method in methods.items() if method is not None}

    def parse(self, start: str, text: str, begin: int = 0) -> Any:
        """The value of the text from `begin` on, read as the rule `start`.

        Raises:
            Unexpected: it is none.
        """
        first, last = self._tables.starts[start]
        states = [first]
        try:
            return self._run(states, last, text, begin)
        except _Stuck as stuck:
            names = [*self._tables.terminals, END]
            expected = frozenset(name for name in names if self._takes([*states], last, name))
            raise Unexpected(stuck.position, expected) from None

    def _run(self, states: list[int], last: int, text: str, begin: int) -> Any:
        """The value of the text from `begin` on; `states` is the stack to begin with, and changes."""
        rows, rules, actions = self._tables.states, self._tables.rules, self._actions
        token_actions = self._token_actions
        values: list[Any] = []
        line, position = text.count("\n", 0, begin) + 1, begin
        while True:
            token = self._token(text, position, states[-1])
            token.line = line = line + text.count("\n", begin, token.start_pos)
            begin, position = token.start_pos, token.end_pos
            step = rows[states[-1]].get(token.type)
            while step is not None and step < 0:
                rule, keep = rules[~step], len(values) - rules[~step].length
                values[keep:] = [actions[~step](values[keep:])]
                del states[keep + 1 :]
                states.append(rows[states[-1]][rule.origin])
                if states[-1] == last and token.type == END:
                    return values[-1]
                step = rows[states[-1]].get(token.type)
            if step is None:
                raise _Stuck(None if token.type == END else begin)
            states.append(step)
            act = token_actions.get(token.type)
            values.append(token if act is None else act(token))

    def _takes(self, states: list[int], last: int, name: str) -> bool:
        """Whether a terminal may come next."""
        rows, rules = self._tables.states, self._tables.rules
        while (step := rows[states[-1]].get(name)) is not None and step < 0:
            rule = rules[~step]
            del states[len(states) - rule.length :]
            states.append(rows[states[-1]][rule.origin])
            if states[-1] == last and name == END:
                return True
        return step is not None

    def _token(self, text: str, position: int, state: int) -> Token:
        """The next token that is not ignored."""
        scanner, ignored = self._scanners[state], self._tables.ignored
        while position < len(text):
            character = text[position]
            candidates = scanner.known.get(character)
            for match, words, other in scanner.candidates(character) if candidates is None else candidates:
                found = match(text, position)
                if found is not None and (name := words.get(found[0], other)) is not None:
                    break
            else:
                raise _Stuck(position)
            if name not in ignored:
                token = Token(found[0])
                token.type, token.start_pos, token.end_pos = name, position, found.end()
                return token
            position = found.end()
        token = Token()
        token.type, token.start_pos, token.end_pos = END, position, position
        return token


def _action(rule: Rule, actions: object) -> Callable[[list[Any]], Any]:
    """From the values of all symbols of a production to its own."""
    function = getattr(actions, rule.action) if rule.action is not None else None
    selects_all = rule.children == tuple((position, False) for position in range(rule.length))
    if selects_all and not rule.is_transparent:
        return function or _itself
    return partial(_selected, rule.children, rule.is_transparent, function or _itself)


def _itself(children: list[Any]) -> list[Any]:
    return children


def _selected(
    positions: Sequence[tuple[int, bool]],
    is_transparent: bool,
    function: Callable[[list[Any]], Any],
    values: list[Any],
) -> Any:
    children: list[Any] = []
    for position, is_spliced in positions:
        value = values[position]
        if not is_spliced:
            children.append(value)
        elif children:
            children += value
        else:
            children = value  # a long list grows at its end instead of being copied
    return children[0] if is_transparent and len(children) == 1 else function(children)
