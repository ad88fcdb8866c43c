"""Forms of HLO inside of documents and programs."""

from __future__ import annotations

import html
import json
from collections.abc import Callable


def _indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


def fences(texts: list[str]) -> bytes:
    """A report with a fence for each program."""
    blocks = [f"### Program {n}\n\n```hlo\n{text}```\n" for n, text in enumerate(texts)]
    return (
        "# A wrong result\n\nIt is `NaN`; don't ask why. The HloModule below:\n\n" + "\n".join(blocks)
    ).encode()


def issue(texts: list[str]) -> bytes:
    """An answer in a tracker: quoted, in a list, in tildes, with a shell's fence before it."""
    quoted = _indented(f"~~~\n{texts[0]}~~~\n", "> ")
    return f"> I ran\n> ```sh\n> python train.py\n> ```\n> and got\n>\n{quoted}\nSame here.\n".encode()


def listed(texts: list[str]) -> bytes:
    """A fence in a list, which is indented."""
    return ("1. Dump the program:\n\n" + _indented(f"```\n{texts[0]}```\n", "   ") + "\n2. Look.\n").encode()


def page(texts: list[str]) -> bytes:
    """A page of the web."""
    program = html.escape(texts[0])
    return f'<html><p>The program:</p>\n<pre class="hlo"><code>{program}</code></pre></html>'.encode()


def test_file(texts: list[str]) -> bytes:
    """A test of XLA's own, in C++."""
    cases = [
        f'TEST_F(FusionTest, Case{n}) {{\n  const char* const kModule = R"(\n{_indented(text, "    ")}  )";\n'
        f'  EXPECT_EQ(Run(kModule, "a\\"b"), \'"\');\n}}\n'
        for n, text in enumerate(texts)
    ]
    return (
        '#include "xla/tests/hlo_test_base.h"\n\nnamespace xla {\n\n// It isn\'t "quoted".\n'
        + "\n".join(cases)
        + "}\n"
    ).encode()


def delimited(texts: list[str]) -> bytes:
    """A raw string with a delimiter of its own, on the line of the call."""
    return f'auto module = ParseAndReturnVerifiedModule(R"hlo({texts[0]})hlo").value();\n'.encode()


def adjacent(texts: list[str]) -> bytes:
    """Ordinary literals in a row."""
    lines = "\n".join("    " + json.dumps(line + "\n") for line in texts[0].splitlines())
    return f"const std::string hlo_text =\n{lines};\n".encode()


def concatenated(texts: list[str]) -> bytes:
    """The same in Java."""
    lines = "\n      + ".join(json.dumps(line + "\n") for line in texts[0].splitlines())
    return f"class Hlo {{\n  static final String TEXT = {lines};\n}}\n".encode()


def long_string(texts: list[str]) -> bytes:
    """A string of Python."""
    return f'import jax\n\n# It doesn\'t matter.\nHLO = """\\\n{texts[0]}"""\nprint(len(HLO))\n'.encode()


def raw_long_string(texts: list[str]) -> bytes:
    """The same without escapes, within a call."""
    return f"module = parse(r'''{texts[0]}''')\n".encode()


def template(texts: list[str]) -> bytes:
    """A template literal."""
    escaped = texts[0].replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    return f"// It's shown in the viewer.\nexport const hlo = `{escaped}`;\n".encode()


def go_string(texts: list[str]) -> bytes:
    """A raw string of Go."""
    return f'package hlo\n\nimport "testing"\n\nconst text = `\n{texts[0]}`\n'.encode()


def rust_string(texts: list[str]) -> bytes:
    """A raw string of Rust."""
    return f'fn text() -> &\'static str {{\n    r#"{texts[0]}"#\n}}\n'.encode()


def notebook(texts: list[str]) -> bytes:
    """A notebook: in a cell of Markdown, or as what a cell printed."""
    source = f"Before:\n```\n{texts[0]}```\n".splitlines(keepends=True)
    cells: list[object] = [{"cell_type": "markdown", "metadata": {}, "source": source}]
    for text in texts[1:]:
        output = {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
        cells.append({"cell_type": "code", "metadata": {}, "source": ["print(hlo)"], "outputs": [output]})
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def printed(texts: list[str]) -> bytes:
    """A notebook that printed the program, with a prose line before it."""
    output = {"output_type": "execute_result", "data": {"text/plain": [f"compiled:\n{texts[0]}"]}}
    cell = {
        "cell_type": "code",
        "metadata": {},
        "source": "print(f.lower(x).as_text('hlo'))",
        "outputs": [output],
    }
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def document(texts: list[str]) -> bytes:
    """A JSON document of some tool."""
    return json.dumps({"name": "step", "hlo": texts[0], "flops": 3}, indent=2).encode()


def modules(texts: list[str]) -> bytes:
    """Several modules one after the other."""
    return "\n".join(texts).encode()


def headings(texts: list[str]) -> bytes:
    """Several, with prose between them."""
    return "".join(
        f"This is number {n}, the HloModule to look at.\n\n{text}\n" for n, text in enumerate(texts)
    ).encode()


def pasted(texts: list[str]) -> bytes:
    """A message: prose, the program, prose."""
    return f"Hi,\n\nthe optimized HLO is\n\n{texts[0]}\nIs that {{expected}}?\nThanks\n".encode()


FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "fences.md": fences,
    "issue.md": issue,
    "listed.md": listed,
    "page.html": page,
    "test_file.cc": test_file,
    "delimited.cc": delimited,
    "adjacent.cc": adjacent,
    "concatenated.java": concatenated,
    "long_string.py": long_string,
    "raw_long_string.py": raw_long_string,
    "template.ts": template,
    "go_string.go": go_string,
    "rust_string.rs": rust_string,
    "notebook.ipynb": notebook,
    "printed.ipynb": printed,
    "document.json": document,
    "modules.txt": modules,
    "headings.txt": headings,
    "pasted.txt": pasted,
}
