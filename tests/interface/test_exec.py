"""`hlotool exec`: what becomes of the program, of its dump and of its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest
from support.ahead import Compiler, use
from support.budget import HUNG
from support.capture import stub_of_jaxlib

from hlotool.errors import BackendUnavailable, ExitCode
from hlotool.interface.cli.main import main
from hlotool.interface.report.command_records import exec_exit_code

ROOT = Path(__file__).resolve().parents[2]
COMPILE = "from jaxlib import xla_client; xla_client.CompileOptions(); xla_client.compile"

#: One of each: a program that agrees, and one with a planted fault.
HEALTHY, WRONG = "jax/model_fn", "planted/slices_off_by_one"


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for jaxlib in the programs that are run, and an own place for what hlotool keeps."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    known = ["dump_large_constants", "dump_hlo_snapshots", "dump_hlo_pass_re", "dump_hlo_module_re"]
    path = stub_of_jaxlib(tmp_path / "stub", known)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(path), str(ROOT)]))
    return path


def execute(capfd: pytest.CaptureFixture[str], source: str, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, record and stderr of the command."""
    code = main(["exec", "--json", *options, "--", sys.executable, "-c", source])
    out, err = capfd.readouterr()
    return code, json.loads(out), err


def test_a_healthy_program(stub: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, record, err = execute(capfd, f"{COMPILE}({HEALTHY!r}); print('to stdout')")
    assert (code, record["exit_code"], record["run"]["summary"]) == (0, 0, {"identical": 1})
    assert "to stdout" in err  # stdout is for the record alone
    assert record["run"]["modules"][0]["name"] == "module_0000.jit_model_fn"
    assert record["program"]["processes"][0]["packages"].keys() == {"jaxlib"}
    assert record["dump"] == ""
    assert not list(tmp_path.glob("hlotool-exec-*"))


def test_what_another_device_would_get(
    stub: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program compiles for its own device, and what it compiled is compiled for the target as well."""
    use(monkeypatch, Compiler())
    options = ("--for", "v5e", "--keep", str(tmp_path / "kept"))
    code, record, _ = execute(capfd, f"{COMPILE}({HEALTHY!r})", *options)
    [row] = record["compiled"]["programs"]
    assert (code, row["outcome"], row["verdict"]) == (0, "compiles", "identical")
    assert list((tmp_path / "kept" / "compiled").rglob("*before_optimizations.txt"))


def test_a_compiler_that_is_missing_is_asked_for_before_the_program_starts(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Missing(Compiler):
        def call(self, function: str, argument: object, kind: type[object]) -> object:
            raise BackendUnavailable("there is no compiler for tpu here: pip install 'hlotool[tpu]'")

    use(monkeypatch, Missing())
    started = tmp_path / "started"
    program = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    assert main(["exec", "--for", "v5e", "--", *program]) == BackendUnavailable.exit_code
    assert "pip install 'hlotool[tpu]'" in capfd.readouterr().err
    assert not started.exists()


def test_a_compiler_that_fails_later(
    stub: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay is reported all the same."""

    def missing(text: str) -> str:
        raise BackendUnavailable("no such compiler")

    use(monkeypatch, Compiler(ends_with=missing))
    code, record, _ = execute(capfd, f"{COMPILE}({HEALTHY!r})", "--for", "v5e")
    assert record["run"]["summary"] == {"identical": 1}
    assert code == ExitCode.NOTHING_COMPARED
    assert "no such compiler" in json.dumps(record["compiled"])


def test_a_wrong_program(stub: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "--", sys.executable, "-c", f"{COMPILE}({WRONG!r}); exit(7)"]) == 1
    out, _ = capfd.readouterr()
    first, last = out.strip().splitlines()[0], out.strip().splitlines()[-1]
    assert "exit status 7" in first
    folder = Path(first.rpartition(" dump in ")[2])
    assert list(folder.glob("process_*/module_*.txt")), "what is wrong is kept"
    assert last.startswith("next: hlotool exec --bisect -- ")


def test_what_is_left_open_is_kept_with_the_next_command(
    stub: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit 0, for another module agrees; the command needs the dump."""
    child = f"{COMPILE}('verdicts/range')"
    start = f"subprocess.run([sys.executable, '-c', {child!r}])"
    source = f"import subprocess, sys; {COMPILE}({HEALTHY!r}); {start}"
    assert main(["exec", "--", sys.executable, "-c", source]) == 0
    out, _ = capfd.readouterr()
    first, last = out.strip().splitlines()[0], out.strip().splitlines()[-1]
    folder = first.rpartition(" dump in ")[2]
    assert list(Path(folder).glob("process_*/module_*.txt"))
    assert last.startswith(f"next: hlotool run {folder}")
    assert main(["exec", "--fail-on", "unstable,inf", "--", sys.executable, "-c", source]) == 1


@pytest.mark.parametrize(
    ("replays", "status", "code"), [(0, 0, 0), (1, 0, 1), (1, 9, 1), (0, -15, 143), (3, 2, 2), (4, 0, 4)]
)
def test_exit_codes(replays: int, status: int, code: int) -> None:
    """The contract of the command line: as `run`; the program's own failure where nothing was wrong."""
    assert exec_exit_code(replays, status) == code


def test_a_program_without_xla(
    stub: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=elsewhere")
    code, record, _ = execute(capfd, "print('no XLA')")
    assert code == 3
    assert any("was seen to load" in note for note in record["run"]["notes"])
    assert any("--xla_dump_to=elsewhere gives way" in note for note in record["run"]["notes"])


def test_the_programs_failure_is_passed_on(stub: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, record, _ = execute(capfd, "exit(7)")
    assert (code, record["program"]["status"], record["run"]["exit_code"]) == (7, 7, 3)


def test_usage(stub: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["exec", "--bisect"]) == 2
    assert main(["exec", "--", "no-such-command-here"]) == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert main(["exec", "--keep", str(tmp_path / "full"), "--", "true"]) == 2
    assert main(["exec", "--keep", str(tmp_path / "a b"), "--", "true"]) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_arguments_of_the_program_are_its_own(stub: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not even those are touched that hlotool has, too."""
    source = "import sys; print(sys.argv[1:])"
    main(["exec", "--", sys.executable, "-c", source, "--only", "x", "--input-range", "-1,1", "--", "-h"])
    assert "['--only', 'x', '--input-range', '-1,1', '--', '-h']" in capfd.readouterr().out


def test_each_process_has_a_folder(stub: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Modules of one number and one name do not meet. XLA is told of `--only` what it understands."""
    child = f"{COMPILE}({WRONG!r})"
    source = (
        f"import subprocess, sys; {COMPILE}({HEALTHY!r}); subprocess.run([sys.executable, '-c', {child!r}])"
    )
    code, record, _ = execute(capfd, source, "--keep", str(tmp_path / "kept"), "--only", "model|slices")
    names = {module["name"] for module in record["run"]["modules"]}
    assert code == 1
    assert {name.partition("/")[0] for name in names} == {
        f"process_{process['pid']}" for process in record["program"]["processes"]
    }
    assert Path(record["dump"]) == (tmp_path / "kept").resolve()
    assert "--xla_dump_hlo_module_re=model|slices" in record["program"]["processes"][0]["flags"]


@pytest.mark.slow
def test_bisect(stub: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The fault of `planted/slices_off_by_one` is planted in the pass that MANIFEST.toml names."""
    options = ["--bisect", "--repro", str(tmp_path / "repro")]
    code, record, _ = execute(capfd, f"{COMPILE}({HEALTHY!r}, {WRONG!r})", *options)
    [culprit] = record["bisect"]["culprits"]
    assert (code, culprit["level"], culprit["confirmed"]) == (1, "pass", True)
    assert Path(culprit["repro"]).is_dir()


class Beside:
    """A command that runs as a process of its own, with a program that waits for a line."""

    def __init__(self, source: str) -> None:
        # The stand-in writes no executions, which otherwise would be waited for.
        command = [sys.executable, "-m", "hlotool", "exec", "--snapshots", "0"]
        self.process = subprocess.Popen(
            [*command, "--", sys.executable, "-c", source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self.process:
            self.process.kill()

    def wait_for(self, text: str) -> None:
        """Read stderr until a line with `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        raise AssertionError(f"the command ended without saying {text!r}")


def test_what_is_wrong_is_told_while_the_program_runs(stub: Path) -> None:
    """It reads its stdin, which is that of the command."""
    with Beside(f"{COMPILE}({WRONG!r}); print('read', input())") as beside:
        beside.wait_for("hlotool: wrong: module_0000.jit_")
        assert beside.process.poll() is None
        out, _ = beside.process.communicate("a line\n", timeout=HUNG)
    assert "read a line" in out
    assert beside.process.returncode == 1


def test_an_interrupted_program_is_reported(stub: Path) -> None:
    """Ctrl-C that comes to the command alone is passed on; what there is until then is judged."""
    source = f"{COMPILE}({HEALTHY!r}); import sys, time; print('up', file=sys.stderr); time.sleep(600)"
    with Beside(source) as beside:
        beside.wait_for("up")
        beside.process.send_signal(signal.SIGINT)
        out, _ = beside.process.communicate(timeout=HUNG)
    assert "ended by SIGINT" in out or "exit status 130" in out
    assert "module_0000.jit_model_fn" in out
    assert beside.process.returncode == 130


@pytest.mark.xla
def test_a_real_program_with_its_arguments_and_results(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two executions of one module: one is kept, and what was returned is judged, too."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    source = "import jax, numpy; f = jax.jit(lambda x: x * 2 + 1); x = numpy.float32([1, 2]); f(x); f(x + 1)"
    code, record, _ = execute(capfd, source)
    stages = [(module["stage_tested"], module["inputs"]["origin"]) for module in record["run"]["modules"]]
    assert (code, stages) == (0, [("cpu_after_optimizations", "captured"), ("result", "captured")])


#: A training whose step 30 of 50 has a NaN in its batch, and whose step 40 has one that is far off.
_TRAINING = """
import jax, numpy
@jax.jit
def step(w, x):
    loss, g = jax.value_and_grad(lambda w: ((x @ w - 1) ** 2).mean())(w)
    return w - 0.01 * g, loss
w = numpy.zeros((4, 4), numpy.float32)
for n in range(1, 51):
    new, loss = step(w, numpy.full((2, 4), {30: numpy.nan, 40: 1000}.get(n, 0.5), numpy.float32))
    w = w if n in (30, 40) else new
"""


@pytest.mark.xla
def test_executions_are_kept_for_what_they_return(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are named, replayed, and first in the list; else only the third execution stays."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    options = ("--keep-when", "nan|jump:5|every:20", "--keep-last", "2", "--keep", str(tmp_path / "kept"))
    code, record, _ = execute(capfd, _TRAINING, *options, "--only", "jit_step")
    assert [(e["execution"], e["condition"], e["output"], e["verdict"]) for e in record["events"]] == [
        (20, "every:20", "", "identical"),
        (30, "nan", "out[0]", "identical"),
        (40, "jump:5", "out[1]", "identical"),
        (40, "every:20", "", "identical"),
    ]
    assert code == 0
    left = list((tmp_path / "kept").rglob("*jit_step*.snapshot.*.pb"))
    assert len(left) == 1 + 1 + 3 + 3
    rows = [row["inputs"]["description"].partition(",")[0] for row in record["run"]["modules"]]
    judged = [int(row.split()[1]) for row in rows]
    assert judged == [20, 20, 30, 30, 40, 40, 3, 3, 28, 28, 29, 29, 38, 38, 39, 39]


@pytest.mark.xla
def test_a_fault_is_told_from_what_the_program_does(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of the program is replaced while it runs: what was returned is not what that says."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    spoil = """
import glob, os
folder = os.environ["XLA_FLAGS"].split("--xla_dump_to=")[1].split()[0]
[path] = glob.glob(folder + "/*jit_step*before_opt*.txt")
with open(path) as file: text = file.read()
with open(path, "w") as file: file.write(text.replace("subtract(", "add("))
"""
    (script := tmp_path / "train.py").write_text(_TRAINING + spoil)
    assert main(["exec", "--keep-when", "every:20", "--", sys.executable, str(script)]) == 1
    out, _ = capfd.readouterr()
    assert "every:20 in module_" in out
    assert "the device did not compute what the program says: a fault" in out


def test_where_no_executions_are_recorded(stub: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """That is an error, not a run without events."""
    code, record, _ = execute(capfd, f"{COMPILE}({HEALTHY!r})", "--keep-when", "nan")
    assert (code, record["events"]) == (ExitCode.NOTHING_COMPARED, [])
    assert "--keep-when and --repeat saw no execution" in record["error"]["message"]
    assert main(["exec", "--keep-when", "nan", "--snapshots", "0", "--", "true"]) == 2
    assert main(["exec", "--keep-when", "nans", "--", "true"]) == 2


@pytest.mark.xla
@pytest.mark.slow
@pytest.mark.parametrize(
    "program", sorted(p.parent.name for p in ROOT.glob("corpus/miscompiles/*/inputs.npz"))
)
def test_real_miscompiles(
    program: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What XLA gets wrong stands in the manifest, with the version that does."""
    import tomllib

    import jaxlib

    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    manifest = tomllib.loads((ROOT / "corpus" / "MANIFEST.toml").read_text(encoding="utf-8"))
    [entry] = [known for known in manifest["directory"] if known["path"] == f"miscompiles/{program}"]
    if jaxlib.__version__ != entry["versions"]["jaxlib"]:
        pytest.skip(f"jaxlib {jaxlib.__version__} need not be wrong")
    command = [sys.executable, str(ROOT / "corpus/generate/run_program.py"), "miscompiles", program]
    code = main(["exec", "--json", "--bisect", "--repro", str(tmp_path), "--", *command])
    [culprit] = json.loads(capfd.readouterr().out)["bisect"]["culprits"]
    fault = entry["fault"]
    assert (code, culprit["level"], culprit["pass"]) == (1, fault["level"], fault.get("pass", ""))
    assert culprit["confirmed"]
    assert set(fault.get("opcodes", culprit["opcodes"])) & set(culprit["opcodes"])


def test_a_program_that_dies_while_it_is_compiled(stub: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What it wrote to stderr arrives there, and what it died of is explained in the row."""
    dead = str(ROOT / "corpus/verdicts/not_compiled")
    fatal = "F1128 17:55:42.777388 1 simplifier.cc:578] RET_CHECK failure (xla/a.cc:13) x == y"
    source = f"{COMPILE}({dead!r}); import os, sys; print({fatal!r}, file=sys.stderr, flush=True); os.abort()"
    assert main(["exec", "--", sys.executable, "-c", source]) == 134
    out, err = capfd.readouterr()
    assert fatal in err
    assert "the compilation did not finish: it died in algsimp (pipeline simplification)" in out
    assert "the log says: simplifier.cc:578]" in out
    assert "hlotool explain xla-ret-check" in out
    last = out.strip().splitlines()[-1]
    assert last.startswith("next: hlotool reduce ")
    assert last.endswith(f".before_optimizations.txt --backend xla:python={sys.executable}")


def test_a_program_that_dies_before_anything_is_written(
    stub: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    main(["exec", "--", sys.executable, "-c", "import jaxlib; exit('Unknown flag in XLA_FLAGS: --x')"])
    err = capfd.readouterr().err
    assert "nothing was dumped, and the program failed: XLA_FLAGS holds a flag" in err
    assert "hlotool explain xla-unknown-flag" in err
