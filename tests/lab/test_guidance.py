"""What was reached is counted, what was new is kept, what finds more is drawn more; JSON holds all of it."""

from __future__ import annotations

import pytest

from hlotool.lab.fuzz.guidance import MOST_KEPT, Guidance, choices_of
from hlotool.lab.fuzz.programs import Drawn, Source
from hlotool.parser.reader import parse_module

MODULE = parse_module("HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n")


def drawn(index: int, *features: str) -> Drawn:
    return Drawn(MODULE, "graph", 5, index, frozenset(features))


def test_words_are_new_once() -> None:
    guidance = Guidance()
    assert guidance.learn(drawn(0, "add", "add:f32"), ["pass:algsimp"]) == {"add", "add:f32", "pass:algsimp"}
    assert guidance.learn(drawn(1, "add"), ["pass:algsimp", "pass:cse"]) == {"pass:cse"}
    assert guidance.learn(drawn(2, "add")) == frozenset()
    assert guidance.reached == {"add": 3, "add:f32": 1, "pass:algsimp": 2, "pass:cse": 1}
    assert [kept.index for kept in guidance.kept] == [0, 1]


def test_choices_are_opcodes_types_and_idioms() -> None:
    words = ["dot", "dot:s8", "pad negative", "idiom:slice of pad", "pass:dot", "add:dims 1"]
    assert choices_of(words) == {"dot", "s8", "slice of pad"}


def test_what_finds_more_is_drawn_more() -> None:
    guidance = Guidance()
    for index in range(40):
        guidance.learn(drawn(index, "sort"), [f"pass:{index}"])
        guidance.learn(drawn(index, "add"))
    weights = guidance.weights
    assert weights["sort"] > 1.5 > 0.9 > weights["add"]
    assert all(0.3 <= weight <= 3.0 for weight in weights.values())


def test_without_finds_all_weights_are_near_one() -> None:
    guidance = Guidance()
    assert not guidance.weights
    for index in range(50):
        guidance.learn(drawn(index, "sort", "add"))
    assert guidance.weights["sort"] == guidance.weights["add"] == pytest.approx(1.0)


def test_the_pool_forgets_what_is_common() -> None:
    guidance = Guidance()
    guidance.learn(drawn(0, "add"), ["common"])
    for index in range(MOST_KEPT + 5):
        guidance.learn(drawn(index + 1, "add"), ["common", f"rare:{index}"])
    assert len(guidance.kept) == MOST_KEPT
    assert 0 not in {kept.index for kept in guidance.kept}


def test_it_goes_on_from_json() -> None:
    """The copy knows the same words, and a source that it guides draws the same programs."""
    guidance, source = Guidance(), Source(9)
    for index in range(60):
        guidance.learn(source.draw(index), [f"pass:{index % 7}"])
    copy = Guidance.from_json(guidance.to_json())
    assert copy.to_json() == guidance.to_json()
    later = source.draw(60)
    assert copy.learn(later) == guidance.learn(later)
    assert copy.weights == guidance.weights
    told = [Source(11), Source(11)]
    for one, guide in zip(told, (guidance, copy)):
        one.tell(guide.weights, guide.modules)
    for index in range(20):
        a, b = (one.draw(index) for one in told)
        assert a.module.to_text() == b.module.to_text()


@pytest.mark.parametrize("text", ["{}", "[]", '{"reached": 1, "drawn": {}, "found": {}, "kept": []}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no guidance"):
        Guidance.from_json(text)


def test_what_was_drawn_is_not_changed() -> None:
    """Mutation copies: a program of the pool is the same before and after."""
    source = Source(3)
    pool = [source.draw(index).module for index in range(20)]
    before = [module.to_text() for module in pool]
    mutants = Source(4, origins={"mutation": 1.0}, seeds_of_mutation=pool)
    for index in range(60):
        mutants.draw(index)
    assert [module.to_text() for module in pool] == before
