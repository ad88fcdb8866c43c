"""The numpy backend gives what XLA's CPU compiler gives, for every corpus module that XLA can run.

Integers and preds must be equal to the bit, floats within the tolerance that `hlotool run` derives.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.xla import XlaError, oracle

from hlotool.backends.registry import get_backend
from hlotool.ir.types import ArrayShape, TupleShape, leaves
from hlotool.numerics.compare import compare_values
from hlotool.numerics.dataflow import leaf_facts
from hlotool.numerics.verdict import Verdict
from hlotool.parse.reader import parse_module
from hlotool.values.generate import generate_inputs

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

pytestmark = pytest.mark.xla

#: Modules on which XLA and the text disagree, with the reason. Each is a rule, not an excuse.
DEPARTURES = {
    "multiply.s4_widened": "XLA drops the wrap-around to four bits (a fault of XLA's)",
    "module_0000.jit_int4_product": "XLA drops the wrap-around to four bits (a fault of XLA's)",
    "compare.totalorder": "XLA folds a comparison of constants in IEEE order, at run time in total order",
}

#: Programs that need particular inputs.
INPUT_RANGES = {
    # Newton iteration for the root of a negative number is chaotic: one ulp decides where it ends.
    "module_0000.jit_newton_roots": (0.5, 2.0),
}


def module_files() -> list[Path]:
    """Single-instruction modules, and the programs that the frontends gave to XLA."""
    programs = [
        *CORPUS.glob("jax/**/*before_optimizations.txt"),
        *CORPUS.glob("tf/**/*before_optimizations.txt"),
    ]
    return [*sorted(CORPUS.glob("modules/*.hlo")), *sorted(programs)]


def name_of(path: Path) -> str:
    """Short enough for a test id, and unique."""
    stem = path.name.removesuffix(".hlo").removesuffix(".before_optimizations.txt")
    return stem if path.suffix == ".hlo" else f"{path.parent.name}/{stem[:60]}"


def cannot_run(text: str) -> str | None:
    """Why XLA's CPU compiler cannot run this module on one device in this process."""
    if note := re.search(r"^// (XLA on CPU: .*)", text, re.MULTILINE):
        return note[1]
    if "constant({...})" in text:
        return "its constants are elided"
    if "callback" in text:
        return "it calls back into Python"
    if re.search(r"num_partitions=[2-9]|replica_count=[2-9]", text):
        return "it is for several devices"
    return None


def nested(shape: Any, flat: list[Any], like: Any) -> Any:
    """XLA's list of leaves in the tuple structure of `shape`.

    jaxlib hands out dynamic arrays at their bound and keeps their sizes to itself: they are cut to the size
    that `like` has, what is behind it is undefined.
    """
    if isinstance(shape, TupleShape):
        return tuple(nested(element, flat, part) for element, part in zip(shape.elements, like))
    if not isinstance(shape, ArrayShape):
        return None
    array = flat.pop(0)
    return array[tuple(slice(size) for size in like.shape)] if shape.is_dynamic else array


@pytest.mark.parametrize("path", module_files(), ids=name_of)
def test_same_as_xla(path: Path) -> None:
    text = path.read_text()
    if reason := cannot_run(text):
        pytest.skip(reason)
    module = parse_module(text, str(path))
    name = path.name.removesuffix(".hlo").removesuffix(".before_optimizations.txt")
    arguments = list(generate_inputs(module, seed=1, value_range=INPUT_RANGES.get(name)).values)
    actual = get_backend("numpy").compile(module).run(arguments)
    flat = [leaf for p, a in zip(module.entry.parameters, arguments) for leaf in flattened(p.shape, a)]
    try:
        outputs = oracle().run(text, flat)
    except XlaError as error:
        pytest.fail(f"XLA: {error}")
    shape = module.entry.root.shape
    comparison = compare_values(shape, nested(shape, outputs, actual), actual, facts=leaf_facts(module))
    if name in DEPARTURES:
        assert comparison.verdict is Verdict.DIFFERS, (
            "the rule that explains a difference has none to explain"
        )
        return
    assert comparison.verdict in (Verdict.IDENTICAL, Verdict.AGREE, Verdict.NOT_COMPARABLE), [
        (leaf.index, leaf.shape, leaf.reason) for leaf in comparison.leaves
    ]


def flattened(shape: Any, value: Any) -> list[Any]:
    """The arrays of an argument in tuple order."""
    arrays = []
    for index, part in leaves(shape):
        leaf = value
        for i in index:
            leaf = leaf[i]
        if isinstance(part, ArrayShape):
            arrays.append(leaf)
    return arrays
