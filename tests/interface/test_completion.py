"""Completion in the shells themselves: what a key offers is what the parser knows."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hlotool.interface.cli.main import build_parser, main

#: What is typed before the key, and what must be offered: all of it, and nothing else.
OFFERED = {
    "hlotool re": {"reduce", "releases", "repro"},
    "hlotool run --prec": {"--precision"},
    "hlotool run --precision ": {"hlo", "wide"},
    "hlotool run dump --elided g": {"generate"},
    "hlotool check --fail-on w": {"warning"},
    "hlotool run --fail-on un": {"unstable", "unsupported"},
    "hlotool repro v": {"verify"},
    "hlotool exec --snap": {"--snapshots"},
    "hlotool bisect dump/mod": {"dump/module_0001.txt"},
    "hlotool bisect --inputs dump/mod": {"dump/module_0001.txt"},
    "hlotool exec -- hlotool_progr": {"hlotool_program"},
    "hlotool exec -- python dump/mod": {"dump/module_0001.txt"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a file, a program and the texts for the shells."""
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "module_0001.txt").touch()
    for name in ("hlotool", "hlotool_program"):
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text_for(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The file with what is printed for a shell that is installed here."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert main(["--print-completion", shell]) == 0
    file = folder / f"completion.{shell}"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    return file


#: Bash's own word list, then the file names that its `-o default` adds where there are no words.
IN_BASH = """
source {file}
complete -p hlotool | grep -q -- '-o default' || exit 1
while IFS= read -r line; do
  read -ra COMP_WORDS <<< "$line"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
  _hlotool
  ((${{#COMPREPLY[@]}})) || COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}"))
  echo "${{COMPREPLY[*]}}"
done
"""


def test_bash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = IN_BASH.format(file=shlex.quote(str(text_for("bash", folder, capsys))))
    lines = "".join(f"{line}\n" for line in OFFERED)
    result = subprocess.run(["bash", "-c", script], input=lines, capture_output=True, encoding="utf-8")
    assert result.stderr == ""
    found = [set(line.split()) for line in result.stdout.splitlines()]
    assert dict(zip(OFFERED, found, strict=True)) == OFFERED


def test_fish(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = text_for("fish", folder, capsys)
    script = f"source {shlex.quote(str(file))}\n" + "".join(
        f"echo @@@; complete -C {shlex.quote(line)}\n" for line in OFFERED
    )
    result = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, encoding="utf-8")
    assert result.stderr == ""
    answers = [part.splitlines()[1:] for part in result.stdout.split("@@@")[1:]]
    assert len(answers) == len(OFFERED)
    for (line, offered), found in zip(OFFERED.items(), answers):
        assert {word.split("\t")[0] for word in found} == offered, line


@pytest.mark.parametrize(
    ("shell", "options", "setup"),
    [
        ("bash", ["--norc", "--noprofile"], ""),
        ("zsh", ["-f"], "autoload -Uz compinit; compinit -u -D; "),
    ],
)
def test_the_key_itself(
    shell: str, options: list[str], setup: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an interactive shell: what is completed is what `echo` then gets."""
    file = text_for(shell, folder, capsys)
    (folder / "bin" / "hlotool").write_text('#!/bin/sh\necho "got: $*."\n')
    with terminal([shell, *options, "-i"]) as descriptor:
        # The quotation marks keep what is waited for out of the echo of the command.
        os.write(descriptor, f'{setup}source {shlex.quote(str(file))}; echo rea"dy"\n'.encode())
        read_until(descriptor, "ready")
        for typed, got in (
            ("hlotool expl\t x", "got: explain x."),
            ("hlotool run --preci\twi\t x", "got: run --precision wide x."),
            ("hlotool bisect dump/mod\t x", "got: bisect dump/module_0001.txt x."),
        ):
            os.write(descriptor, f"{typed}\n".encode())
            read_until(descriptor, got)


@contextmanager
def terminal(command: list[str]) -> Iterator[int]:
    """A process on a terminal of its own; what it reads and writes."""
    try:
        own, other = pty.openpty()
    except OSError as error:  # a container without /dev/pts
        pytest.skip(f"there are no pseudo terminals: {error}")
    with subprocess.Popen(
        command, stdin=other, stdout=other, stderr=other, start_new_session=True
    ) as process:
        os.close(other)
        try:
            yield own
        finally:
            process.kill()
            os.close(own)


def read_until(descriptor: int, text: str) -> None:
    """Read until a text has come; a shell that is silent for a minute will not write it any more."""
    seen = ""
    while text not in seen:
        readable, _, _ = select.select([descriptor], [], [], 60)
        assert readable, seen
        seen += os.read(descriptor, 4096).decode("utf-8", "replace")


def test_every_visible_option_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Of every command, for every shell; those that help hides are not."""
    for shell in ("bash", "zsh", "fish"):
        assert main(["--print-completion", shell]) == 0
        text = capsys.readouterr().out
        for name, parser in build_parser().commands.items():
            assert name in text
            for option in parser._options():
                in_fish = f"-l {option[2:]} " if option.startswith("--") else f"-s {option[1:]} "
                assert (in_fish if shell == "fish" else option) in text
        assert "no-exact" not in text
