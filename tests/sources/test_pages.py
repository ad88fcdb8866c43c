"""Programs as people paste them: pairs on one page, shortened headers, bytes as Python prints them."""

from __future__ import annotations

import numpy as np
import pytest
from support.dumps import Write, module_text

import hlotool
from hlotool.errors import DumpError, HloSyntaxError
from hlotool.parser.proto.module import write_module_proto
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import load_stage

BEFORE = "HloModule jit_f\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} add(x, x)\n}\n"
AFTER = BEFORE.replace("HloModule jit_f", "HloModule jit_f, is_scheduled=true").replace("add", "multiply")


def page(first: str, second: str, one: str = "", other: str = "") -> str:
    return f"# A report\n\n{one}\n\n```\n{first}```\n\n{other}\n\n```\n{second}```\n"


def roots(write: Write, text: str) -> list[list[tuple[Kind, str]]]:
    """By module the kind of each stage, and the opcode of its root."""
    dump = open_dump(write(("page.md", text)) / "page.md")
    return [
        [(stage.kind, load_stage(module, stage).entry.root.opcode) for stage in module.stages]
        for module in dump.modules
    ]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_schedule_makes_two_programs_a_pair(write: Write, swapped: bool) -> None:
    texts = (AFTER, BEFORE) if swapped else (BEFORE, AFTER)
    expected = [(Kind.BEFORE_OPTIMIZATIONS, "add"), (Kind.AFTER_OPTIMIZATIONS, "multiply")]
    assert roots(write, page(*texts)) == [expected]


def test_words_make_two_programs_a_pair(write: Write) -> None:
    second = BEFORE.replace("jit_f", "jit_f.2").replace("add", "multiply")
    found = roots(write, page(BEFORE, second, "Before the pass:", "and after it:"))
    assert found == [[(Kind.BEFORE_OPTIMIZATIONS, "add"), (Kind.AFTER_OPTIMIZATIONS, "multiply")]]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (BEFORE, BEFORE.replace("add", "multiply"), ("", "")),
        (BEFORE, AFTER.replace("jit_f", "jit_g"), ("", "")),
        (BEFORE, BEFORE.replace("add", "multiply"), ("One:", "before and after this:")),
    ],
)
def test_others_are_programs_for_themselves(
    write: Write, first: str, second: str, words: tuple[str, str]
) -> None:
    found = roots(write, page(first, second, *words))
    assert [kind for stages in found for kind, _ in stages] == [Kind.PLAIN, Kind.PLAIN]


HEADER = "entry_computation_layout={(f32[4]{0})->f32[4]{0}}"


@pytest.mark.parametrize(
    "attributes",
    [
        f"{HEADER}, schedule={{...}}",
        "is_scheduled=true, ...",
        "entry_computation_layout={...}, is_scheduled=true",
        'entry_computation_layout={(f32[4]{0}, ...)->...}, frontend_attributes={a="x, ..."}',
    ],
)
def test_what_a_header_leaves_out_the_body_says(attributes: str) -> None:
    text = BEFORE.replace("HloModule jit_f", f"HloModule jit_f, {attributes}")
    module = parse_module(text)
    assert list(module.entry_layout.parameters) == [module.entry.root.shape]
    assert module.attributes.get("is_scheduled", False) is ("is_scheduled" in attributes)
    with pytest.raises(HloSyntaxError):
        parse_module(text, strict=True)


def test_lines_keep_their_numbers_below_a_shortened_header() -> None:
    text = BEFORE.replace("HloModule jit_f", "HloModule jit_f, schedule={...}").replace("add", "adder")
    with pytest.raises(HloSyntaxError) as caught:
        parse_module(text)
    assert str(caught.value).startswith("<text>:5:")


def test_a_result_that_the_header_says_is_a_tuple() -> None:
    """XLA's parser takes what `XlaComputation.as_hlo_text` of old JAX prints."""
    module = parse_module(
        BEFORE.replace(
            "HloModule jit_f", "HloModule jit_f, entry_computation_layout={(f32[4]{0})->(f32[4]{0})}"
        )
    )
    assert module.entry_layout.result == module.entry.root.shape
    value = np.arange(4, dtype=np.float32)
    [result] = hlotool.run(module, [value])
    np.testing.assert_array_equal(result, 2 * value)


def test_doctests_have_a_word_for_empty_lines(write: Write) -> None:
    lines = "\n".join(f"    {line}" if line else "    <BLANKLINE>" for line in AFTER.split("\n")[:-1])
    text = f'def f():\n    """Twice.\n\n    >>> print(f.lower(1).compile().as_text())\n{lines}\n    """\n'
    assert roots(write, text) == [[(Kind.PLAIN, "multiply")]]


@pytest.mark.parametrize("shown", [repr, lambda content: f"text {content!r} and more"])
def test_bytes_as_python_prints_them(write: Write, shown: object) -> None:
    assert callable(shown)
    content = write_module_proto(parse_module(module_text("jit_f", "abs")))
    assert roots(write, f">>> computation.as_serialized_hlo_module_proto()\n{shown(content)}\n") == [
        [(Kind.PLAIN, "abs")]
    ]


def test_bytes_of_something_else_are_no_program(write: Write) -> None:
    with pytest.raises(DumpError, match="not HLO"):
        open_dump(write(("log.txt", f"read {bytes(range(256))!r}\n")) / "log.txt")


@pytest.mark.parametrize(
    "sentence", ["HloModule has a mix of layouts", "HloModule is what XLA compiles, and"]
)
def test_a_sentence_is_no_program(write: Write, sentence: str) -> None:
    with pytest.raises(DumpError, match="not HLO"):
        open_dump(write(("notes.txt", f"Some words.\n{sentence} the rest.\n")) / "notes.txt")


def test_a_python_program_is_run_under_exec(write: Write) -> None:
    with pytest.raises(DumpError, match="hlotool exec -- python"):
        open_dump(write(("train.py", "import os\nimport jax\n\nprint(jax.jit(abs)(1))\n")) / "train.py")
