"""Forms of HLO that was shown somewhere and copied from there: consoles, pages, mails, tables, diffs."""

from __future__ import annotations

import csv
import difflib
import email.message
import gzip
import html
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path


def _each(text: str, prefix: Callable[[int], str]) -> str:
    return "".join(f"{prefix(n)}{line}\n" for n, line in enumerate(text.splitlines(), start=1))


def repr_of_console(texts: list[str]) -> bytes:
    """What Python's console shows of a text that was not printed."""
    return f">>> jax.jit(f).lower(x).as_text('hlo')\n{texts[0]!r}\n>>> \n".encode()


def repr_of_notebook(texts: list[str]) -> bytes:
    """The same in a notebook."""
    output = {"output_type": "execute_result", "data": {"text/plain": [repr(texts[0])]}, "execution_count": 3}
    cell = {"cell_type": "code", "metadata": {}, "source": ["compiled.as_text()"], "outputs": [output]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def list_of_lines(texts: list[str]) -> bytes:
    """A Python list of lines, joined by the program."""
    lines = "".join(f"    {line!r},\n" for line in texts[0].splitlines())
    return f"# It doesn't matter.\nhlo = '\\n'.join([\n{lines}])\n".encode()


def debugger(texts: list[str]) -> bytes:
    """What GDB prints of a string."""
    return f"(gdb) p module->ToString()\n$1 = {json.dumps(texts[0])}\n(gdb) \n".encode()


def one_line(texts: list[str]) -> bytes:
    """A log that writes line ends as characters."""
    line = texts[0].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f"INFO compiled hlo={line}\nINFO done\n".encode()


def powershell(texts: list[str]) -> bytes:
    """A redirection of PowerShell: UTF-16, with a mark and Windows' line ends."""
    return b"\xff\xfe" + f"Epoch 1\n{texts[0]}Epoch 2\n".replace("\n", "\r\n").encode("utf-16-le")


def colours(texts: list[str]) -> bytes:
    """A terminal's colours."""
    return "".join(f"\x1b[36m(Worker pid=12)\x1b[0m {line}\n" for line in texts[0].splitlines()).encode()


def from_a_page(texts: list[str]) -> bytes:
    """Copied from a page: blanks that do not break, arrows of typographers, a mark without width."""
    indented = texts[0].replace("\n  ", "\n\u00a0\u00a0").replace("->", "\u2192")
    return f"\u200b{indented}".encode()


def terminal_width(texts: list[str]) -> bytes:
    """Copied from a terminal of 80 columns."""
    lines = [line[at : at + 80] for line in texts[0].splitlines() for at in range(0, max(len(line), 1), 80)]
    return ("\n".join(lines) + "\n").encode()


def pytest_output(texts: list[str]) -> bytes:
    """What pytest shows of an error."""
    said = _each(f"AssertionError: {texts[0]}", lambda n: "E       ")
    return f"    def test_x():\n>       assert x\n{said}\ntest_x.py:3: AssertionError\n".encode()


def between_messages(texts: list[str]) -> bytes:
    """A file of HLO into which stderr was written, too."""
    lines = texts[0].splitlines()
    lines.insert(5, "W1122 10:00:00.000010   12345 cpu_compiler.cc:12] slow { compile")
    lines.insert(9, "2026-11-22 10:00:01.023456: I external/xla/xla/service/dump.cc:77] dumped")
    return ("\n".join(lines) + "\n").encode()


def grep(texts: list[str]) -> bytes:
    """What grep prints of several files, with lines around what matches."""
    return _each(texts[0], lambda n: f"dump/step.txt:{n}:" if n == 1 else f"dump/step.txt-{n}-").encode()


def blame(texts: list[str]) -> bytes:
    """What `git blame` prints."""
    return _each(texts[0], lambda n: f"8f0ac9d2 (A. Person 2026-11-22 10:00:00 +0000 {n:3d}) ").encode()


def ruled(texts: list[str]) -> bytes:
    """What `bat` prints."""
    rule = "\u2500" * 7 + "\u252c" + "\u2500" * 20
    lines = _each(texts[0], lambda n: f"{n:4d}   \u2502 ")
    return f"{rule}\n{lines}{rule}\n".encode()


def both_sides(texts: list[str]) -> bytes:
    """A unified diff of two programs with all of their lines."""
    before, after = (text.splitlines(keepends=True) for text in texts)
    return "".join(difflib.unified_diff(before, after, "a/x.hlo", "b/x.hlo", n=10**6)).encode()


def escaped_page(texts: list[str]) -> bytes:
    """A page without `<pre>`."""
    lines = "<br>\n".join(html.escape(line) for line in texts[0].splitlines())
    return f"<html><body><p>The program:</p><code>{lines}</code></body></html>".encode()


def escaped(texts: list[str]) -> bytes:
    """The source of a page, without its tags."""
    return html.escape(texts[0]).encode()


def page_of_rows(texts: list[str]) -> bytes:
    """A page with a row for each line, and its number."""
    rows = "".join(
        f'<tr><td data-line-number="{n}"></td><td class="blob-code">{html.escape(line)}</td></tr>\n'
        for n, line in enumerate(texts[0].splitlines(), start=1)
    )
    return f"<!DOCTYPE html>\n<table>{rows}</table>".encode()


def page_with_data(texts: list[str]) -> bytes:
    """A page that has its text in a script."""
    data = json.dumps({"payload": {"blob": {"rawLines": texts[0].splitlines()}}})
    return f'<html><script type="application/json">{data}</script></html>'.encode()


def test_report(texts: list[str]) -> bytes:
    """JUnit's XML, with its characters escaped."""
    said = html.escape(texts[0])
    return f'<?xml version="1.0"?><testsuite><system-out>{said}</system-out></testsuite>'.encode()


def character_data(texts: list[str]) -> bytes:
    """The same in a section of plain characters."""
    return f'<?xml version="1.0"?><testsuite><failure><![CDATA[{texts[0]}]]></failure></testsuite>'.encode()


def _csv(rows: list[list[object]]) -> bytes:
    table = io.StringIO()
    csv.writer(table).writerows(rows)
    return table.getvalue().encode()


def cell(texts: list[str]) -> bytes:
    """A table with the program in a cell."""
    return _csv([["run", "hlo"], [1, texts[0]], [2, "none"]])


def exported_log(texts: list[str]) -> bytes:
    """A table with a row for each line of a log."""
    return _csv([["timestamp", "message"], *([n, line] for n, line in enumerate(texts[0].splitlines()))])


def database(texts: list[str]) -> bytes:
    """A statement of SQL, in which a quotation mark is written twice."""
    return f"INSERT INTO programs VALUES (1, '{texts[0].replace(chr(39), 2 * chr(39))}');\n".encode()


def mail(texts: list[str]) -> bytes:
    """A mail, quoted-printable."""
    message = email.message.EmailMessage()
    message["Subject"] = "wrong"
    message.set_content(f"Hi,\n\n{texts[0]}\nBye\n", cte="quoted-printable")
    return message.as_bytes()


def attachment(texts: list[str]) -> bytes:
    """A mail with an attachment, in base64."""
    message = email.message.EmailMessage()
    message["Subject"] = "wrong"
    message.set_content("see the attachment\n")
    message.add_attachment(texts[0].encode(), "application", "octet-stream", filename="x.hlo")
    # A mail's own boundary is drawn by lot.
    message.set_boundary("boundary")
    return message.as_bytes()


def recording(texts: list[str]) -> bytes:
    """A recording of a terminal."""
    events = [json.dumps([n / 10, "o", f"{line}\r\n"]) for n, line in enumerate(texts[0].splitlines())]
    return "\n".join([json.dumps({"version": 2, "width": 80}), *events, ""]).encode()


def cloud(texts: list[str]) -> bytes:
    """A download of cloud logs: an array of entries."""
    return json.dumps([{"textPayload": line, "severity": "INFO"} for line in texts[0].splitlines()]).encode()


def keyed(texts: list[str]) -> bytes:
    """What loggers of Go write."""
    lines = texts[0].splitlines()
    return "".join(f"time=2026-11-22 level=info msg={json.dumps(line)}\n" for line in lines).encode()


def twice_compressed(texts: list[str]) -> bytes:
    """Compressed by its program, and again by who sent it."""
    return gzip.compress(gzip.compress(texts[0].encode(), mtime=0), mtime=0)


def _zip(name: str, content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


def _tar(name: str, content: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def archive_inside(texts: list[str]) -> bytes:
    """An archive in an archive."""
    return _zip("dumps.tar.gz", gzip.compress(_tar("step/x.hlo", texts[0].encode()), mtime=0))


def archive_of_documents(texts: list[str]) -> bytes:
    """An archive that has HLO in a report only."""
    return _zip("report.md", f"# Wrong\n\n```\n{texts[0]}```\n".encode())


def other_suffix(texts: list[str]) -> bytes:
    """An archive whose name does not say that it is one."""
    return _tar("x.hlo", texts[0].encode())


FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "repr_of_console.txt": repr_of_console,
    "repr_of_notebook.ipynb": repr_of_notebook,
    "list_of_lines.py": list_of_lines,
    "debugger.txt": debugger,
    "one_line.log": one_line,
    "powershell.txt": powershell,
    "colours.log": colours,
    "from_a_page.txt": from_a_page,
    "terminal_width.txt": terminal_width,
    "pytest_output.txt": pytest_output,
    "between_messages.log": between_messages,
    "grep.txt": grep,
    "blame.txt": blame,
    "ruled.txt": ruled,
    "both_sides.diff": both_sides,
    "escaped_page.html": escaped_page,
    "escaped.txt": escaped,
    "page_of_rows.html": page_of_rows,
    "page_with_data.html": page_with_data,
    "test_report.xml": test_report,
    "character_data.xml": character_data,
    "cell.csv": cell,
    "exported_log.csv": exported_log,
    "database.sql": database,
    "mail.eml": mail,
    "attachment.eml": attachment,
    "recording.cast": recording,
    "cloud.json": cloud,
    "keyed.log": keyed,
    "twice_compressed.gz": twice_compressed,
    "archive_inside.zip": archive_inside,
    "archive_of_documents.zip": archive_of_documents,
    "other_suffix.dat": other_suffix,
}


def write(folder: Path, sources: dict[str, Path]) -> list[str]:
    """Write what has no name, for its first line was not copied; returns the tables of `EXPECTED.toml`."""
    _, _, computations = sources["loop"].read_text(encoding="utf-8").partition("\n")
    path = folder / "without_header.loop.txt"
    path.write_text(f"Look at this:\n\n{computations.strip()}\n\nThanks\n", encoding="utf-8")
    return [f'[[file]]\nname = "{path.name}"\nform = "without_header"\nprograms = 1\n']
