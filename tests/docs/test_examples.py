"""The examples for clusters and containers: they parse, and every command of hlotool in them is one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hlotool.interface.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.sh"))
MANIFESTS = sorted(EXAMPLES.glob("*.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def containers(value: Any) -> Iterator[dict[str, Any]]:
    """All containers in a manifest."""
    if isinstance(value, dict):
        yield from value.get("containers", []) + value.get("initContainers", [])
        for part in value.values():
            yield from containers(part)
    elif isinstance(value, list):
        for part in value:
            yield from containers(part)


def check_command(words: list[str]) -> None:
    """Variables stand for what a user has: a number where one is asked for."""
    plain = [re.sub(r"\$\{\w+[^}\s]*\}|\$\w+|\$\(\w+\)", "1", word) for word in words]
    assert build_parser().parse_args(plain).command_name == plain[0]


def commands(text: str) -> Iterator[list[str]]:
    """The command lines of hlotool in a script."""
    for line in text.replace("\\\n", " ").splitlines():
        if re.match(r"\s*(srun\s+|exec\s+)*hlotool\s", line):
            words = shlex.split(line.partition(" > ")[0], comments=True)
            yield words[words.index("hlotool") + 1 :]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests(path: Path) -> None:
    found = documents(path)
    assert all({"apiVersion", "kind", "metadata"} <= document.keys() for document in found)
    calls = []
    for container in containers(found):
        if container["image"] == "hlotool" and "command" not in container:
            calls.append(container["args"])
        elif container["command"] == ["bash", "-c"]:
            [script] = container["args"]
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
            calls += commands(script)
    assert calls, "an example that does not call hlotool"
    for words in calls:
        check_command(words)
    for container in containers(found):
        assert {"requests"} <= container["resources"].keys()


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_selectors_select(path: Path) -> None:
    for document in documents(path):
        if document["kind"] == "Deployment":
            labels = document["spec"]["template"]["metadata"]["labels"]
            assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    if shellcheck := shutil.which("shellcheck"):
        subprocess.run([shellcheck, path], check=True)
    found = list(commands(path.read_text(encoding="utf-8")))
    assert found
    for words in found:
        check_command(words)


#: Runs what it is given at once: an array of three tasks, or one job.
SBATCH = """\
#!/bin/bash
[[ " $* " == *" --array=1-16 "* ]] && tasks="1 2 3" || tasks=
while [[ $1 == --* ]]; do shift; done
for task in ${tasks:-0}; do
    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=3 bash "$@" >> slurm.out
    echo "$?" >> status
done
echo 17
"""


def test_a_job_array_of_slurm_becomes_one_record(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("sbatch", SBATCH), ("hlotool", f'#!/bin/bash\n{sys.executable} -m hlotool "$@"\n')):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    dump = ROOT / "corpus" / "jax" / "int8_dot"
    path = f"{tools}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HLOTOOL_CACHE": str(tmp_path / "c")}
    command = ["bash", EXAMPLES / "slurm-shards.sh", dump]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=600)
    # Of one module two of three shards are empty; the last status is that of `merge`.
    assert (tmp_path / "status").read_text().split() == ["0"] * 4
    assert sorted(path.name for path in tmp_path.glob("shard-*")) == [f"shard-{n}.json" for n in (1, 2, 3)]
    assert (tmp_path / "job-17.xml").is_file()


def test_the_container_installs_extras_that_there_are() -> None:
    text = (EXAMPLES / "Containerfile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [asked] = re.findall(r"/src\[([\w,-]+)\]", text)
    assert set(asked.split(",")) <= extras["optional-dependencies"].keys()
    assert 'ENTRYPOINT ["hlotool"]' in text
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)


def test_each_example_is_listed() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    assert [path.name for path in sorted(EXAMPLES.iterdir()) if f"examples/{path.name}" not in pages] == []
