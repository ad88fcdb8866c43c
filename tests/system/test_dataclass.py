"""What `hlotool.system.dataclass` makes is what the standard library makes: it gives all expected values."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hlotool.system.dataclass import dataclass

ROOT = Path(__file__).resolve().parents[2]
OPTIONS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"eq": False},
    {"slots": True, "order": True},
    {"frozen": True, "slots": True, "order": True},
    {"frozen": True, "kw_only": True},
]


def classes(decorate: Callable[..., Any], options: dict[str, bool]) -> tuple[Any, Any]:
    """A class and a subclass with fields of each kind."""

    @decorate(**options)
    class Base:
        a: int
        shared: ClassVar[int] = 7
        b: str = "b"
        c: list[int] = field(default_factory=list, compare=False)

    @decorate(**options)
    class Further(Base):
        b: str = "other"
        d: int = field(default=1, repr=False)
        e: int = field(init=False, default=5)
        f: dict[str, int] = field(init=False, default_factory=dict, compare=False)
        g: float = field(default=0.5, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "e", self.d + 1)

    return Base, Further


def attempt(function: Callable[..., object], *arguments: object, **named: object) -> str:
    """What it returns, or that it fails: with slots, the standard library fails otherwise than it says."""
    try:
        return repr(function(*arguments, **named))
    except (TypeError, AttributeError, ValueError):
        return "fails"


def facts(decorate: Callable[..., Any], options: dict[str, bool]) -> Iterator[object]:
    """What can be seen of objects."""
    for made in classes(decorate, options):
        yield attempt(made), attempt(made, 1, "b", [2], 3), attempt(made, a=1, no=2)
        yield made.__match_args__, hasattr(made, "__slots__")
        for one in (made(a=1), made(a=2, b="x"), made(a=1, c=[3])):
            yield repr(one), dataclasses.asdict(one)
            yield one == one, one == made(a=1), one == made(a=2, b="x"), one == 1
            yield attempt(one.__lt__, made(a=2)), attempt(one.__ge__, made(a=2)), attempt(one.__gt__, 1)
            if options.get("eq", True):
                yield attempt(hash, one)
            yield attempt(setattr, one, "a", 9), attempt(setattr, one, "unknown", 9)
            yield attempt(delattr, one, "b"), attempt(dataclasses.replace, one, a=4)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_are_those_of_the_standard_library(options: dict[str, bool]) -> None:
    assert list(facts(dataclass, options)) == list(facts(dataclasses.dataclass, options))


@dataclass(frozen=True, slots=True)
class Kept:
    """Pickle finds it by its name."""

    a: int
    b: tuple[int, ...] = ()


def test_pickle() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))


def test_methods_of_its_own_stay() -> None:
    @dataclass(frozen=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), Own(1) == 5, hash(Own(1))) == ("own", True, 7)


def test_a_circle_is_shown() -> None:
    @dataclass
    class Node:
        next: Node | None = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


def test_all_values_are_made_so() -> None:
    """The standard library's own takes a quarter of a millisecond for each class that is imported."""
    own = re.compile(r"^from dataclasses import [^\n]*\bdataclass\b", re.MULTILINE)
    files = [path for folder in ("hlotool", "backends") for path in (ROOT / folder).rglob("*.py")]
    slow = [str(path.relative_to(ROOT)) for path in files if own.search(path.read_text(encoding="utf-8"))]
    # `errors` stands below all rooms.
    assert slow == ["hlotool/errors.py"]
