"""What editors, GitHub Actions, pre-commit and containers take: run as these would, without them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs import BROKEN, DOUBLE, SQUARE, SUM, write_module

import hlotool
from hlotool.ir.module import Instruction

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
VSCODE = ROOT / "docs" / "examples" / "vscode"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Somebody's repository: a program, a broken one, a dump with a wrong module."""
    (tmp_path / "good one.hlo").write_text(SUM)
    (tmp_path / "broken.hlo").write_text(BROKEN)
    (tmp_path / "dump").mkdir()
    write_module(tmp_path / "dump", 0, DOUBLE, SQUARE)
    return tmp_path


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Of a machine with this `python` and `hlotool`, whose pip only notes what it is told."""
    tools = folder / "tools"
    tools.mkdir()
    pip = f'[ "$1 $2" = "-m pip" ] && {{ printf "%s\\n" "$@" > "{folder}/pip"; exit; }}'
    python = f'{pip}; exec {sys.executable} "$@"'
    for name, text in (("python", python), ("hlotool", f'exec {sys.executable} -m hlotool "$@"')):
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    kept = {**os.environ, "PYTHONPATH": str(ROOT), "HLOTOOL_CACHE": str(folder / "cache")}
    return {**kept, "PATH": f"{tools}:{os.environ['PATH']}", **more}


# GitHub Actions.


def expanded(text: str, inputs: dict[str, str]) -> str:
    """What the runner makes of expressions; of others than inputs it is not known here."""
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)


def act(folder: Path, **given: str) -> tuple[int, str, dict[str, str]]:
    """Run the steps of the action that are scripts; returns the exit code, stderr and the outputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: one.get("default", "") for name, one in action["inputs"].items()}
    assert given.keys() <= inputs.keys()
    inputs |= given
    output = folder / "output"
    known = environment(folder, GITHUB_ACTION_PATH=str(ROOT), GITHUB_OUTPUT=str(output))
    code, said = 0, ""
    for step in action["runs"]["steps"]:
        if "run" not in step:
            continue
        assert "${{" not in step["run"]
        own = {name: expanded(value, inputs) for name, value in step.get("env", {}).items()}
        # As the runner calls it: https://docs.github.com/actions/reference/workflow-syntax, `shell: bash`.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=folder, env=known | own, capture_output=True, text=True, timeout=300, check=False
        )
        code, said = done.returncode, said + done.stderr
        if code:
            break
    lines = output.read_text().splitlines() if output.exists() else []
    return code, said, dict(line.split("=", 1) for line in lines)


def test_the_action_runs_a_command_and_says_what_it_found(project: Path) -> None:
    code, said, outputs = act(project, paths="dump", command="run", args="--junit out.xml", extras="html")
    assert (code, outputs) == (1, {"exit-code": "1"})
    assert re.search(
        r"^::error file=model.py,line=7,title=hlotool%3A wrong in module_0000", said, re.MULTILINE
    )
    assert json.loads((project / "hlotool.sarif").read_text())["version"] == "2.1.0"
    assert "<testsuites>" in (project / "out.xml").read_text()
    assert (project / "pip").read_text().splitlines()[-1] == f"{ROOT}[html]"


def test_words_of_the_action_are_words_and_nothing_else(project: Path) -> None:
    code, said, outputs = act(project, paths="'good one.hlo'\n", args="--fail-on  error")
    assert (code, outputs, said) == (0, {"exit-code": "0"}, "")
    assert (project / "pip").read_text().splitlines()[-1] == str(ROOT)


def test_what_looks_like_a_script_is_none(project: Path) -> None:
    _, said, _ = act(project, paths='$(touch made) ";touch made"')
    assert not (project / "made").exists()
    assert "touch" in said


def test_half_a_word_is_an_error(project: Path) -> None:
    code, _, outputs = act(project, paths="'good one.hlo")
    assert (code, outputs) == (2, {})


def test_the_action_names_what_there_is() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == action["inputs"].keys()
    assert all(re.search(r"@v\d+$", step["uses"]) for step in action["runs"]["steps"] if "uses" in step)
    [page] = re.findall(
        r"uses: OWNER/hlotool.*?```", (ROOT / "docs/editors-and-ci.md").read_text(), re.DOTALL
    )
    assert set(re.findall(r"^      ([\w-]+):", page, re.MULTILINE)) <= action["inputs"].keys()


# pre-commit.


def test_the_hook_is_called_as_pre_commit_calls_it(project: Path) -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    name, *words = shlex.split(hook["entry"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert hook["language"] == "python"
    assert name in scripts
    (project / "program.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    )
    names = sorted(path.name for path in project.iterdir())
    chosen = [one for one in names if re.search(hook["files"], one)]
    assert chosen == ["broken.hlo", "good one.hlo", "program.mlir"]
    known = environment(project)

    def called(*files: str) -> subprocess.CompletedProcess[str]:
        command = [name, *words, *files]
        return subprocess.run(
            command, cwd=project, env=known, capture_output=True, text=True, timeout=300, check=False
        )

    assert called("good one.hlo", "program.mlir").returncode == 0
    done = called(*chosen)
    assert done.returncode != 0
    assert "broken.hlo" in done.stdout


# Visual Studio Code.


def matchers() -> list[dict[str, Any]]:
    found = json.loads((VSCODE / "package.json").read_text(encoding="utf-8"))
    return list(found["contributes"]["problemMatchers"])


def matched(text: str) -> list[dict[str, str]]:
    """What the matchers read in each line: a pattern counts groups."""
    found = []
    for line in text.splitlines():
        for matcher in matchers():
            pattern = matcher["pattern"]
            if match := re.search(pattern["regexp"], line):
                groups = {name: number for name, number in pattern.items() if isinstance(number, int)}
                found.append({name: match[number] for name, number in groups.items()})
    return found


@pytest.mark.parametrize("command", ["run", "check"])
def test_problems_are_read_in_what_is_printed(command: str, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hlotool", command, "dump", "broken.hlo", "--github"],
        cwd=project, env=environment(project), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if line.startswith("::")]
    found = matched(done.stderr)
    assert len(found) == len(lines) >= 1
    assert {"error"} == {one["severity"] for one in found}
    broken = next(one for one in found if one["file"] == "broken.hlo")
    assert broken["line"] == "5"
    assert broken["code"] == ("bad input" if command == "run" else "unchecked")
    if command == "run":
        wrong = next(one for one in found if one["code"] == "wrong")
        assert (wrong["file"], wrong["line"]) == ("model.py", "7")


def test_problems_of_whole_files(corpus: Path) -> None:
    """Editors drop what has no line, unless it is of a file as a whole (`kind`)."""
    command = [sys.executable, "-m", "hlotool", "check", "--github", "corpus/tf/keras_fit"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    [found] = matched(done.stderr)
    assert (found["severity"], found["code"]) == ("warning", "recompilation")
    assert found["file"].startswith("corpus/tf/keras_fit/module_0000")
    assert [matcher["pattern"].get("kind") for matcher in matchers()] == [None, "file"]


# Colours.


def test_the_grammar_of_editors_is_that_of_the_parser() -> None:
    command = [sys.executable, ROOT / "scripts" / "textmate-grammar", "--check"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=100)


def coloured(line: str, rules: list[dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Scope and text of what is coloured: the first match from the left, of several the first rule."""
    place = 0
    compiled = [(rule["name"], re.compile(rule["match"])) for rule in rules if "match" in rule]
    while place < len(line):
        found = [
            (match.start(), n, match)
            for n, (_, rule) in enumerate(compiled)
            if (match := rule.search(line, place))
        ]
        if not found:
            return
        _, number, match = min(found, key=lambda one: one[:2])
        yield compiled[number][0], match[0]
        place = max(match.end(), place + 1)


def text_of(instruction: Instruction, lines: list[str]) -> str:
    return lines[instruction.line - 1]


@pytest.mark.parametrize("place", ["jax/train_transformer", "tf/keras_fit", "jax/nested_loops"])
def test_colours_of_real_programs(place: str, corpus: Path) -> None:
    rules = json.loads((VSCODE / "hlo.tmLanguage.json").read_text(encoding="utf-8"))["patterns"]
    paths = sorted((corpus / place).rglob("*optimizations.txt")) or sorted((corpus / place).rglob("*.hlo"))
    seen = 0
    for path in paths[:2]:
        lines = path.read_text(encoding="utf-8").splitlines()
        module = hlotool.load(path)
        for instruction in module.instructions():
            line = text_of(instruction, lines)
            found = list(coloured(line, rules))
            assert ("support.function.hlo", instruction.opcode) in found, line
            name = next(text for scope, text in found if scope == "variable.other.hlo")
            assert name.lstrip("%") == instruction.name
            if instruction.array_type is not None:
                assert ("storage.type.hlo", instruction.array_type.value) in found, line
            if instruction is module.entry.root:
                assert ("keyword.control.hlo", "ROOT") in found, line
            if "metadata=" in line:
                assert ("entity.other.attribute-name.hlo", "metadata=") in found, line
                assert any(scope == "string.quoted.hlo" for scope, _ in found) or "op_name" not in line
            seen += 1
        assert ("keyword.control.hlo", "HloModule") in coloured(lines[0], rules)
    assert seen > 20


# Containers.


@pytest.mark.slow
def test_the_container_installs_and_runs(tmp_path: Path, corpus: Path) -> None:
    """Its instructions in a virtual environment: what it copies, installs and calls; users apart."""
    text = (ROOT / "docs" / "examples" / "Containerfile").read_text(encoding="utf-8")
    source, home = tmp_path / "src", tmp_path / "venv"
    venv.create(home, with_pip=True)
    known = {
        **os.environ,
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    known.pop("PYTHONPATH", None)
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            assert rest == ". /src"
            git = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
            source.mkdir()
            subprocess.run(["tar", "x"], cwd=source, input=git.stdout, check=True)
        elif word == "RUN" and "useradd" not in rest:
            subprocess.run(rest.replace("/src", str(source)), shell=True, env=known, check=True, timeout=1500)
            assert not source.exists()
        elif word == "ENV":
            name, _, value = rest.partition("=")
            known[name] = value.replace("/home/hlotool", str(tmp_path))
        elif word == "ENTRYPOINT":
            command = json.loads(rest)
            dump = shutil.copytree(corpus / "jax" / "int8_dot", tmp_path / "dump")
            done = subprocess.run(
                [*command, "run", str(dump), "--html", str(tmp_path / "page.html")],
                cwd=tmp_path, env=known, capture_output=True, text=True, timeout=300, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert "identical" in done.stdout
            assert (tmp_path / "page.html").exists()
            assert (tmp_path / "cache").is_dir()
            break
    else:
        pytest.fail("no ENTRYPOINT")
