"""The examples for clusters and containers: they parse, and every command of hlotool in them is one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hlotool.cli.main import build_parser

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
    plain = [re.sub(r"\$\{?\w+[^}\s]*\}?|\$\(\w+\)", "1", word) for word in words]
    assert build_parser().parse_args(plain).command_name == plain[0]


def commands(text: str) -> Iterator[list[str]]:
    """The command lines of hlotool in a script."""
    for line in text.replace("\\\n", " ").splitlines():
        if re.match(r"\s*(srun\s+|exec\s+)*hlotool\s", line):
            words = shlex.split(line, comments=True)
            yield words[words.index("hlotool") + 1 :]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests(path: Path) -> None:
    found = documents(path)
    assert all({"apiVersion", "kind", "metadata"} <= document.keys() for document in found)
    calls = [c for c in containers(found) if c["image"] == "hlotool" and "command" not in c]
    assert calls, "an example that does not call hlotool"
    for container in calls:
        check_command(container["args"])
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
