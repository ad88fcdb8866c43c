"""What a campaign has reached, and what is drawn more often for it.

Everything that is reached is a word: what a program holds (`programs.drawn.words_of`), and what the campaign
adds, such as `pass:algsimp` for a pass that changed it. A program that reaches a new word is kept: its
mutants are near what is new. The words that choices are made of, which are opcodes, element types and idioms,
are weighed like the arms of a bandit: by how many of the programs that held them reached something new.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hlotool.ir.module import Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.fuzz.programs.drawn import Drawn
from hlotool.parser.reader import parse_module

#: Programs that are kept; of more, the one whose words are the most common goes.
MOST_KEPT = 400

#: A word is drawn so much more, or less, often than without guidance, at most: nothing is forgotten.
_LEAST, _MOST = 0.3, 3.0

#: So many programs are added to those of each choice, with as many finds as is usual.
_PRIOR = 5.0

_IDIOM = "idiom:"


@dataclass(frozen=True)
class Kept:
    """A program that reached something new.

    Attributes:
        text: of the program.
        seed: of the source that drew it.
        index: there.
        words: that it was the first to reach.
    """

    text: str
    seed: int
    index: int
    words: tuple[str, ...]


class Guidance:
    """Counts what was reached, keeps the programs that were first, and weighs what to draw.

    Attributes:
        reached: how many programs reached each word.
        kept: programs that were first, oldest first.
    """

    def __init__(self) -> None:
        self.reached: Counter[str] = Counter()
        self.kept: list[Kept] = []
        self._drawn: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._modules: dict[str, Module] = {}

    def learn(self, drawn: Drawn, words: Iterable[str] = ()) -> frozenset[str]:
        """Take note of a program that ran.

        Args:
            drawn: the program.
            words: that the campaign adds, such as the passes that changed it.

        Returns:
            The words that no program had reached before.
        """
        all_words = drawn.features | frozenset(words)
        new = frozenset(word for word in all_words if word not in self.reached)
        self.reached.update(all_words)
        choices = choices_of(drawn.features)
        self._drawn.update(choices)
        if new:
            self._found.update(choices)
            self._keep(drawn, new)
        return new

    def _keep(self, drawn: Drawn, new: frozenset[str]) -> None:
        text = drawn.module.to_text()
        self.kept.append(Kept(text, drawn.seed, drawn.index, tuple(sorted(new))))
        self._modules[text] = drawn.module
        if len(self.kept) > MOST_KEPT:
            commonest = max(self.kept, key=lambda k: min(self.reached[word] for word in k.words))
            self.kept.remove(commonest)
            self._modules.pop(commonest.text, None)

    @property
    def modules(self) -> tuple[Module, ...]:
        """The programs that are kept, for mutation."""
        for kept in self.kept:
            if kept.text not in self._modules:
                self._modules[kept.text] = parse_module(kept.text)
        return tuple(self._modules[kept.text] for kept in self.kept)

    @property
    def weights(self) -> Mapping[str, float]:
        """How much more often than otherwise each choice is drawn; 1 for what is not mentioned.

        The share of a choice's programs that found something over that of all choices' programs; each choice
        is taken to have found as often as the others in some programs more, so that few say little.
        """
        drawn, found = self._drawn.total(), self._found.total()
        if not found:
            return {}
        usual = found / drawn
        shares = {
            word: (self._found[word] + _PRIOR * usual) / (count + _PRIOR)
            for word, count in sorted(self._drawn.items())
        }
        return {word: min(_MOST, max(_LEAST, share / usual)) for word, share in shares.items()}

    def to_json(self) -> str:
        """All of it as JSON; `from_json` goes on from there."""
        content = {
            "reached": dict(sorted(self.reached.items())),
            "drawn": dict(sorted(self._drawn.items())),
            "found": dict(sorted(self._found.items())),
            "kept": [
                {"text": k.text, "seed": k.seed, "index": k.index, "words": list(k.words)} for k in self.kept
            ],
        }
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Guidance:
        """What `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        content: Any = json.loads(text)
        made = cls()
        try:
            made.reached.update(content["reached"])
            made._drawn.update(content["drawn"])
            made._found.update(content["found"])
            made.kept = [
                Kept(str(k["text"]), int(k["seed"]), int(k["index"]), tuple(k["words"]))
                for k in content["kept"]
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no guidance: {error}") from None
        return made


def choices_of(features: Iterable[str]) -> frozenset[str]:
    """The opcodes, element types and names of idioms in a program's words: what a source chooses by."""
    found = set()
    for word in features:
        if word.startswith(_IDIOM):
            found.add(word.removeprefix(_IDIOM))
        elif word in OPCODES:
            found.add(word)
        elif (kind := word.partition(":")[2]) in ELEMENT_TYPES:
            found.add(kind)
    return frozenset(found)
