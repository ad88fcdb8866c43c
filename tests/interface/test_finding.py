"""What a finding is called, and the quoted line of the user's program."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hlotool.interface.report.finding import quoted_source, what_became
from hlotool.judge.records import DeviationRecord, DivergenceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.system.records import SourceRecord

CONSTANT = "%c = f32[] constant(0.1)"
ADD = "%a = f32[8]{0} add(%x, %y)"


def divergence(expected: str, actual: str, **fields: object) -> DivergenceRecord:
    def source(text: str) -> SourceRecord:
        return SourceRecord(instruction="i", opcode=text.split("(")[0].split()[-1])

    return DivergenceRecord(
        finding=str(fields.pop("finding", "wrong")),
        source=source(actual),
        text=actual,
        expected_source=source(expected),
        expected_text=expected,
        **fields,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (CONSTANT, "%d = f32[] constant(0.2)", "constant 0.1 became 0.2"),
        ("%m = f32[8]{0} multiply(%x, %y)", ADD, "multiply became add"),
        (
            "%n = s32[3]{0} negate(%x)",
            "%d = s32[3]{0} constant({1, 2, 3})",
            "negate became the constant {1, 2, 3}",
        ),
        (
            "%m = s4[8]{0} multiply(%x, %y)",
            "%m = s8[8]{0} multiply(%x, %y)",
            "multiply in s4 became multiply in s8",
        ),
        (
            "%c = pred[8]{0} compare(%x, %y), direction=LT",
            "%c = pred[8]{0} compare(%x, %y), direction=LE",
            "compare: direction=LT became LE",
        ),
        (
            "%w = f32[5]{0} reduce-window(%x, %z), window={size=9 pad=0_8}, to_apply=%r.1",
            "%w = f32[5]{0} reduce-window(%x, %z), window={size=9 pad=8_0}, to_apply=%r.7",
            "reduce-window: window={size=9 pad=0_8} became {size=9 pad=8_0}",
        ),
        (
            "%e = f64[2]{0} exponential(%x)",
            '%k = f64[2]{0:T(128)} custom-call(%x), custom_call_target="X64Combine"',
            "exponential became custom-call X64Combine",
        ),
        (ADD, ADD, "add returns wrong values"),
        ("", "", " returns other values"),
    ],
)
def test_what_became_what(expected: str, actual: str, said: str) -> None:
    found = divergence(expected or "?()", actual or "?()")
    assert what_became(found).lstrip("?") == said


def test_a_scalar_computation_is_looked_into() -> None:
    reduce = "%r = f32[] reduce(%x, %z), dimensions={0}, to_apply=%f"
    found = divergence(
        reduce, reduce, inside="%s = f32[] maximum(%a, %b)", inside_expected="%s = f32[] add(%a, %b)"
    )
    assert what_became(found) == "reduce: add became maximum"


def test_what_is_less_than_wrong_says_so() -> None:
    assert what_became(divergence(ADD, ADD, finding="amplifies")) == "add turns rounding into a difference"
    assert what_became(divergence(ADD, ADD, finding="suspected")) == "add is the first value that differs"
    local = DeviationRecord(total=8, mismatched=3)
    assert what_became(divergence(ADD, ADD, local=local)) == "add returns wrong values from correct operands"
    unequal = divergence(ADD, ADD), Verdict.UNEQUAL
    assert what_became(*unequal) == "add computes something mathematically different"


def test_long_values_are_cut() -> None:
    long = "%d = s32[99]{0} constant({" + "1, " * 98 + "1})"
    said = what_became(divergence("%n = s32[99]{0} negate(%x)", long))
    assert said.endswith(" …")
    assert len(said) < 80


SOURCE = SourceRecord(instruction="a", opcode="add", op_name="jit(f)/add", file="model.py", file_line=2)


def quoted(source: SourceRecord) -> list[str]:
    return [line.plain for line in quoted_source(source)]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "model.py"
    file.write_text("def f(größe, y):\n    return größe + y * 2\n", encoding="utf-8")
    return file


def test_the_expression_is_underlined_where_its_columns_are_known(model: Path) -> None:
    """Columns are bytes of UTF-8: two letters of the name are two bytes each."""
    line = model.read_text(encoding="utf-8").splitlines()[1]
    start = len(line[: line.index("y *")].encode())
    source = replace(SOURCE, columns=(start, start + 5), function="f.<locals>.g")
    assert quoted(source) == [
        "--> model.py:2 in f.g",
        "2 | return größe + y * 2",
        "  |                ^^^^^",
    ]


def test_without_columns_the_whole_line_is(model: Path) -> None:
    assert quoted(SOURCE)[-1] == "  | " + "^" * len("return größe + y * 2")
    beyond = replace(SOURCE, columns=(4, 900))
    assert quoted(beyond) == quoted(SOURCE)


@pytest.mark.usefixtures("model")
def test_a_line_that_is_not_here_is_only_named() -> None:
    assert quoted(replace(SOURCE, file_line=77)) == ["--> model.py:77"]
    assert quoted(replace(SOURCE, file="other.py")) == ["--> other.py:2"]
    assert quoted(replace(SOURCE, file="//host/share/m.py")) == ["--> //host/share/m.py:2"]
    assert quoted(replace(SOURCE, file="")) == ["--> jit(f)/add"]
