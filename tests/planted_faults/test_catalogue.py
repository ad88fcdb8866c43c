"""Every kind of fault makes some corpus program wrong, and leaves it valid HLO of the same interface."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Module
from hlotool.ir.types import strip_layouts
from hlotool.ir.verifier import verify
from hlotool.lab.faults import BELOW_ROUNDING, CATALOGUE, FaultKind, Site, poisoned
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

#: Small programs in which every kind finds a place.
PROGRAMS = (
    "modules/add.f32.hlo",
    "modules/dot.matrices.hlo",
    "modules/while.array_state.hlo",
    "modules/broadcast.middle.hlo",
    "modules/scatter.add_rows.hlo",
    "modules/gather.rows.hlo",
    "modules/sort.two_keys.hlo",
    "modules/sort.stable_pairs.hlo",
    "modules/pad.negative_and_interior.hlo",
    "modules/reverse.two_dimensions.hlo",
    "modules/round-nearest-even.f32.hlo",
    "modules/convert.float_to_integer.hlo",
    "modules/convert.integer_to_integer.hlo",
    "modules/shift-right-arithmetic.s16.hlo",
    "modules/convolution.same.hlo",
    "modules/convolution.all_at_once.hlo",
    "modules/reduce-window.cumulative.hlo",
    "modules/clamp.array_bounds.hlo",
    "modules/conditional.branches.hlo",
    "modules/concatenate.three.hlo",
    "modules/transpose.three_dimensions.hlo",
    "modules/iota.types.hlo",
    "modules/dynamic-slice.clamped.hlo",
    "modules/dynamic-update-slice.clamped.hlo",
    "modules/reduce.sum.hlo",
    "modules/add.u64.hlo",
    "jax/random_threefry/module_0000.jit_random_uniform.before_optimizations.txt",
    "jax/dynamic_rnn/module_0000.jit_dynamic_rnn.before_optimizations.txt",
    "jax/nested_loops/module_0000.jit_nested_loops.before_optimizations.txt",
    "jax/slices/module_0000.jit_slices.before_optimizations.txt",
    "jax/transformer/module_0000.jit_transformer.before_optimizations.txt",
    "jax/train_mnist_mlp/module_0000.jit_train_mnist_mlp.before_optimizations.txt",
    "jax/train_mnist_mlp/module_0000.jit_train_mnist_mlp.cpu_after_optimizations.txt",
    "jax/cumulative/module_0000.jit_cumulative.before_optimizations.txt",
    "jax/top_k/module_0000.jit_top_k.before_optimizations.txt",
)


@cache
def program(name: str) -> Module:
    return parse_module((CORPUS / name).read_text(encoding="utf-8"), name)


def arguments(module: Module, poison: float | None) -> list[Any]:
    return poisoned(generate_inputs(module, seed=3).values, poison)


def run(module: Module, values: list[Any]) -> Any:
    return NumpyBackend().compile(module).run(values)


def differs(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return any(map(differs, a, b))
    if not isinstance(a, np.ndarray | np.generic):
        return False
    same = np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    return not same


def sites(kind: FaultKind) -> Iterator[tuple[Module, Site]]:
    for name in PROGRAMS:
        for site in kind.sites(program(name))[:12]:
            yield program(name), site


def test_catalogue_has_names_that_differ() -> None:
    assert len({kind.name for kind in CATALOGUE}) == len(CATALOGUE) >= 25
    assert not {kind.name for kind in CATALOGUE} & {kind.name for kind in BELOW_ROUNDING}
    assert all(kind.imitates for kind in CATALOGUE)


@pytest.mark.parametrize("kind", BELOW_ROUNDING, ids=lambda kind: kind.name.replace(" ", "_"))
def test_what_rounding_hides_is_another_program(kind: FaultKind) -> None:
    """Its results may be the same; where it can be planted at all, the program is valid and another one."""
    for module, site in sites(kind):
        planted = kind.plant(module, site, seed=5)
        assert verify(planted) == []
        assert planted.to_text() != module.to_text()


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name.replace(" ", "_"))
def test_changes_a_result(kind: FaultKind) -> None:
    tried = 0
    for module, site in sites(kind):
        tried += 1
        before = module.to_text()
        planted = kind.plant(module, site, seed=5)
        assert verify(planted) == []
        assert module.to_text() == before, "the program itself must stay as it is"
        assert strip_layouts(planted.entry.root.shape) == strip_layouts(module.entry.root.shape)
        values = arguments(module, kind.poison)
        try:
            if differs(run(module, values), run(parse_module(planted.to_text()), values)):
                return
        except HlotoolError:
            continue
    pytest.fail(f"none of {tried} places changes a result")


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.name.replace(" ", "_"))
def test_equal_seeds_plant_the_same(kind: FaultKind) -> None:
    module, site = next(sites(kind))
    assert kind.plant(module, site, seed=9).to_text() == kind.plant(module, site, seed=9).to_text()


def test_site_that_is_not_there() -> None:
    module = program("modules/add.f32.hlo")
    with pytest.raises(KeyError, match="nowhere"):
        CATALOGUE[0].plant(module, Site("main", "nowhere"))


@pytest.mark.parametrize("where", ["fusion", "while", "reduce"])
def test_reaches_inner_computations(where: str) -> None:
    """Fusions, loop bodies and reducers have places for faults, too."""
    reached: set[str] = set()
    for name in PROGRAMS[-6:]:
        module = program(name)
        callees = {c.name: i.opcode for i in module.instructions() for c in i.called}
        reached |= {
            callees[s.computation] for k in CATALOGUE for s in k.sites(module) if s.computation in callees
        }
    assert where in reached
