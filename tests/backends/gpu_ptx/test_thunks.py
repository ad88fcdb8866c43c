"""Steps of a GPU's program. The texts are as jaxlib 0.10.2 writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.backends.gpu_ptx.thunks import Launch, Thunk, instruction_names, parse_thunks
from hlotool.errors import DumpError

CORPUS = Path(__file__).resolve().parents[3] / "corpus"

NESTED = """\
001: kCopy  [source       | next=003 (2)] kCopy
003: kWhile [prev=001 (1) | sink        ]
condition:
    004: kCustomKernel [source | sink] compare grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    016: kConditional  [prev=006 (1) | next=017 (1)]
      false_branch:
        009: kWhile [prev=008 (1) | sink        ]
condition:
            010: kCustomKernel [sink] k grid: [4, 2, 1] threads: [64, 1, 1] shared_memory: 1024 bytes
          body:
            012: kCopy         [source       | next=013 (1)] kCopy
      true_branch:
        No thunks.
    018: kCopy         [prev=016 (2) | sink        ] kCopy
019: kSequential   [prev=006 (1) | next=012 (1)]   007: kCopy            [source       | next=008 (1)] kCopy
  008: kTriangularSolve [prev=007 (1) | sink        ] (no description)
"""


def outline(steps: list[Thunk]) -> list[object]:
    """Numbers, with what each executes in turn behind it."""
    found: list[object] = []
    for step in steps:
        found.append(step.number)
        found += [(label, outline(part)) for label, part in step.parts]
    return found


def test_what_is_indented_belongs_to_the_step_above() -> None:
    inner = [9, ("condition", [10]), ("body", [12])]
    assert outline(parse_thunks(NESTED, {}, "x")) == [
        1,
        3,
        ("condition", [4]),
        ("body", [16, ("false_branch", inner), ("true_branch", []), 18]),
        19,
        ("", [7, 8]),
    ]


def test_a_launch() -> None:
    loop = parse_thunks(NESTED, {}, "x")[1]
    [inner] = [step for step in loop.all() if step.number == 10]
    assert inner.launch == Launch("k", (4, 2, 1), (64, 1, 1), 1024)
    assert inner.line == 10


def test_steps_have_the_name_of_what_they_were_made_for() -> None:
    metadata = 'thunk_info {\n    profile_annotation: "sort.1"\n    thunk_id: 1\n  }\n'
    names = instruction_names(metadata + metadata.replace("thunk_id: 1", "thunk_id: 18"))
    steps = [step for top in parse_thunks(NESTED, names, "x") for step in top.all()]
    assert [(s.number, s.ordinal) for s in steps if s.instruction == "sort.1"] == [(1, 0), (18, 1)]


def test_all_of_the_corpus_is_read() -> None:
    files = sorted(CORPUS.glob("gpu*/*/*.thunk_sequence.txt"))
    assert len(files) >= 30
    for file in files:
        text = file.read_text()
        steps = [step for top in parse_thunks(text, {}, str(file)) for step in top.all()]
        assert len(steps) == text.count(": k")


@pytest.mark.parametrize("text", ["0: what\n", "kCopy\n"])
def test_a_line_that_is_no_step(text: str) -> None:
    with pytest.raises(DumpError, match="x:1: this is no step"):
        parse_thunks(text, {}, "x")
