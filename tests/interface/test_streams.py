"""Standard streams that are closed or narrow, and little address space: what services and schedulers do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.budget import HUNG

from hlotool.errors import ExitCode

REPOSITORY = Path(__file__).resolve().parents[2]
DUMP = "corpus/jax/int8_dot"


def shell(line: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A line of sh, in which `hlotool` is this one."""
    function = f'hlotool() {{ "{sys.executable}" -m hlotool "$@"; }}\n'
    return subprocess.run(
        ["sh", "-c", function + line],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
        check=False,
        **settings,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"hlotool inspect {DUMP} >&-", ExitCode.AGREE),
        (f"hlotool inspect {DUMP} --json >&-", ExitCode.AGREE),
        (f"hlotool inspect {DUMP} <&- >&- 2>&-", ExitCode.AGREE),
        ("hlotool explain - <&-", ExitCode.NOTHING_COMPARED),
        ("hlotool inspect - <&-", ExitCode.USAGE),
        ("hlotool --help >&-", ExitCode.AGREE),
    ],
)
def test_streams_that_are_closed(line: str, code: ExitCode) -> None:
    ended = shell(line)
    assert ended.returncode == code
    assert "internal error" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_is_printed_goes_into_no_file_that_is_read(tmp_path: Path) -> None:
    """The first file that is opened would get the number of the closed stream."""
    path = tmp_path / "m.hlo"
    path.write_text("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }\n")
    before = path.read_bytes()
    assert shell(f"hlotool inspect '{path}' >&- 2>&-").returncode == ExitCode.AGREE
    assert path.read_bytes() == before


def test_marks_stay_apart_where_an_encoding_lacks_them() -> None:
    ended = shell(
        "PYTHONIOENCODING=ascii hlotool run corpus/jax/int4_product corpus/jax/int8_dot --no-first-divergence"
    )
    assert "+ identical" in ended.stdout
    assert "x wrong" in ended.stdout
    assert "?" not in ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the size of an address space is bounded on Linux")
def test_an_address_space_that_is_too_small_for_numpy() -> None:
    ended = shell(f"ulimit -v 200000; hlotool run {DUMP}")
    assert ended.returncode == ExitCode.BACKEND_FAILED
    assert ended.stderr.startswith("hlotool: error: out of memory: the address space of this process")
    assert len(ended.stderr.splitlines()) == 1
