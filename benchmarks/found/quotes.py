"""Texts in which HLO is quoted, and files that hold such texts, drawn at random.

A quotation is a function `(random, text) -> text`, a document `(random, name, text) -> (name, text)`, an
archive `(random, name, content) -> (name, content)`.
"""

from __future__ import annotations

import base64
import bz2
import csv
import gzip
import html
import io
import json
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable
from email.message import EmailMessage

#: Makes a text that quotes another one.
Quote = Callable[[random.Random, str], str]
#: Makes a document of another one: name and text.
Document = Callable[[random.Random, str, str], tuple[str, str]]
#: Makes an archive of a file: name and content.
Archive = Callable[[random.Random, str, bytes], tuple[str, bytes]]

_PROSE = (
    "The loss is nan after 300 steps -> why?",
    "Here is what XLA makes of it:",
    "See the HloModule below, it is the one that fails.",
    "1. install jax 2. run the script 3. wait",
    "I think that the fusion is wrong (see `fusion.3`).",
    "Expected: 3.0, got: inf",
    "Thanks!",
    "cc @someone",
    "## Environment",
    "jaxlib 0.10.2, Ubuntu 24.04 {x86_64}",
    "It's the second output, isn't it?",
    'He said: "it worked yesterday".',
    "",
)


def prose(rng: random.Random, most: int = 3) -> str:
    """Some lines that people write around what they paste."""
    return "".join(f"{rng.choice(_PROSE)}\n" for _ in range(rng.randint(0, most)))


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def fence(rng: random.Random, text: str) -> str:
    """Markdown, within a list or a quotation as well, folded or not."""
    mark = rng.choice(("```", "```", "~~~", "````"))
    language = rng.choice(("", "", "hlo", "text", "mlir", " console", "{.txt}"))
    inner = f"{mark}{language}\n{_ended(text)}{mark}\n"
    if rng.random() < 0.4:
        inner = f"<details>\n<summary>HLO</summary>\n\n{inner}\n</details>\n"
    indent = rng.choice(("", "", "  ", "   ", "> ", "- "))
    if indent:
        rest = "  " if indent == "- " else indent
        lines = inner.splitlines()
        inner = "\n".join([indent + lines[0], *(rest + line for line in lines[1:])]) + "\n"
    return prose(rng) + inner + prose(rng)


def raw_string(rng: random.Random, text: str) -> str:
    """C++: one raw string, indented or not, with a delimiter that the text does not have."""
    delimiter = rng.choice(("", "hlo", "HLO", "_", "module")) if ')"' not in text else "hlo_text"
    line = rng.choice(("\n", "\n  ", ""))
    kind = rng.choice(("constexpr absl::string_view kHlo = ", "const char* const hlo_text = ", "ParseHlo("))
    close = ");" if kind.endswith("(") else ";"
    return (
        f'// "quoted" and it\'s odd\n#include "xla/test.h"\n\n'
        f'TEST_F(FooTest, Bar) {{\n  {kind}R"{delimiter}({line}{text.rstrip()}\n){delimiter}"{close}\n'
        f'  EXPECT_THAT(Run(hlo_text), IsOk());  // R"(never)"\n}}\n'
    )


def _c_escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")


def string_lines(rng: random.Random, text: str) -> str:
    """A literal for each line, in C, Java or Python."""
    glue = rng.choice(("\n  ", " +\n    ", " \\\n  "))
    lines = [f'"{_c_escaped(line)}\\n"' for line in text.splitlines()]
    return f"static const char *kText =\n  {glue.join(lines)};\nint main() {{ return run(kText); }}\n"


def long_string(rng: random.Random, text: str) -> str:
    """Python's strings of several lines, with or without `textwrap.dedent`."""
    quotes, kind = rng.choice(('"""', "'''")), rng.choice(("r", "", "f" if "{" not in text else "R"))
    inside = text if kind else text.replace("\\", "\\\\")
    indent = rng.choice(("", "    "))
    body = "\n".join(indent + line if line else line for line in inside.rstrip().splitlines())
    call = rng.choice(("HLO = {}\n", "HLO = textwrap.dedent({})\n", "check({}, tolerance=1e-5)\n"))
    first = rng.choice(("\n", "\\\n")) if kind == "" else "\n"
    return (
        f'"""A test of the compiler\'s output."""\nimport jax\n\n# it\'s the text\n'
        f"{call.format(f'{kind}{quotes}{first}{body}{chr(10)}{quotes}')}\nassert f(x) == 'done'\n"
    )


def json_field(rng: random.Random, text: str) -> str:
    """A document of JSON, deep or shallow, that has the text in one string or in a list of lines."""
    value = rng.choice((text, text.splitlines(keepends=True), text.splitlines()))
    key = rng.choice(("hlo", "text", "body", "stdout", "payload"))
    document: object = {"id": 7, key: value, "note": "it's -> fine"}
    for _ in range(rng.randint(0, 2)):
        document = rng.choice(({"data": document, "ok": True}, [1, document], {"items": [document]}))
    return json.dumps(document, indent=rng.choice((None, 2)), ensure_ascii=rng.random() < 0.5) + "\n"


def json_inside(rng: random.Random, text: str) -> str:
    """A string of JSON on one line amid others that are none."""
    return prose(rng) + f'  "hlo": {json.dumps(text)},\n' + prose(rng)


def template(rng: random.Random, text: str) -> str:
    """JavaScript's and Go's strings in backticks."""
    inside = text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    return f"// it's a test\nconst hlo = `{rng.choice(('', chr(10)))}{inside}`;\nrun(hlo);\n"


def page(rng: random.Random, text: str) -> str:
    """A page with the text in `<pre>`, `<code>` or rows, or with a colour for each word."""
    inside = html.escape(text, quote=rng.random() < 0.5)
    way = rng.randrange(4)
    if way == 0:
        inside = f"<pre>{inside}</pre>"
    elif way == 1:
        inside = f'<pre class="hl"><code>{inside}</code></pre>'
    elif way == 2:
        rows = "".join(f'<span class="line">{line}</span>\n' for line in inside.splitlines())
        inside = f"<div><pre>{rows}</pre></div>"
    else:
        inside = "<p>" + "<br>\n".join(inside.splitlines()) + "</p>"
    return (
        f"<!DOCTYPE html>\n<html><head><title>HLO -- report</title></head>\n<body><p>It's here:</p>\n"
        f"{inside}\n<p>&copy; us</p></body></html>\n"
    )


def block(rng: random.Random, text: str) -> str:
    """Blocks of light markup: YAML, reStructuredText, AsciiDoc, TeX, Org, Jira, forums, shells."""
    indented = "\n".join("    " + line if line else "" for line in text.rstrip().splitlines())
    body = _ended(text)
    inner = rng.choice(
        (
            f"hlo: |\n{indented}\nother: 3\n",
            f"hlo: |-\n{indented}\nlist:\n  - 1\n",
            f"What is compiled::\n\n{indented}\n\nAnd so on.\n",
            f".. code-block:: text\n\n{indented}\n\nAnd so on.\n",
            f"[source]\n----\n{body}----\n",
            f"\\begin{{verbatim}}\n{body}\\end{{verbatim}}\n",
            f"\\begin{{lstlisting}}[language=C]\n{body}\\end{{lstlisting}}\n",
            f"#+begin_src text\n{body}#+end_src\n",
            f"{{code:title=module.txt}}\n{body}{{code}}\n",
            f"{{noformat}}\n{body}{{noformat}}\n",
            f"[code]\n{body}[/code]\n",
            f"cat > module.hlo <<'EOF'\n{body}EOF\nhlotool run module.hlo\n",
            f"$ cat module.txt\n{body}$ echo done\ndone\n",
            f">>> print(compiled.as_text())\n{body}>>> \n",
            f"-----BEGIN HLO-----\n{body}-----END HLO-----\n",
            f"{80 * '='}\n{body}{80 * '='}\n",
        )
    )
    return prose(rng) + inner + prose(rng)


def table(rng: random.Random, text: str) -> str:
    """Comma-separated values with the text in a cell, or with a row for each line."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)))
    if rng.random() < 0.5:
        writer.writerows([["name", "hlo", "ok"], ["a, b", text, "yes"], ["c", "none", "no"]])
    else:
        writer.writerow(["time", "message"])
        writer.writerows([f"2026-11-22 10:00:{n % 60:02d}", line] for n, line in enumerate(text.splitlines()))
    return out.getvalue()


def records(rng: random.Random, text: str) -> str:
    """A log of JSON, a record for each line of the text, or one for all of it."""
    key = rng.choice(("message", "msg", "log"))
    said = text.splitlines() if rng.random() < 0.6 else [text]
    rows = [
        {"ts": 1795200000 + n, "level": "info", key: line} for n, line in enumerate(["start", *said, "end"])
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def added(rng: random.Random, text: str) -> str:
    """A change that adds, removes or keeps a file, as git shows it."""
    mark = rng.choice("+- ")
    lines = text.splitlines()
    ranges = {"+": f"-0,0 +1,{len(lines)}", "-": f"-1,{len(lines)} +0,0"}
    hunk = ranges.get(mark, f"-1,{len(lines)} +1,{len(lines)}")
    return (
        f"commit 1f3a\nAuthor: A B <a@b.c>\n\n    Add the module\n\ndiff --git a/m.txt b/m.txt\n"
        f"--- {'/dev/null' if mark == '+' else 'a/m.txt'}\n+++ {'/dev/null' if mark == '-' else 'b/m.txt'}\n"
        f"@@ {hunk} @@\n" + "".join(f"{mark}{line}\n" for line in lines)
    )


def representation(rng: random.Random, text: str) -> str:
    """What a console shows of a string that is not printed."""
    return f">>> compiled.as_text()\n{text!r}\n" if rng.random() < 0.5 else f"Out[3]: {text!r}\n"


QUOTES: dict[str, Quote] = {
    "fence": fence,
    "raw string": raw_string,
    "string lines": string_lines,
    "long string": long_string,
    "json field": json_field,
    "json inside": json_inside,
    "template": template,
    "page": page,
    "block": block,
    "table": table,
    "records": records,
    "added": added,
    "repr": representation,
}


def notebook(rng: random.Random, name: str, text: str) -> tuple[str, str]:
    """A notebook that has the text in a cell or in an output of one."""
    value = rng.choice((text, text.splitlines(keepends=True)))
    way = rng.randrange(3)
    code = {"cell_type": "code", "source": "print(text)", "metadata": {}, "execution_count": 1}
    cells: list[dict[str, object]] = [{"cell_type": "markdown", "source": "# It's mine", "metadata": {}}]
    if way == 0:
        cells.append({"cell_type": rng.choice(("markdown", "raw")), "source": value, "metadata": {}})
    elif way == 1:
        cells.append(code | {"outputs": [{"output_type": "stream", "name": "stdout", "text": value}]})
    else:
        data = {"text/plain": value}
        cells.append(code | {"outputs": [{"output_type": "execute_result", "data": data, "metadata": {}}]})
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return f"{name}.ipynb", json.dumps(document, indent=1)


def mail(rng: random.Random, name: str, text: str) -> tuple[str, str]:
    """A mail with the text in it or attached to it."""
    note = EmailMessage()
    note["From"], note["To"], note["Subject"] = "a@b.c", "d@e.f", "HLO"
    if rng.random() < 0.5:
        note.set_content("See the attachment.")
        note.add_attachment(text.encode(), maintype="application", subtype="octet-stream", filename=name)
    else:
        note.set_content(text, cte=rng.choice(("quoted-printable", "base64")))
    return f"{name}.eml", note.as_bytes().decode()


def data_url(rng: random.Random, name: str, text: str) -> tuple[str, str]:
    """A page that offers the text for download, and shows it."""
    link = f'<a href="data:text/plain;base64,{base64.b64encode(text.encode()).decode()}">{name}</a>'
    return f"{name}.html", f"<html>{link}<pre>{html.escape(text)}</pre></html>"


DOCUMENTS: dict[str, Document] = {"notebook": notebook, "mail": mail, "page with a link": data_url}


def zipped(rng: random.Random, name: str, content: bytes) -> tuple[str, bytes]:
    """A zip with other files beside it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
        archive.writestr("report/README", "nothing of interest\n")
        archive.writestr(f"report/{name}", content)
    return f"{name}.zip", out.getvalue()


def tarred(rng: random.Random, name: str, content: bytes) -> tuple[str, bytes]:
    """A tar, compressed or not."""
    mode = rng.choice(("w:gz", "w:bz2", "w:xz", "w:"))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        info = tarfile.TarInfo(f"report/{name}")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return f"{name}.tar{mode[1:].replace(':', '.').rstrip('.')}", out.getvalue()


def compressed(rng: random.Random, name: str, content: bytes) -> tuple[str, bytes]:
    """A compressed file."""
    suffix, pack = rng.choice((("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)))
    return f"{name}.{suffix}", pack(content)


ARCHIVES: dict[str, Archive] = {"zip": zipped, "tar": tarred, "compressed": compressed}
