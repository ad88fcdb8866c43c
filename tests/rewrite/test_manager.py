"""The pass manager: order, fixpoints, verification, fuel, statistics, what listeners see."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from support.rewrites import rewrite

from hlotool.errors import VerificationError
from hlotool.ir.edit import editing
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.base import Context, Fuel
from hlotool.rewrite.passes.manager import DumpModules, PassManager, PrintModules
from hlotool.rewrite.passes.pipeline import MOST_ROUNDS, Pipeline, parse_pipeline
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

TEXT = """HloModule chain.1
sub { p = f32[] parameter(0) n = f32[] negate(p) ROOT m = f32[] negate(n) }
ENTRY e {
  x = f32[] parameter(0)
  a = f32[] call(x), to_apply=sub
  b = f32[] call(a), to_apply=sub
  ROOT c = f32[] call(b), to_apply=sub
}"""


@dataclass(frozen=True)
class Breaks:
    """Puts a use before its definition."""

    name: ClassVar[str] = "breaks"

    def run(self, module: Module, context: Context) -> None:
        if context.spend("order"):
            module.entry.instructions.reverse()


@dataclass(frozen=True)
class Restless:
    """Renames the root, again and again."""

    name: ClassVar[str] = "restless"

    def run(self, module: Module, context: Context) -> None:
        if context.spend("name"):
            module.entry.root.name += "x"


@dataclass
class Log:
    """Writes down what it is told."""

    lines: list[str] = field(default_factory=list)

    def started(self, pipeline: str, first: str, module: Module) -> None:
        self.lines.append(f"{pipeline}: starts with {first}")

    def before(self, pipeline: str, name: str, module: Module) -> None:
        self.lines.append(f"{pipeline}: {name}")

    def after(self, pipeline: str, name: str, following: str, module: Module, changed: bool) -> None:
        self.lines.append(f"{pipeline}: after {name} comes {following}, {changed}")


def test_statistics() -> None:
    _, manager = rewrite(parse_module(TEXT), "inline,fix(simplify,dce)")
    runs = [
        (r.pipeline, r.name, r.changes, r.instructions_before, r.instructions_after) for r in manager.runs
    ]
    assert runs == [
        ("opt", "inline", {"call": 3}, 7, 7),
        ("fix", "simplify", {"negate-negate": 3}, 7, 1),
        ("fix", "dce", {}, 1, 1),
        ("fix", "simplify", {}, 1, 1),
        ("fix", "dce", {}, 1, 1),
    ]
    assert all(r.seconds >= 0 for r in manager.runs)


def test_listeners_hear_of_every_step() -> None:
    log = Log()
    PassManager(listeners=[log]).run(parse_module(TEXT), parse_pipeline("inline,fix(dce)"))
    assert log.lines == [
        "opt: starts with inline",
        "opt: inline",
        "opt: after inline comes fix, True",
        "fix: starts with dce",
        "fix: dce",
        "fix: after dce comes pipeline-end, False",
        "opt: after fix comes pipeline-end, False",
    ]


def test_a_pass_that_breaks_the_module_is_named() -> None:
    module = parse_module(TEXT)
    with pytest.raises(VerificationError, match="pass breaks broke the module: operand"):
        PassManager().run(module, Pipeline("opt", (Breaks(),)))
    module = parse_module(TEXT)
    PassManager(verify=False).run(module, Pipeline("opt", (Breaks(),)))
    assert verify(module) != []


def test_a_module_that_is_wrong_to_begin_with_blames_no_pass() -> None:
    module = parse_module(TEXT)
    module.entry.instructions.reverse()
    with pytest.raises(VerificationError) as error:
        PassManager().run(module, parse_pipeline("dce"))
    assert "pass" not in str(error.value)


def test_a_fixpoint_that_never_comes_ends() -> None:
    manager = PassManager()
    assert manager.run(parse_module(TEXT), Pipeline("fix", (Restless(),), until_stable=True))
    assert len(manager.runs) == MOST_ROUNDS


@pytest.mark.parametrize("amount", range(6))
def test_fuel_stops_after_so_many_transformations(amount: int) -> None:
    module = parse_module(TEXT)
    manager = PassManager(Context(fuel=Fuel(amount)))
    manager.run(module, parse_pipeline("inline,simplify"))
    assert sum(sum(r.changes.values()) for r in manager.runs) == amount
    assert sum(i.opcode == "call" for i in module.entry.instructions) == max(0, 3 - amount)


def test_fuel_of_one_pass() -> None:
    manager = PassManager(Context(fuel=Fuel(by_pass={"simplify": 1})))
    manager.run(parse_module(TEXT), parse_pipeline("inline,simplify"))
    assert [sum(r.changes.values()) for r in manager.runs] == [3, 1]


def test_printing() -> None:
    texts: list[str] = []
    module = parse_module(TEXT)
    PassManager(listeners=[PrintModules(texts.append, ["inline"], ["all"])]).run(
        module, parse_pipeline("dce,inline,dce")
    )
    assert [text.splitlines()[0] for text in texts] == ["// *** before inline ***", "// *** after inline ***"]
    assert parse_module(texts[0]).to_text() == parse_module(TEXT).to_text()
    assert parse_module(texts[1]).to_text() == module.to_text()


def test_dumps_are_dumps(tmp_path: Path) -> None:
    """Their names are XLA's, so that everything that reads a dump reads them, in the right order."""
    dump, module = DumpModules(tmp_path / "made"), parse_module(TEXT)
    dump.begin(module)
    PassManager(listeners=[dump]).run(module, parse_pipeline("inline,fix(simplify,dce)"))
    dump.end(module)
    (found,) = open_dump(tmp_path / "made").modules
    assert (found.name, found.number) == ("chain.1", 0)
    assert [stage.label for stage in found.stages] == [
        "before_optimizations",
        "opt.after_pipeline-start.before_inline",
        "opt.after_inline.before_fix",
        "fix.after_pipeline-start.before_simplify",
        "fix.after_simplify.before_dce",
        "fix.after_pipeline-start.before_simplify",
        "opt.after_fix.before_pipeline-end",
        "hlotool_after_optimizations",
    ]
    assert load_stage(found, found.stages[-1]).to_text() == module.to_text()


def test_long_names_are_left_out_as_in_xla(tmp_path: Path) -> None:
    module = parse_module(TEXT)
    module.name = "x" * 300
    DumpModules(tmp_path, number=7).begin(module)
    assert [p.name for p in tmp_path.iterdir()] == ["module_0007.before_optimizations.txt"]


def test_changes_without_spending_do_not_exist() -> None:
    """A pass may look as long as it likes: only what was spent counts as a change."""
    module = parse_module(TEXT)
    with editing(module.entry) as edit:
        assert not edit.changed
    assert not PassManager().run(module, parse_pipeline("dce"))
