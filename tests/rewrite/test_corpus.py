"""Every rewrite preserves the results of real programs, and XLA accepts what it prints.

The quick run takes a sample of the corpus; `-m slow` takes every module.
"""

from __future__ import annotations

from functools import cache

import pytest
from support.rewrites import CORPUS, Program, check, modules, rewrite
from support.xla import oracle

from hlotool.errors import Unsupported
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

#: Every pass, and pipelines as people write them.
PIPELINES = (
    "annotate-trip-counts",
    "cse",
    "dce",
    "defuse",
    "deschedule",
    "despecialize",
    "drop-control-dependencies",
    "drop-layouts",
    "flatten",
    "fold",
    "fold{loops}",
    "fuse",
    "fuse{kind=input}",
    "fuse{kind=loop}",
    "fuse{kind=joint}",
    "fuse{kind=multi-output}",
    "fuse{target=cpu}",
    "inline",
    "limit-loops{iterations=1000000}",
    "simplify",
    "simplify-conditionals{select}",
    "simplify-tuples",
    "synchronize",
    "unroll",
    "inline,fix(unroll,fold,simplify-tuples,simplify,cse,dce),fuse",
    "defuse,fuse",
)
#: These may change rounding.
ROUNDING = ("simplify{allow=rounding},dce",)

#: Directory and stage of the programs of the quick run: loops, calls, reductions, scatters, fusions, devices.
SAMPLE = (
    "jax/collatz.before_optimizations",
    "jax/collectives.cpu_after_optimizations",
    "jax/nested_calls.before_optimizations",
    "jax/nested_loops.before_optimizations",
    "jax/scatters.before_optimizations",
    "jax/train_mnist_mlp.cpu_after_optimizations",
    "tf/fizzbuzz.before_optimizations",
)


@cache
def program(sample: str) -> Program:
    directory, stage = sample.split(".")
    file = min((CORPUS / directory).glob(f"*.{stage}.txt"))
    return Program(parse_module(file.read_text(encoding="utf-8"), str(file)))


@pytest.mark.parametrize("sample", SAMPLE)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_results_stay(sample: str, pipeline: str) -> None:
    check(program(sample), pipeline)


@pytest.mark.parametrize("sample", SAMPLE)
@pytest.mark.parametrize("pipeline", ROUNDING)
def test_results_stay_but_for_rounding(sample: str, pipeline: str) -> None:
    check(program(sample), pipeline, exact=False)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_pipeline_has_something_to_do(pipeline: str) -> None:
    changed = sum(
        sum(run.changes.values())
        for sample in SAMPLE
        for run in rewrite(program(sample).module, pipeline)[1].runs
    )
    assert changed or pipeline in ("drop-control-dependencies", "synchronize")


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["modules", "jax", "tf"])
def test_results_of_every_module_stay(folder: str) -> None:
    seen, skipped = 0, []
    for name, module in modules(folder):
        try:
            own = Program(module)
        except Unsupported:
            skipped.append(name)
            continue
        seen += 1
        for pipeline in (*PIPELINES, *ROUNDING):
            try:
                check(own, pipeline, exact=pipeline in PIPELINES)
            except Exception as error:
                raise AssertionError(f"{name}: {pipeline}: {error}") from error
    assert seen > 20
    assert len(skipped) <= 3, skipped


@pytest.mark.xla
@pytest.mark.parametrize("sample", SAMPLE[1:3])
def test_xla_accepts_what_is_printed(sample: str) -> None:
    """Its parser and verifier read each result; the program keeps its computations' number."""
    for pipeline in PIPELINES:
        rewritten = rewrite(program(sample).module, pipeline)[0]
        read = parse_module(oracle().canonical(rewritten.to_text()))
        assert _size(read) == _size(rewritten), pipeline


def _size(module: Module) -> tuple[int, int]:
    return len(module.computations), sum(1 for _ in module.instructions())


@pytest.mark.slow
@pytest.mark.xla
def test_xla_accepts_every_module_of_the_dumps() -> None:
    for name, module in modules("jax", "tf"):
        for pipeline in PIPELINES:
            text = rewrite(module, pipeline)[0].to_text()
            try:
                oracle().canonical(text)
            except Exception as error:
                raise AssertionError(f"{name}: {pipeline}: {error}") from error
