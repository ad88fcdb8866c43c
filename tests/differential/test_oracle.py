"""Where XLA dies: a fault of ours fails the test, a program that XLA alone dies of does not."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differential import running
from differential.running import compare_all
from differential.store import stored_answer
from support import oracle as judge
from support.disasters import GOOD, REVERSES
from support.oracle import OracleUnable, need_xla, reason_for_no_xla
from support.xla import Oracle, XlaError

from hlotool.backends.xla.protocol import Compiled, CompileRequest
from hlotool.lab.conformance.generators.cases import Case, case

ONES = np.ones(8, np.float32)

#: Collectives among two replicas.
EXCHANGE = """HloModule m, replica_count=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] all-reduce(x), to_apply=sum }
"""


@pytest.fixture
def dying() -> Iterator[Oracle]:
    """An oracle whose process dies of SIGILL whatever it is to compile."""
    if not hasattr(signal, "SIGILL"):
        pytest.skip("no signals here")
    need_xla()
    oracle = Oracle()

    def die(program: CompileRequest) -> Compiled:
        return oracle._process.call("signal:raise_signal", int(signal.SIGILL), Compiled)

    oracle._process.compile = die  # type: ignore[method-assign]
    yield oracle
    oracle.close()


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> None:
    """What XLA alone does from now on."""
    child = folder / "child.py"
    child.write_text(source, encoding="utf-8")
    monkeypatch.setattr(judge, "CHILD", child)


@pytest.mark.xla
def test_what_xla_alone_dies_of_skips_the_test(
    dying: Oracle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, tmp_path, "import signal\nsignal.raise_signal(signal.SIGILL)\n")
    with pytest.raises(pytest.skip.Exception, match="on this machine XLA alone dies of SIGILL"):
        dying.run(GOOD, [ONES])


@pytest.mark.xla
def test_what_only_our_process_dies_of_is_our_fault(dying: Oracle) -> None:
    with pytest.raises(XlaError, match="the process died of SIGILL"):
        dying.run(GOOD, [ONES])


@pytest.mark.xla
def test_another_death_is_our_fault(dying: Oracle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, "import os\nos.abort()\n")
    with pytest.raises(XlaError, match="the process died of SIGILL"):
        dying.run(GOOD, [ONES])


@pytest.mark.xla
def test_a_hang_is_asked_about_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need_xla()
    oracle = Oracle(timeout=0.5)
    monkeypatch.setattr(
        oracle._process, "compile", lambda _: oracle._process.call("time:sleep", 30, Compiled)
    )
    monkeypatch.setattr(judge, "_START", 0.0)
    stand_in(monkeypatch, tmp_path, "import time\ntime.sleep(30)\n")
    with pytest.raises(OracleUnable, match="XLA alone never ends"):
        oracle.run(GOOD, [ONES])
    monkeypatch.setattr(judge, "_START", 60.0)
    stand_in(monkeypatch, tmp_path, "")
    with pytest.raises(XlaError, match="no answer within"):
        oracle.run(GOOD, [ONES])
    oracle.close()


@pytest.mark.xla
def test_real_xla_dies_of_a_real_program() -> None:
    need_xla()
    oracle = Oracle()
    with pytest.raises(OracleUnable, match="XLA alone dies of SIGABRT"):
        oracle.run(REVERSES, [np.arange(3, dtype=np.int32), np.int32(1)])
    np.testing.assert_array_equal(oracle.run(GOOD, [ONES])[0], 2 * ONES)
    oracle.close()


@pytest.mark.xla
@pytest.mark.parametrize(
    ("program", "rows"),
    [
        (CompileRequest(GOOD, flags=(("xla_backend_optimization_level", 0),)), [[ONES]]),
        (CompileRequest(GOOD, flags=(("xla_cpu_enable_fast_math", True),)), [[ONES]]),
        (CompileRequest(EXCHANGE, replicas=2), [[ONES], [ONES]]),
    ],
    ids=["flag", "named flag", "devices"],
)
def test_xla_alone_runs_what_the_oracle_runs(program: CompileRequest, rows: list[list[Any]]) -> None:
    need_xla()
    done = judge._run_alone(program, rows, Oracle(len(rows))._process.key)
    assert done.returncode == 0, done.stderr.decode()


def test_a_jaxlib_that_does_not_start_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(judge, "find_spec", lambda name: True)
    stand_in(monkeypatch, tmp_path, "raise SystemExit('built for AVX')\n")
    assert "built for AVX" in (reason_for_no_xla.__wrapped__() or "")
    monkeypatch.setattr(judge, "find_spec", lambda name: None)
    assert reason_for_no_xla.__wrapped__() == "jaxlib is not installed"


class Unable:
    """An oracle that can run no program with a certain opcode."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode

    def run(self, text: str, arguments: list[Any], **options: Any) -> list[Any]:
        if f" {self.opcode}(" in text:
            raise OracleUnable("dies")
        raise XlaError("refused")


def cases_of(opcode: str) -> list[Case]:
    return [found for number in range(200) if (found := case(number)).opcode == opcode]


def test_stored_answers_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = cases_of("add")
    assert cases
    monkeypatch.setattr(running, "oracle", lambda: Unable("add"))
    tally = compare_all(cases, stored_answer)
    assert tally.cases == {"add": len(cases)}
    assert not tally.mismatches + tally.unable + tally.refused
    assert compare_all(cases, lambda _: None).unable == cases


def test_a_stored_answer_is_for_one_program_on_one_input() -> None:
    [first, *_] = cases_of("add")
    assert stored_answer(first) is not None
    other = Case(first.number, first.opcode, first.module, [np.zeros_like(a) for a in first.arguments])
    assert stored_answer(other) is None
    assert stored_answer(Case(10**9, first.opcode, first.module, first.arguments)) is None
