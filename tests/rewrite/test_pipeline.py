"""Pipelines from text, options by type, the registry."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from typing import ClassVar, Literal

import pytest

from hlotool.errors import UsageError
from hlotool.ir.module import Module
from hlotool.rewrite.passes import pipeline
from hlotool.rewrite.passes.base import Context, make_pass, options_of, summary
from hlotool.rewrite.passes.calls import Inline
from hlotool.rewrite.passes.cleanup import Dce
from hlotool.rewrite.passes.fuse import Fuse
from hlotool.rewrite.passes.pipeline import (
    BUILT_IN,
    PIPELINES,
    XLA_NAMES,
    Pipeline,
    describe_passes,
    parse_pipeline,
    pass_class,
    pass_names,
)
from hlotool.rewrite.passes.records import OptionRecord


@dataclass(frozen=True)
class Every:
    """Has an option of every type. And a second sentence.

    Attributes:
        flag: yes or no.
        how: one of two,
            said at length.
        count: a number.
        names: several.
    """

    name: ClassVar[str] = "every"
    flag: bool = False
    how: Literal["fast", "slow"] = "fast"
    count: int | None = None
    ratio: float = 0.5
    label: str = ""
    names: tuple[str, ...] = ("a", "b")

    def run(self, module: Module, context: Context) -> None:
        """Does nothing."""


def test_lists_options_and_repetition() -> None:
    pipeline = parse_pipeline(" inline{single_use} , fix(dce, inline{composites=false single_use=true}),dce ")
    assert pipeline == Pipeline(
        "opt",
        (
            Inline(single_use=True),
            Pipeline("fix", (Dce(), Inline(single_use=True, composites=False)), until_stable=True),
            Dce(),
        ),
    )


def test_named_pipelines() -> None:
    (named,) = parse_pipeline("despecialize").items
    assert isinstance(named, Pipeline)
    assert named.name == "despecialize"
    assert [item.name for item in named.items] == PIPELINES["despecialize"].split(",")
    with pytest.raises(UsageError, match="pipeline despecialize takes no options"):
        parse_pipeline("despecialize{kind=loop}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a pass, found 'the end'"),
        ("dce,", "expected the name of a pass, found 'the end'"),
        ("dce,,cse", "expected the name of a pass, found ',cse'"),
        ("dce cse", "expected a comma or the end, found 'cse'"),
        ("fix(dce", "expected a closing parenthesis, found 'the end'"),
        ("dce)", r"expected a comma or the end, found '\)'"),
        ("dce{", "expected the name of a pass, found '{'"),
        ("7", "expected the name of a pass, found '7'"),
        ("dse", "no pass 'dse'; there are: .*, cse, dce, "),
        ("fuse{kind=lop}", r"pass fuse: kind=lop: kind takes all\|loop\|input\|multi-output"),
        ("fuse{kind}", "pass fuse: kind: kind takes all"),
        ("fuse{kind=loop,kind=all}", "option kind is given twice"),
        ("unroll{max_trips=many}", "max_trips=many: max_trips takes whole number"),
        ("dce{depth=3}", "pass dce has no option 'depth'; there are: fusion_outputs"),
        ("cse{depth=3}", "pass cse has no option 'depth'; there are: none"),
        ("extract", r"pass extract needs the option instruction: extract{instruction=…}"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_pipeline(text)


def test_passes_by_the_names_that_xla_has_for_them() -> None:
    assert parse_pipeline("algsimp,tuple-simplifier") == parse_pipeline("simplify,simplify-tuples")
    assert set(XLA_NAMES.values()) <= set(BUILT_IN) | set(PIPELINES)
    assert not set(XLA_NAMES) & (set(BUILT_IN) | set(PIPELINES))


def test_options_of_every_type() -> None:
    given = {"flag": None, "how": "slow", "count": "3", "ratio": "0.25", "label": "x=y", "names": "c+d"}
    assert make_pass(Every, given) == Every(True, "slow", 3, 0.25, "x=y", ("c", "d"))
    assert make_pass(Every, {"flag": "false"}) == Every()
    for name, text in (("flag", "maybe"), ("count", "1.5"), ("ratio", "half"), ("how", None)):
        with pytest.raises(UsageError, match=f"{name} takes"):
            make_pass(Every, {name: text})


def test_options_are_described() -> None:
    assert summary(Every) == "Has an option of every type. And a second sentence"
    assert options_of(Every) == [
        OptionRecord("flag", "true|false", "false", "yes or no"),
        OptionRecord("how", "fast|slow", "fast", "one of two, said at length"),
        OptionRecord("count", "whole number", "None", "a number"),
        OptionRecord("ratio", "number", "0.5", ""),
        OptionRecord("label", "text", "", ""),
        OptionRecord("names", "names joined by +", "a+b", "several"),
    ]


def test_every_built_in_pass_is_described_and_named_as_registered() -> None:
    assert list(BUILT_IN) == sorted(BUILT_IN)
    for info in describe_passes():
        assert not info.error
        assert info.about
        assert all(option.about for option in info.options), info.name
        if info.name in BUILT_IN:
            assert pass_class(info.name).name == info.name
    for name, text in PIPELINES.items():
        assert parse_pipeline(text, name).items


def test_passes_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A working one is found by its entry point; a broken one is listed with its reason."""
    good = EntryPoint("twice", "hlotool.rewrite.passes.calls:Inline", pipeline.GROUP)
    bad = EntryPoint("broken", "hlotool.rewrite.passes.nowhere:Nothing", pipeline.GROUP)
    monkeypatch.setattr(pipeline, "_entry_points", lambda: EntryPoints([good, bad]))
    assert {"twice", "broken", "dce"} <= set(pass_names())
    assert pass_class("twice") is Inline
    infos = {info.name: info for info in describe_passes()}
    assert "ModuleNotFoundError: No module named 'hlotool.rewrite.passes.nowhere'" in infos["broken"].error
    assert pass_class("fuse") is Fuse


def test_built_in_passes_are_entry_points_of_the_distribution() -> None:
    import tomllib
    from pathlib import Path

    with (Path(__file__).resolve().parents[2] / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["entry-points"][pipeline.GROUP] == BUILT_IN
