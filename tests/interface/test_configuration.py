"""`hlotool.toml` and `[tool.hlotool]`: where they are found, what they may say, who wins."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.configuration import settings_of
from hlotool.interface.cli.main import build_parser, main
from hlotool.system.records import ConfigurationRecord

PROGRAM = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y)
}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program in which the command is called; nothing above it is looked at."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    for name in ("HLOTOOL_CONFIG", "HLOTOOL_LOG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "work" / "deep"
    folder.mkdir(parents=True)
    (folder / "f.hlo").write_text(PROGRAM)
    monkeypatch.chdir(folder)
    return folder


def record(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON of a command."""
    main([*arguments, "--json"])
    return dict(json.loads(capsys.readouterr().out))


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments or ("inspect", "f.hlo"))) == ExitCode.USAGE
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("hlotool: error: ")
    return error.removeprefix("hlotool: error: ").rstrip("\n")


def chosen(*arguments: str) -> argparse.Namespace:
    """What the command would be called with."""
    from hlotool.interface.cli.configured import with_configuration

    return with_configuration(build_parser().parse_args(arguments), arguments, build_parser)


def used(*arguments: str) -> ConfigurationRecord | None:
    """What the command would take from a file."""
    found: ConfigurationRecord | None = chosen(*arguments).configuration
    return found


# Where it is.


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_it_is_found_in_folders_upwards(levels: int, place: Path) -> None:
    folder = [place, *place.parents][levels]
    (folder / "hlotool.toml").write_text("jobs = 1")
    shown = "hlotool.toml" if levels == 0 else str(folder / "hlotool.toml")
    assert used("inspect", "f.hlo") == ConfigurationRecord(file=shown, named=False, options=["jobs"])


def test_nobody_looks_outside_of_the_repository(place: Path) -> None:
    (place.parents[1] / "hlotool.toml").write_text("jobs = 1")
    (place.parent / ".git").write_text("gitdir: ../x")  # as of a worktree
    assert used("inspect", "f.hlo") is None


def test_the_nearest_one_counts_and_the_own_file_before_the_shared_one(place: Path) -> None:
    (place.parent / "hlotool.toml").write_text("jobs = 1")
    (place / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert chosen("inspect", "f.hlo").jobs == 1
    (place / "pyproject.toml").write_text(
        "[tool.hlotool]\njobs = 2\n[tool.hlotool.inspect]\nkernels = true\n"
    )
    options = chosen("inspect", "f.hlo")
    assert (options.jobs, options.kernels) == (2, True)
    (place / "hlotool.toml").write_text("jobs = 3")
    assert chosen("inspect", "f.hlo").jobs == 3


def test_a_file_of_another_tool_is_not_read(place: Path) -> None:
    """What is wrong with somebody else's part of a file is not ours to say."""
    (place / "pyproject.toml").write_text("[tool.ruff\n")
    assert chosen("inspect", "f.hlo").configuration is None
    (place / "pyproject.toml").write_text('[project]\ndependencies = ["hlotool"]\n')
    assert chosen("inspect", "f.hlo").configuration is None


def test_a_file_can_be_named_or_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "hlotool.toml").write_text("jobs = 1")
    (place / "other.toml").write_text("jobs = 2")
    assert chosen("inspect", "f.hlo", "--config", "other.toml").jobs == 2
    monkeypatch.setenv("HLOTOOL_CONFIG", "other.toml")
    assert chosen("inspect", "f.hlo").configuration.named
    assert chosen("inspect", "f.hlo").jobs == 2
    assert chosen("inspect", "f.hlo", "--config", "hlotool.toml").jobs == 1
    for option in ("--no-config", "--isolated"):
        assert chosen("inspect", "f.hlo", option).jobs == 0


@pytest.mark.parametrize("text", ["[tool.x]\n", "[tool]\nhlotool = 3\n"])
def test_a_named_file_must_have_the_table(text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "pyproject.toml").write_text(text)
    said = complaint(capsys, "inspect", "f.hlo", "--config", "pyproject.toml")
    assert said == "pyproject.toml: there is no table [tool.hlotool]"


def test_the_api_and_xlas_tool_know_nothing_of_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import hlotool
    from hlotool.lab.xla_tools.run_hlo_module import main as tool

    (place / "hlotool.toml").write_text("broken")
    assert hlotool.load("f.hlo").name == "m"
    assert tool(["--platform=Interpreter", "--reference_platform=", "f.hlo"]) == 0
    capsys.readouterr()


# Who wins.


def test_the_command_line_wins(place: Path) -> None:
    (place / "hlotool.toml").write_text(
        'jobs = 2\nquiet = true\n[run]\nrtol = "1e-3"\ncoverage = true\nno-resume = true\nexact = true\n'
        "[opt]\nno-verify = true\n"
    )
    options = chosen("run", "f.hlo")
    assert (options.jobs, options.quiet, options.rtol, options.coverage) == (2, True, 1e-3, True)
    assert (options.resume, options.exact) == (False, True)
    line = ["--jobs", "3", "--verbose", "--rtol", "0.5", "--no-coverage", "--resume", "--no-exact"]
    options = chosen("run", "f.hlo", *line)
    assert (options.jobs, options.quiet, options.verbose, options.rtol) == (3, False, True, 0.5)
    assert (options.coverage, options.resume, options.exact) == (False, True, False)
    assert options.configuration.options == []
    assert set(options.configuration.replaced) == {"jobs", "quiet", "rtol", "coverage", "no-resume", "exact"}
    assert not chosen("opt", "f.hlo").verify
    assert chosen("opt", "f.hlo", "--verify").verify


def test_saying_the_default_on_the_command_line_is_saying_something(place: Path) -> None:
    (place / "hlotool.toml").write_text("seed = 7")
    assert chosen("run", "f.hlo").seed == 7
    assert chosen("run", "f.hlo", "--seed", "0").seed == 0


def test_a_list_on_the_command_line_replaces_that_of_the_file(place: Path) -> None:
    (place / "own.toml").write_text('[opt]\npass-fuel = ["cse=1", "2"]\n[run]\nrtol = ["1", "out[1]:2"]\n')
    named = "--config", "own.toml"
    assert chosen("opt", "f.hlo", *named).pass_fuel == ["cse=1", "2"]
    assert chosen("opt", "f.hlo", *named, "--pass-fuel", "5").pass_fuel == ["5"]
    options = chosen("run", "f.hlo", *named)
    assert (options.rtol, options.output_rtol) == (1.0, (("out[1]", 2.0),))


def test_choices_that_exclude_each_other(place: Path) -> None:
    """What the line chooses is not refused, or emptied, for the sake of the file."""
    (place / "own.toml").write_text('[run]\nbackend = "stablehlo"\n[check]\nskip = ["recompilation"]\n')
    named = "--config", "own.toml"
    assert chosen("run", "f.hlo", *named).backend == "stablehlo"
    assert chosen("run", "f.hlo", *named, "--compare", "numpy,xla").backend == "numpy"
    assert chosen("check", "f.hlo", *named).skip == ("recompilation",)
    assert chosen("check", "f.hlo", *named, "--only", "recompilation").skip == ()


def test_the_environment_stands_between(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "hlotool.toml").write_text('log = "info"')
    assert chosen("run", "f.hlo").log == "info"
    monkeypatch.setenv("HLOTOOL_LOG", "debug")
    options = chosen("run", "f.hlo")
    assert (options.log, options.configuration.replaced) == ("debug", ["log"])
    assert chosen("run", "f.hlo", "--log", "warning").log == "warning"
    assert chosen("run", "f.hlo", "--no-config").log == "debug"


def test_a_table_before_what_is_common(place: Path) -> None:
    (place / "hlotool.toml").write_text("timeout = 5\nverbose = true\n[run]\ntimeout = 6\nverbose = false\n")
    assert (chosen("run", "f.hlo").timeout, chosen("run", "f.hlo").verbose) == (6.0, False)
    assert (chosen("bisect", "f.hlo").timeout, chosen("bisect", "f.hlo").verbose) == (5.0, True)
    # `diff` has no such option, and that is no mistake.
    assert not hasattr(chosen("diff", "f.hlo", "f.hlo"), "timeout")


@pytest.mark.parametrize(
    ("key", "value", "typed"),
    [
        ("fail-on", '["nan", "inf"]', "nan,inf"),
        ("input-range", "[-1, 2.5]", "-1,2.5"),
        ("budget", "30", "30"),
        ("budget", '"5x"', "5x"),
        ("elided", '"generate"', "generate"),
        ("only", "'^jit_\\d'", r"^jit_\d"),
        ("stages", '["before*", "*after*"]', "before*,*after*"),
    ],
)
def test_a_value_is_what_the_command_line_makes_of_it(key: str, value: str, typed: str, place: Path) -> None:
    (place / "hlotool.toml").write_text(f"[run]\n{key} = {value}\n")
    dest = key.replace("-", "_")
    expected = build_parser().parse_args(["run", "f.hlo", f"--{key}={typed}"])
    assert getattr(chosen("run", "f.hlo"), dest) == getattr(expected, dest)


def test_paths_are_relative_to_the_file(place: Path) -> None:
    (place.parent / "conf").mkdir()
    (place.parent / "conf" / "in.npz").touch()
    (place.parent / "conf" / "a.toml").write_text('[run]\ninputs = "in.npz"\nsave-outputs = "/tmp/out"\n')
    options = chosen("run", "f.hlo", "--config", "../conf/a.toml")
    assert Path(options.inputs).samefile(place.parent / "conf" / "in.npz")
    assert options.save_outputs == "/tmp/out"


# What is refused.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\njbos = 1", "2: there is no key 'jbos'; did you mean 'jobs'?"),
        ("memory_limit = 1", "1: there is no key 'memory_limit'; did you mean 'memory-limit'?"),
        ("[run]\n\nbugdet = 1", "3: [run] has no key 'bugdet'; did you mean 'budget'?"),
        ("[insepct]\njobs = 1", "1: there is no command 'insepct'; did you mean 'inspect'?"),
        ("[jobs]\nx = 1", "1: 'jobs' takes no table"),
        ("run = 1", "1: 'run' is a command: its options stand in a table [run]"),
        ("trials = 3", "1: 'trials' is for one command: put it into [prove]"),
        (
            "fail-on = 'nan'",
            "1: 'fail-on' means different things to each command: put it into [run] or [",
        ),
        ("jobs = 0", "1: jobs: '0' is no whole number from 1 to 1024"),
        ("jobs = '2 '", "1: jobs: '2 ' is no whole number from 1 to 1024"),
        ("jobs = true", "1: jobs: true is no value of it"),
        ("jobs = [1]", "1: jobs: a list is no value of it"),
        ("jobs = {a = 1}", "1: 'jobs' takes no table"),
        ("jobs = 2020-01-01", "1: jobs: a date or time is no value of it"),
        ("quiet = 1", "1: quiet: 1 is neither true nor false"),
        (
            "log = 'dbug'",
            "1: log: invalid choice: 'dbug' (choose from debug, info, warning); did you mean 'debug'?",
        ),
        ("[run]\ntimeout = inf", "2: timeout: 'inf' is no number"),
        (
            "[run]\nonly = '('",
            "2: only: '(' is no regular expression: missing ), unterminated subpattern at position 0",
        ),
        # Options that say what a command does this once.
        ("[reduce]\noutput = '/etc/passwd'", "2: [reduce] has no key 'output'"),
        ("[opt]\nlist-passes = true", "2: [opt] has no key 'list-passes'"),
        ("[repro]\ntrust = true", "2: [repro] has no key 'trust'"),
        ("[run]\nconfig = 'x'", "2: [run] has no key 'config'"),
        (
            "[check]\nskip = ['recompliation']",
            "2: skip: no rule 'recompliation'; did you mean 'recompilation'?",
        ),
        ("jobs = 1\njobs = 2", "2: Cannot overwrite a value"),
        ("[run", "1: Expected ']' at the end of a table declaration"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    text: str, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "hlotool.toml").write_text(text)
    assert complaint(capsys).startswith(f"hlotool.toml:{said}")


def test_tables_of_other_commands_are_checked_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "pyproject.toml").write_text("[tool.hlotool]\n[tool.hlotool.bisect]\nrepeats = 0\n")
    assert complaint(capsys).startswith("pyproject.toml:3: repeats: '0' is no whole number")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "[[check.ignore]]\nrule = 'stateful-rng'",
            "1: [check] ignore: Object missing required field `reason`",
        ),
        (
            "[[check.ignore]]\nrule = 'stateful-rng'\nreason = ''\n[[check.ignore]]\nreason = ''\nrule = 'x'",
            "4: [check] ignore: no rule 'x'",
        ),
        (
            "[[check.ignore]]\nrule = 'stateful-rng'\nreason = ''\nmodul = ''",
            "1: [check] ignore: Object contains unknown field `modul`",
        ),
        (
            "[[check.ignore]]\nrule = 'stateful-rng'\nreason = ''\nmodule = '('",
            "1: [check] ignore: module is no regular expression",
        ),
        ("[check]\nignore = 5", "2: [check] ignore: Expected `array`, got `int`"),
    ],
)
def test_accepted_findings_are_checked(
    rows: str, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "hlotool.toml").write_text(rows)
    assert complaint(capsys, "check", "f.hlo").startswith(f"hlotool.toml:{said}")


def test_a_variable_that_is_wrong(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOTOOL_LOG", "inof")
    assert complaint(capsys) == "HLOTOOL_LOG=inof: it is one of debug, info, warning; did you mean 'info'?"
    monkeypatch.setenv("HLOTOOL_CONFIG", "none.toml")
    assert complaint(capsys) == "none.toml: No such file or directory"


# Whom it is trusted by.

#: What a file that was found may set: nothing of it runs code, writes or reads a file, or lifts a limit.
HARMLESS = """
    arch atol bisect budget by call cases compile-time confidence context coverage debug devices each elided
    emit every every-module every-stage exact explain fail-on fail-regex first-divergence flags format fp8
    from further-sets github gpu height input-range integers jobs json keep-last keep-when kernels
    last-failed log max-failures memory minutes no-cache no-committed no-repro no-resume no-run no-verify
    only opaque partitions passes precision programs quiet readme-flags repeat repeats replicas rtol sample
    scale seed
    shard show show-scale skip snapshots stages thorough timeout trials types values verbose wrt
"""


def test_what_a_file_that_was_found_may_set() -> None:
    """Whoever adds an option decides here whether a stranger's repository may set it."""
    found = {
        key
        for parser in build_parser().commands.values()
        for key, setting in settings_of(parser).items()
        if not setting.is_grave
    }
    assert found == set(HARMLESS.split())


@pytest.mark.parametrize(
    "text",
    [
        "[run]\ninputs = 'make.py:make'",
        "[run]\ncompare-with = 'make.py:make'",
        "[run]\nreference = 'xla:python=./evil'",
        "[run]\ncompare = ['numpy', 'xla:python=./evil']",
        "[run]\nsave-outputs = '/home'",
        "[bisect]\nrepro = '..'",
        "[bisect]\ntry-on = 'xla:python=./evil'",
        "[reduce]\ncheck = './evil'",
        "[opt]\ndump-to = '/'",
        "memory-limit = 'none'",
    ],
)
def test_what_runs_code_or_writes_is_for_named_files(
    text: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "make.py").touch()
    (place / "hlotool.toml").write_text(text)
    said = complaint(capsys)
    assert "only a file that is named may set it (--config hlotool.toml, or $HLOTOOL_CONFIG)" in said
    assert used("inspect", "f.hlo", "--config", "hlotool.toml") is not None


def test_a_file_that_cannot_be_a_configuration(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / "hlotool.toml"
    path.write_bytes(b"#" * (2 << 20))
    assert complaint(capsys) == "hlotool.toml: larger than a configuration may be (1 MiB)"
    path.write_bytes(b"a = '\xff'")
    assert complaint(capsys).startswith("hlotool.toml: 'utf-8' codec can't decode")
    path.write_text("a = " + "[" * 5000)
    assert complaint(capsys).startswith("hlotool.toml")


# Who is told.


def test_who_asks_for_everything_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "hlotool.toml").write_text("seed = 1\nquiet = false\n")
    command = ["extract", "f.hlo", "s", "-o", "s.hlo"]
    assert main([*command, "--verbose"]) == ExitCode.AGREE
    assert "hlotool: configuration: hlotool.toml: seed\n" in capsys.readouterr().err
    assert main(command) == ExitCode.AGREE
    assert "configuration" not in capsys.readouterr().err


def test_what_lets_something_pass_is_always_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("a", "1.0"), ("b", "1.1")):
        np.savez(place / f"{name}.npz", x=np.float32(value))
    assert main(["diff", "a.npz", "b.npz", "--quiet"]) == ExitCode.MISMATCH
    (place / "hlotool.toml").write_text("[diff]\nrtol = 1\n")
    assert main(["diff", "a.npz", "b.npz", "--quiet"]) == ExitCode.AGREE
    assert capsys.readouterr().err.endswith("hlotool: configuration: hlotool.toml: rtol\n")


@pytest.mark.parametrize(
    "arguments",
    [("opt", "f.hlo"), ("opt", "--list-passes"), ("extract", "f.hlo", "s", "-o", "s.hlo")],
)
def test_every_record_says_it(
    arguments: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "hlotool.toml").write_text("quiet = true")
    assert record(capsys, *arguments)["configuration"]["options"] == ["quiet"]
    assert record(capsys, *arguments, "--no-config")["configuration"]["file"] == ""


def test_the_next_command_means_the_same(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It repeats what was typed against the configuration, and which one was named."""
    dump = place / "d"
    dump.mkdir()
    (dump / "module_0000.m.before_optimizations.txt").write_text(PROGRAM)
    wrong = PROGRAM.replace("add(x, y)", "subtract(x, y)")
    (dump / "module_0000.m.cpu_after_optimizations.txt").write_text(wrong)
    (place / "hlotool.toml").write_text("seed = 5\nno-resume = true\n[run]\nfirst-divergence = false\n")
    command = ["run", "d", "--seed", "0", "--no-first-divergence", "--config", "hlotool.toml"]
    assert main(command) == ExitCode.MISMATCH
    expected = "next: hlotool bisect d --config hlotool.toml --seed 0"
    assert capsys.readouterr().out.splitlines()[-1] == expected


@pytest.mark.parametrize(
    ("used", "flags"),
    [
        (None, ["--thorough"]),
        (ConfigurationRecord(file="a.toml", named=False, options=["seed"]), ["--thorough"]),
        (ConfigurationRecord(file="a.toml", named=True), ["--config", "a.toml", "--thorough"]),
        (ConfigurationRecord(file="", named=True), ["--no-config", "--thorough"]),
        (
            ConfigurationRecord(file="a.toml", named=False, replaced=["seed", "exact", "outputs"]),
            ["--seed", "0", "--thorough", "--no-exact"],
        ),
    ],
)
def test_options_of_the_next_command(used: ConfigurationRecord | None, flags: list[str]) -> None:
    """What equals the default is said where the file says otherwise."""
    from hlotool.interface.report.next_command import _flags

    assert _flags({"seed": 0, "thorough": True, "exact": False, "outputs": None}, used) == flags
