"""The frame of the command line: help, versions, errors, exit codes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.budget import HUNG, slowness
from support.shell import seconds_of_children

from hlotool._version import __version__
from hlotool.errors import ExitCode, HloSyntaxError, Location
from hlotool.interface.cli import process
from hlotool.interface.cli.main import build_parser, main
from hlotool.interface.cli.parser import join_signed_values
from hlotool.runs.options.parsers import byte_size

REPOSITORY = Path(__file__).resolve().parents[2]


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from hlotool.__main__ import main; import sys; sys.exit(main())", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
        check=False,
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hlotool {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["backends", "--help"]])
def test_help_lists_the_exit_codes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    for code in ExitCode:
        assert f"  {code.value:<4} {process.EXIT_CODES[code]}\n" in shown


def test_help_of_run_gives_examples_that_parse(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file of values that is missing is a usage error already.
    monkeypatch.chdir(tmp_path)
    for name in ("in.npz", "out.npz"):
        (tmp_path / name).touch()
    main(["run", "--help"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    examples = [line.split("  ")[0] for line in lines if line.startswith("hlotool run ")]
    assert len(examples) >= 4
    for example in examples:
        assert build_parser().parse_args(example.split()[1:]).command_name == "run"


def test_every_option_is_explained() -> None:
    parser = build_parser()
    [commands] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for name, command in commands.choices.items():
        for action in command._actions:
            assert action.help, f"{name} {action.dest}"


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert main(["--help"]) == 0
    assert shown == capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run"], "the following arguments are required: PATH"),
        (["run", "x", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["run", "x", "--timeout", "0"], "no positive number of seconds"),
        (["run", "x", "--timeout", "nan"], "is no number"),
        (["run", "x", "--memory-limit", "much"], "write it like 8G"),
        (["run", "x", "--memory-limit", "0"], "write it like 8G"),
        (["run", "x", "--jobs", "0"], "no whole number from 1 to 1024"),
        (["run", "x", "--rtol", "-1"], "no tolerance"),
        (["run", "x", "--rtol", "tight"], "no number"),
        (["run", "x", "--input-range", "1"], "no range"),
        (["run", "x", "--input-range", "1,0"], "no range"),
        (["run", "x", "--only", "("], "no regular expression"),
        (["run", "x", "--quiet", "--verbose"], "not allowed with argument"),
        (["fly"], "invalid choice: 'fly'"),
    ],
)
def test_wrong_usage(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == ExitCode.USAGE
    out, error = capsys.readouterr()
    assert out == ""
    assert complaint in error
    assert "Traceback" not in error


@pytest.mark.parametrize("arguments", [["--input-range", "-1e3,2"], ["--input-range=-1e3,2"]])
def test_a_range_may_begin_with_a_minus_sign(arguments: list[str]) -> None:
    joined = join_signed_values(["run", "x", *arguments])
    assert build_parser().parse_args(joined).input_range == (-1000.0, 2.0)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8G", 8 << 30),
        ("1.5GiB", 3 << 29),
        ("512m", 512 << 20),
        ("2000 KB", 2000 << 10),
        ("2T", 2 << 40),
        ("7777777", 7777777),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


def failing(error: BaseException) -> argparse.Namespace:
    def command(_: argparse.Namespace) -> int:
        raise error

    return argparse.Namespace(command=command, debug=False)


def execute(namespace: argparse.Namespace) -> int:
    from hlotool.interface.cli import main as module

    return module._execute(namespace)


def test_a_syntax_error_is_one_line_with_a_caret(capsys: pytest.CaptureFixture[str]) -> None:
    error = HloSyntaxError(
        "expected a shape, found 'f33'", Location("m.hlo", 3, 7), "  x = f33[2] parameter(0)"
    )
    assert execute(failing(error)) == ExitCode.USAGE
    assert capsys.readouterr().err == (
        "hlotool: error: m.hlo:3:7: expected a shape, found 'f33'\n  x = f33[2] parameter(0)\n      ^\n"
    )


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = failing(HloSyntaxError("bad", Location("m.hlo", 1)))
    namespace.debug = True
    assert execute(namespace) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "Traceback" in error
    assert error.endswith("hlotool: error: m.hlo:1: bad\n")


def test_a_bug_is_reported_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(failing(KeyError("x"))) == ExitCode.BACKEND_FAILED
    error = capsys.readouterr().err
    assert error.startswith("hlotool: internal error: KeyError: 'x'\n")
    assert "--debug" in error
    namespace = failing(KeyError("x"))
    namespace.debug = True
    with pytest.raises(KeyError):
        execute(namespace)


def test_an_interruption_outside_a_run() -> None:
    assert execute(failing(KeyboardInterrupt())) == ExitCode.INTERRUPTED


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    probe = (
        "import sys, time; start = time.process_time()\n"
        "from hlotool.__main__ import main; code = main(['run', '--help'])\n"
        "heavy = {'numpy', 'lark', 'rich', 'msgspec', 'scipy', 'ml_dtypes'} & set(sys.modules)\n"
        "print(time.process_time() - start, sorted(heavy), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        timeout=HUNG,
        check=True,
    )
    seconds, _, heavy = ended.stderr.partition(" ")
    assert heavy.strip() == "[]"
    assert float(seconds) < 0.5 * slowness()


def test_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("numpy ") and "available" in line for line in lines)


def test_the_options_of_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "--verbose"]) == 0
    assert "numpy:wide " in capsys.readouterr().out


def test_backends_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["schema"] == "hlotool.backends/1"
    [numpy] = [b for b in record["backends"] if b["name"] == "numpy"]
    assert numpy["available"]
    assert numpy["version"].startswith("numpy ")
    assert "wide" in numpy["options"]


def test_a_broken_backend_stays_listed_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from hlotool.backends import registry
    from hlotool.interface.api.kept import list_backends

    monkeypatch.setattr(registry, "listed_backends", lambda: ["absent", "numpy"])
    absent, numpy = list_backends()
    assert not absent.available
    assert "no backend 'absent'" in absent.reason
    assert numpy.available


def test_the_console_script_and_the_module_are_the_same() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "hlotool", "--version"],
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert ended.stdout == child("--version").stdout == f"hlotool {__version__}\n"


def test_an_encoding_that_lacks_our_signs_is_no_error(tmp_path: Path) -> None:
    ascii_only = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "HLOTOOL_CACHE": str(tmp_path),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "hlotool", "run", "corpus/jax/int4_product"],
        cwd=REPOSITORY,
        env=os.environ | ascii_only,
        capture_output=True,
        timeout=HUNG,
    )
    assert ended.returncode == ExitCode.MISMATCH
    assert b"x wrong" in ended.stdout


def test_a_missing_path_is_reported_soon() -> None:
    before = seconds_of_children()
    ended = child("run", "/no/such/path")
    assert seconds_of_children() - before < 2
    assert ended.returncode == ExitCode.USAGE
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("hlotool: error: /no/such/path")


def test_a_python_that_is_too_old_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from hlotool._python import refuse_before

    refuse_before((3, 11))
    said = r"hlotool needs Python 3\.11 or newer; \S+ is Python 3\.\d+\.\d+"
    monkeypatch.setattr("sys.argv", ["-m", "run"])
    with pytest.raises(SystemExit, match=said):
        refuse_before((99,))
    monkeypatch.setattr("sys.argv", ["train.py"])
    with pytest.raises(ImportError, match=said):
        refuse_before((99,))
