"""Messages that are in no catalogue: what their form says, where they are said, and whose line it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.budget import processor_budget

from hlotool.checks.explain.entries import FIELDS, Entry, find_entry, forms
from hlotool.checks.explain.messages import explain_text, only_reports
from hlotool.checks.explain.raised import RaisedRecord, raised, user_line
from hlotool.checks.explain.recognition import form_of
from hlotool.checks.explain.shapes import difference

#: A library with texts as JAX has them: folded strings, holes of three kinds, guards.
LIBRARY = '''"""A library."""

def check(spec, shape, *, name="x"):
    """Spec and shape have to fit, of the name of it."""
    if not spec:
        return
    if len(spec) > len(shape):
        raise ValueError(
            f"the layout {spec} of argument {name} has more axes than "
            f"the shape {shape} of it")
    try:
        index = shape.index(0)
    except ValueError as error:
        raise TypeError("no axis of %s is completely empty, %d of them" % (name, len(shape))) from error
    assert index < 3, "the empty axis has to be one of the first three"
    raise KeyError("an empty axis of the shape {} was found".format(shape))
'''


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ("UserWarning: the cache is slow", "form-warning"),
        ("AttributeError: 'Box' object has no attribute 'lid'", "form-attribute"),
        ("cannot import name 'lid' from 'box'", "form-module"),
        ("TypeError: 'Box' object is not iterable", "form-type"),
        ("    assert all(known)\nAssertionError", "form-assertion"),
        ("the queue ran out of slots", "form-reserved"),
        ("ValueError: the width 7 has to be divisible by 4", "form-divisible"),
        ("the axis must be static", "form-static"),
        ("`merge` called while a graph is defined", "form-nested"),
        ("RuntimeError: INVALID_ARGUMENT: Unsupported attribute type: array", "form-unsupported"),
        ("NotImplementedError: lids of boxes are not supported", "form-unsupported"),
        ("box.h:3 T::ClassOf(box)", "form-invalid-program"),
        ("the lid of box 3 timed out", "form-timeout"),
        ("Connection refused by the box", "form-connection"),
        ("/dev/box: Permission denied", "form-permission"),
        ("ValueError: box and lid have incompatible widths", "form-mismatch"),
        ("ValueError: Expected a lid, got a box", "form-expected"),
        ("INTERNAL: box 3 does not exist", "form-range"),
        ("the box has already been closed; it was shut down", "form-order"),
        ("failed to parse the box", "form-parse"),
        ("ValueError: a box", "form-invalid"),
        ("could not lift the lid", "form-failed"),
        ("TypeError: ((), Box)", "form-python-type"),
        ("BoxError: 3", "form-exception"),
    ],
)
def test_a_message_is_explained_by_its_form(message: str, form: str) -> None:
    [match] = explain_text(message)
    assert (match.id, match.line) == (form, 1 + message.count("\n") * ("assert" not in message))
    assert match.general or form == "form-warning"


def test_what_is_known_is_told_in_its_place() -> None:
    [match] = explain_text("ValueError: cannot reshape array of shape (8,) (size 8) into shape (3,) (size 3)")
    assert (match.id, match.general) == ("jax-shapes", False)


def test_a_form_says_more_than_the_class_of_a_status() -> None:
    assert [match.id for match in explain_text("INTERNAL: boxes are not supported")] == ["form-unsupported"]
    assert [match.id for match in explain_text("INTERNAL: odd")] == ["E0012"]
    assert [match.id for match in explain_text("UNAVAILABLE: boxes are not supported")] == ["E0013"]


def test_the_names_of_a_message_stand_in_the_title() -> None:
    [match] = explain_text("AttributeError: 'Box' object has no attribute 'lid'")
    assert match.title == "an object of type `Box` has no `lid`"


def test_a_long_log_is_searched_where_it_sounds_like_an_error() -> None:
    steps = [f"step {number}: no such luck, file not found in the cache" for number in range(20)]
    assert form_of("\n".join(steps)) is None
    found = form_of("\n".join([*steps, "BoxError: the lid is not supported", *steps]))
    assert found is not None
    assert (found.entry.id, found.line) == ("form-unsupported", 21)


def test_the_program_that_a_traceback_shows_is_no_message() -> None:
    text = "    --> 240     box = box.put(1)  # a different lid\nBoxError: BoxTracer has no lid"
    assert [match.id for match in explain_text(text)] == ["form-exception"]


def test_a_warning_is_none_of_the_errors() -> None:
    log = "UserWarning: the lid is not found\nValueError: box and lid do not match\n"
    assert [match.id for match in explain_text(log)] == ["form-mismatch"]


def test_lines_that_report_keep_their_explanation() -> None:
    line = "2026-01-02 03:04:05.6: W xla/box.cc:3] the lid is not found"
    assert (explain_text(line), [match.id for match in only_reports(line)]) == ([], ["log-report"])


def test_words_without_any_form_have_no_explanation() -> None:
    assert explain_text("step 3 of 10, loss 0.25\nall is well") == []


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.id)
def test_forms_are_consistent(form: Entry) -> None:
    assert form.is_form
    assert find_entry(form.id) is form
    assert form.cause.endswith(".")
    assert form.remedy
    names = {name.rstrip("0123456789") for message in form.messages for name in _fields(message)}
    assert names <= set(FIELDS)
    assert set(_fields(form.title)) <= set.intersection(*(set(_fields(m)) for m in form.messages))


def _fields(text: str) -> list[str]:
    return [part.split("}")[0] for part in text.split("{")[1:]]


def test_forms_are_fast() -> None:
    with processor_budget(5):
        form_of("RuntimeError: " + "x " * 50_000)
        form_of("\n".join(["failed: " + "word " * 40] * 2000))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package that is installed, and named by messages."""
    (tmp_path / "boxlib").mkdir()
    (tmp_path / "boxlib" / "__init__.py").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "boxlib" / "broken.py").write_text("the layout of it has more axes than (", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("hlotool.checks.explain.raised.PACKAGES", ("boxlib",))
    return "boxlib"


@pytest.mark.parametrize(
    ("message", "line", "condition"),
    [
        (
            "ValueError: the layout (1, 2) of argument w has more axes than the shape (3,) of it",
            9,
            "len(spec) > len(shape)",
        ),
        ("TypeError: no axis of w is completely empty, 3 of them", 14, "ValueError was raised"),
        ("AssertionError: the empty axis has to be one of the first three", 15, "not (index < 3)"),
        ("KeyError: an empty axis of the shape (2, 0) was found", 16, "index < 3"),
    ],
)
def test_the_place_that_says_a_message_is_found(
    library: str, message: str, line: int, condition: str
) -> None:
    assert raised(message, library) == [
        RaisedRecord(
            package=library, path="boxlib/__init__.py", line=line, function="check", condition=condition
        )
    ]
    assert library not in sys.modules


@pytest.mark.parametrize(
    "message",
    [
        "ValueError: the layout of it",
        "ValueError: of it the layout (1, 2) of argument w has more axes than the shape (3,) of it",
        "ValueError: the layout (1, 2) of argument w has fewer axes than the shape (3,) of it",
        "Spec and shape have to fit, of another name of it",
        "",
    ],
)
def test_a_place_is_not_guessed(library: str, message: str) -> None:
    assert raised(message, library) == []


TRACEBACK = """Traceback (most recent call last):
  File "/home/me/train.py", line 30, in <module>
    main()
  File "/home/me/train.py", line 12, in main
    boxlib.check((1, 2), (3,))
  File "/home/me/.venv/lib/python3.11/site-packages/boxlib/__init__.py", line 9, in check
    raise ValueError(
ValueError: the layout (1, 2) of argument x has more axes than the shape (3,) of it
"""


def test_the_users_line_of_a_traceback_is_told(library: str) -> None:
    [match] = explain_text(f"{library}\n{TRACEBACK}", installed=True)
    assert match.called == "/home/me/train.py:12 in main"
    assert [place.line for place in match.raised] == [9]
    [match] = explain_text(TRACEBACK)
    assert match.raised == []


@pytest.mark.parametrize(
    ("frames", "line"),
    [
        (
            "Cell In[3], line 7\n      6 x\n----> 7 y\nFile /lib/python3.11/site-packages/a.py:3, in f(x)",
            "Cell In[3]:7",
        ),
        ("File ~/work/step.py:12, in step(x)\n", "~/work/step.py:12 in step"),
        ('  File "/usr/lib/python3.11/runpy.py", line 3, in run\n', ""),
        ('  File "a.py", line 1, in f\nTraceback (most recent call last):\n', ""),
    ],
)
def test_frames_are_read_as_python_and_ipython_print_them(frames: str, line: str) -> None:
    assert user_line(frames, 100) == line


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "want f32[4,2]{1,0}, got f64[4,2]{1,0}",
            "the element types are f32 and f64, the dimensions are the same",
        ),
        ("f32[4,2]{1,0} vs f32[4,2]{0,1}", "only the layouts differ: {1,0} and {0,1}"),
        ("inferred tensor<4x2xf32>, not tensor<4xf32>", "the numbers of dimensions are 2 and 1"),
        ("mul got incompatible shapes: (3, 4), (3, 5).", "dimension 1 is 4 and 5, all else is the same"),
        ("In[0]: [20,64], In[1]: [2,32]", ""),
        (
            "batch dimensions of one size, got [2 4] and [2 1].",
            "dimension 1 is 4 and 1, all else is the same",
        ),
        ("add(FakeTensor(device='xla:0', size=(17,)), FakeTensor(size=(1,)))", ""),
        ("%r = f32[8,2]{1,0} all-gather(f32[4,2]{1,0} %p)", ""),
        ("f32[2], f32[3] and f32[4]", ""),
        ("f32[2] and f32[2]", ""),
    ],
)
def test_two_shapes_are_compared_where_one_thing_differs(message: str, said: str) -> None:
    assert difference(message) == said
