"""HLO inside of other texts: what counts as wrapped, what ends it, and texts made to take long."""

from __future__ import annotations

import html
import json

import pytest
from support.budget import processor_budget
from support.dumps import Write, module_text

from hlotool.errors import DumpError, HlotoolError
from hlotool.sources.content import is_profile, programs_in, sniff
from hlotool.sources.directory import open_dump
from hlotool.sources.file_names import Format, Kind
from hlotool.sources.sections import is_mended, is_plain, mended
from hlotool.sources.stages import read_stage
from hlotool.sources.wrapped import both_sides, wrapped_texts

ONE, TWO = module_text("jit_f"), module_text("jit_g", "abs")


def texts(content: str) -> list[str]:
    return [one.content.decode().strip() for one in wrapped_texts(content.encode())]


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"// a comment\n\n{ONE}",
        f"/* one */ {ONE}",
        f"\ufeff{ONE}",
        "%f (p: f32[]) -> f32[] {\n}",
        "ENTRY e {",
    ],
)
def test_hlo_alone_is_not_searched(text: str) -> None:
    assert is_plain(text.encode())


@pytest.mark.parametrize(
    "text", ["# Notes\n", "namespace {\n", "const x = {", "fn main() -> i32 {", "try {", "```\n"]
)
def test_other_texts_are(text: str) -> None:
    assert not is_plain(text.encode())


def test_prose_about_modules_is_none() -> None:
    assert texts("The HloModule text is below.\nSee HloModule jit_f\nand the ENTRY point.\n") == []


def test_a_program_ends_where_prose_begins(write: Write) -> None:
    root = write(("a.txt", ONE + "\nThat {is} all.\nThanks"))
    [module] = open_dump(root / "a.txt").modules
    assert module.stages[0].source.read_text().strip() == ONE.strip()
    assert str(module.stages[0].source) == str(root / "a.txt")


def test_comments_of_a_source_end_where_prose_begins() -> None:
    """What follows the entry has braces of its own."""
    source = "".join(f"//\t{line}\n" for line in ONE.splitlines())
    after = "//\n// In JAX it is written as:\n//\n//\tdef f(x):\n\nfunc Test() {\n\tif x {\n\t\tf()\n\t}\n}\n"
    assert texts(source + after) == [ONE.strip()]


def test_a_program_twice_is_one() -> None:
    assert texts(f"```\n{ONE}```\nagain\n```\n{ONE}```\n") == [ONE.strip()]


def test_a_shorter_fence_closes_nothing() -> None:
    assert texts(f"````\n{ONE}```\n````\n")[0].startswith(ONE.strip())


def test_comments_of_the_language_hide_quotes() -> None:
    """An apostrophe or a quotation mark in a comment opens nothing."""
    code = f'// it\'s 5" wide\n/* " */\nauto a = R"({ONE})";\nchar c = \'"\';\nauto b = R"x({TWO})x";\n'
    assert texts(code) == [ONE.strip(), TWO.strip()]


def test_the_lines_of_two_streams_are_told_apart() -> None:
    first, second = ONE.splitlines(), TWO.splitlines()
    mixed = [f"{rank}: {line}" for pair in zip(first, second, strict=True) for rank, line in zip("01", pair)]
    found = [[line for line in text.splitlines() if line] for text in texts("\n".join(mixed))]
    assert found == [[line for line in text.splitlines() if line] for text in (ONE, TWO)]


def test_files_of_a_log_with_prefixes_make_a_dump(write: Write) -> None:
    blocks = "".join(
        f"*** Begin module_0001.jit_f.{stage}.txt ***\n{ONE}\n*** End module_0001.jit_f.{stage}.txt ***\n"
        for stage in ("before_optimizations", "cpu_after_optimizations")
    )
    log = "".join(f"[rank0]: {line}\n" for line in blocks.splitlines())
    [module] = open_dump(write(("train.log", log)) / "train.log").modules
    assert module.pair is not None


def test_json_has_no_lines_and_any_depth(write: Write) -> None:
    assert texts('{"a": [[{"b": "x"}, ' + f'"{ONE}"'.replace("\n", "\\n") + "]]}") == [ONE.strip()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x0a\x11\x0a\x0ba b (c) & d\x1a\x02\x08\x01", (Kind.PLAIN, Format.PROTO)),
        (b"\x0a\x09\x0a\x03\xc3\xa9x\x1a\x02\x08\x01", (Kind.PLAIN, Format.PROTO)),
        (b"\x0a\x03\x0a\x01\xff", (Kind.UNKNOWN, Format.OTHER)),
        (b"ML\xefR\x0dStableHLO_v1.0\0", (Kind.PLAIN, Format.MLIR)),
        (b"module @jit_f {\n  func.func public @main() {\n", (Kind.PLAIN, Format.MLIR)),
        (b"module load cuda\n", (Kind.UNKNOWN, Format.OTHER)),
    ],
)
def test_contents_tell(content: bytes, expected: tuple[Kind, Format]) -> None:
    assert sniff(content) == expected


def test_a_damaged_profile_is_an_error_of_its_reader() -> None:
    """Fields as XSpace has them, cut short."""
    whole = b"\x0a\x12\x12\x0e/host:metadata\x22\x00"
    assert is_profile(whole)
    assert programs_in(whole) == []
    with pytest.raises(ValueError, match="ends within"):
        programs_in(whole[:-3])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (ONE.encode("utf-16"), ONE),
        (ONE.encode("utf-16-be"), ONE),
        (ONE.encode("utf-32"), ONE),
        (b"\xef\xbb\xbf" + ONE.replace("\n", "\r\n").encode(), ONE),
        (ONE.replace("parameter", "\x1b[1;32mparameter\x1b[0m").encode(), ONE),
        (f"\x1b]0;a title\x07{ONE}".encode(), ONE),
        (ONE.replace(" ", "\u00a0").encode(), ONE),
        (ONE.replace("->", "\u2192").replace("f32", "\u200bf32").encode(), ONE),
    ],
)
def test_what_happened_on_the_way_is_undone(content: bytes, expected: str) -> None:
    assert mended(content) == expected


def test_strings_stay_as_they_are() -> None:
    """Names are the user's; quotation marks are replaced only where there are no others."""
    text = 'HloModule a\n  x = f32[] parameter(0), metadata={op_name="a\u00a0\u201cb\u201d \u2192 c"}\n'
    assert mended(text.encode()) == text
    assert not is_mended(text.encode())
    assert mended("name=\u201ca\u201d".encode()) == 'name="a"'


def test_lines_cut_at_the_width_of_a_terminal_are_joined() -> None:
    """Where they are, so that errors name the line of the file.

    A text with a longer line, or with a whole header, was not cut.
    """
    lines = ["HloModule " + "a" * 50, "b" * 60, "c" * 60, "d = f32[] parameter(0)", "}"]
    joined = mended("\n".join(lines).encode())
    assert joined == "".join(lines[:4]) + "\n" * 4 + "}"
    for others in ([*lines, "e" * 61], [lines[0], "", *lines[1:]]):
        assert mended("\n".join(others).encode()) == "\n".join(others)


def test_a_list_of_programs_is_no_list_of_lines() -> None:
    assert texts(repr([ONE, TWO])) == [ONE.strip(), TWO.strip()]
    assert texts(repr(ONE.splitlines())) == [ONE.strip()]


def test_a_mail_with_characters_that_its_encoding_lacks() -> None:
    mail = f"From: a\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n\u4454\n{ONE}"
    [found] = wrapped_texts(mail.encode() + b"\n\xff")
    assert found.content.decode().strip() == ONE.strip()


def test_a_diff_of_parts_has_no_program() -> None:
    """Only whole files are read: a hunk that begins further down lacks what stands before."""
    lines = "".join(f" {line}\n" for line in ONE.splitlines())
    count = len(ONE.splitlines())
    assert texts(f"--- a\n+++ b\n@@ -1,{count} +1,{count + 1} @@\n+// new\n{lines}")[-1].endswith(ONE.strip())
    assert list(both_sides(f"--- a\n+++ b\n@@ -7,{count} +7,{count} @@\n{lines}")) == []


def test_a_folder_without_hlo_is_searched_for_documents(write: Write) -> None:
    root = write(("notes/report.md", f"# Wrong\n\n```\n{ONE}```\n"), ("data.bin", "\0\1"))
    [module] = open_dump(root).modules
    assert module.title == "notes/report.md"


def test_documents_count_beside_hlo_that_is_no_dump(write: Write) -> None:
    """As they do where they are named, but for what is not whole, and for a program that they speak of."""
    begun = TWO[: len(TWO) // 2]
    root = write(
        ("a.hlo", TWO),
        ("report.md", f"```\n{ONE}```\nand, as in a.hlo:\n```\n{TWO}```\n"),
        ("a.md", f"```\n{TWO}```\n"),
        ("sub/copy.md", f"```\n{TWO}```\n"),
        ("cut.md", f"```\n{begun}```\n"),
        ("plain.md", "what a HloModule is, and an ENTRY\n"),
        ("ours.json", json.dumps({"schema": "hlotool.run/1", "text": ONE}, separators=(",", ":"))),
        ("large.md", f"```\n{ONE}```\n" + "x" * (1 << 20)),
        ("photo.png", "\0\1\2HloModule"),
    )
    dump = open_dump(root)
    assert [module.title for module in dump.modules] == ["a.hlo", "report.md#1", "sub/copy.md"]
    assert [note.rpartition("/")[2] for note in dump.notes] == [
        "cut.md: quotes HLO that is not whole; name it to see why"
    ]


@pytest.mark.parametrize("beside", ["module_0001.f.before_optimizations.txt", "repro.toml"])
def test_documents_do_not_count_in_a_dump_or_bundle(write: Write, beside: str) -> None:
    root = write(("report.md", f"```\n{ONE}```\n"), ("a.hlo", TWO), (beside, TWO))
    assert "report.md" not in [module.title for module in open_dump(root).modules]


def test_what_promises_hlo_and_cannot_be_read_is_a_program_of_a_folder(write: Write) -> None:
    root = write(("a.hlo", TWO), ("saved.pb", "\x78\x01\x72\x03abc"), ("note.pb", "no proto at all"))
    (root / "empty.hlo").mkdir()
    (root / "other").mkdir()
    (root / "gone.hlo").symlink_to("nowhere")
    (root / "gone.md").symlink_to("nowhere")
    (root / "noise.pb").write_bytes(b"\xff\x00\xfe" * 30)
    dump = open_dump(root)
    assert [module.title for module in dump.modules] == ["a.hlo", "empty.hlo", "gone.hlo", "noise.pb"]
    wrong = {}
    for module in dump.modules[1:]:
        with pytest.raises(HlotoolError) as caught:
            read_stage(module.stages[0])
        wrong[module.title] = str(caught.value).rpartition("/")[2]
    assert wrong["empty.hlo"] == "empty.hlo: an empty folder"
    assert wrong["gone.hlo"] == "gone.hlo: not a regular file"
    assert [note.rpartition("/")[2] for note in dump.notes] == ["gone.md: passed over: not a regular file"]


def test_stablehlo_counts_beside_hlo_that_is_no_dump(write: Write) -> None:
    program = "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n  return %a : tensor<f32>\n}\n"
    plain = write(("one/a.hlo", TWO), ("one/b.mlir", program)) / "one"
    assert [module.title for module in open_dump(plain).modules] == ["a.hlo", "b.mlir"]
    dump = write(("two/module_0001.f.before_optimizations.txt", TWO), ("two/f.mlir", program)) / "two"
    assert [module.title for module in open_dump(dump).modules] == ["module_0001.f"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }", r"a jaxpr; its HLO is jax\.jit"),
        ("; ModuleID = '__compute_module'\n", "LLVM IR"),
        ("//\n.version 8.0\n.target sm_90\n", "PTX"),
        ("digraph G {\n", "a graph for drawing"),
        ("node {\n  name: 'x'\n", "a graph of TensorFlow"),
        ("IR {\n  %0 = f32[] prim::Constant()\n}\n", r"_get_xla_tensors_hlo"),
        ("\x28\udcb5\x2f\udcfd more", "compressed by zstd"),
        ("", "it is empty"),
        ("module @m {\n  tt.func @f() {\n", "MLIR, but no StableHLO"),
        ("func (b *Builder) Add(x int) {\n}\n", "neither HLO"),
        ('text = f"""\nmodule @m {{\n  %0 = stablehlo.add %a, {b}\n', "neither HLO"),
        ("import jax\n", "a Python program"),
        ('write("ENTRY {}")', "neither HLO"),
        ("once upon a time", "neither HLO text nor an XLA proto"),
    ],
)
def test_what_is_no_hlo_says_what_it_is(write: Write, content: str, what: str) -> None:
    path = write() / "file"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DumpError, match=f"not HLO: .*{what}"):
        open_dump(path)


def test_a_document_about_a_python_program_is_none(write: Write) -> None:
    path = write(("README.md", "# Use\n```python\nimport jax\n```\n")) / "README.md"
    with pytest.raises(DumpError, match="neither HLO text nor an XLA proto"):
        open_dump(path)


N = 50_000
HOSTILE = {
    "raw strings that never close": "".join(f'R"a{n}(' for n in range(N // 8)),
    "long strings that never close": '"""\\' * (N // 4),
    "quotation marks": '"' * N,
    "backticks": "`a" * (N // 2),
    "comments that never close": "/*" * (N // 2),
    "ocaml strings that never close": "{a|" * (N // 3),
    "rust strings that never close": 'r#"' * (N // 3),
    "fences": "```\nENTRY {\n" * (N // 12),
    "headers": "p HloModule a\n  x = f32[] parameter(0)\n" * (N // 40),
    "digits before a header": "1" * N + " HloModule a\n ENTRY e",
    "times before a header": "1:11:11" * (N // 7) + " HloModule a\n ENTRY e",
    "deep JSON": "[" * N,
    "braces": "p\nHloModule a\n  y = f32[] z\n" + "}x\n" * (N // 3),
    "blanks": " " * N,
    "quotes before headers": "'HloModule " * (N // 11),
    "doubled quotes": "'HloModule a\n" + "''" * (N // 2),
    "rows of literals": "'a', " * (N // 5),
    "apostrophes": "' " * (N // 2),
    "escaped lines": "p " + "HloModule a" * (N // 22) + "\\n" * (N // 4),
    "tags": "<a" * (N // 2),
    "declarations": "<!" * (N // 2),
    "scripts": "<script>" * (N // 8),
    "character data": "<" + "<![CDATA[" * (N // 9),
    "a table": 'a,"b' * (N // 4),
    "messages": "msg=" * (N // 4),
    "diffs": "@@ -1 +1 @@\n" * (N // 13),
    "a mail": "From: a\nContent-Transfer-Encoding: base64\n" + "Content-Type: multipart/x\n\n" * (N // 28),
    "control sequences": "\x1b]" * (N // 2),
    "columns": ("HloModule " + "a" * 40 + "\n") * (N // 51),
    "blanks behind a module of MLIR": "p module @" + " " * N,
    "modules of MLIR": "p module {\n  func.func\n" * (N // 23),
    "computations": "x (a) -> b {\n" * (N // 13),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_made_to_take_long_do_not(name: str) -> None:
    content = (HOSTILE[name] + "\nENTRY").encode()
    with processor_budget(2):
        found = wrapped_texts(content)
    assert sum(len(one.content) for one in found) < 100 * len(content)


def in_front(mark: str, text: str) -> str:
    """`text` with a mark before each line; `{n}` stands for its number."""
    return "".join(f"{mark.format(n=n)}{line}\n" for n, line in enumerate(text.splitlines(), start=98))


SOURCE = f'TEST(A, b) {{\n  // it\'s odd\n  Run(R"hlo(\n{ONE})hlo");\n  Run(R"({TWO})");\n}}\n'


@pytest.mark.parametrize(
    "mark",
    [
        "{n:6d}\t",
        "{n:4d} | ",
        "a/test.cc:{n}:",
        "> ",
        "+",
        "// ",
        "2026-11-22T10:00:{n}.5Z INFO [rank3] ",
        "[  965.48{n}] (info) stdout: ",
        "Nov 22 10:00:{n} host-3 trainer[17]: ",
    ],
)
def test_a_source_file_behind_a_margin(mark: str) -> None:
    """Quotations are looked for when what stands in front of every line is gone."""
    assert texts("A log:\n\n" + in_front(mark, SOURCE) + "\nThe end\n") == [ONE.strip(), TWO.strip()]


def test_lines_of_other_processes_do_not_stand_in_a_source_file() -> None:
    lines = in_front("[rank3] ", SOURCE).splitlines()
    lines.insert(6, "[rank5] took 0.3 s {")
    lines.insert(4, "[rank5] HLO = none")
    found = [[line for line in text.splitlines() if line] for text in texts("\n".join(lines))]
    assert found == [[line for line in text.splitlines() if line] for text in (ONE, TWO)]


def test_a_time_may_stand_still_for_some_lines() -> None:
    lines = [
        f"[node2:0] a.py:88 {1795104001400 + n // 4}> {line}" for n, line in enumerate(SOURCE.splitlines())
    ]
    assert texts("\n".join(lines)) == [ONE.strip(), TWO.strip()]


def test_a_fence_in_a_page_in_a_log() -> None:
    page = f"<html>\n<pre>\n{html.escape(f'```{chr(10)}{ONE}```')}\n</pre></html>"
    assert texts(in_front("10:00:{n} | ", page)) == [ONE.strip()]


def test_escapes_may_hide_what_a_terminal_wrote() -> None:
    coloured = ONE.replace("ENTRY", "\x1b[31mENTRY\x1b[0m")
    assert texts(json.dumps({"stdout": coloured})) == [ONE.strip()]


@pytest.mark.parametrize("prefix", ["\ufeff", "  ", "\ufeff  "])
def test_headers_behind_blanks_begin_programs(write: Write, prefix: str) -> None:
    text = prefix + (ONE + TWO).replace("\n", "\n  ")
    [first, second] = open_dump(write(("a.txt", text)) / "a.txt").modules
    assert [owner.name for owner in (first, second)] == ["jit_f", "jit_g"]


@pytest.mark.parametrize(
    "above",
    ["See the HloModule below, it is the one that fails.", "// CHECK: HloModule jit_f, is_scheduled=true"],
)
def test_a_header_in_a_sentence_or_a_comment_is_none(above: str) -> None:
    assert texts(f"Hello,\n{above}\n\n{ONE}") == [ONE.strip()]


def test_modules_in_a_message_of_several_lines() -> None:
    """The prefix stands before the first line of the first one alone."""
    assert texts(f"INFO:xla: compiling\nINFO:xla: {ONE}{TWO}INFO:xla: done\n") == [ONE.strip(), TWO.strip()]


def test_numbers_of_tables_are_no_numbers_of_lines() -> None:
    tables = ONE.replace("\n", '\n\nFileNames\n1 "a.py"\n2 "b.py"\n\n', 1)
    assert texts("x\n     1\t" + tables) == [tables.strip()]


def test_a_first_line_with_angle_brackets_is_no_page() -> None:
    named = ONE.replace("\n", '\n\nFunctionNames\n1 "<module>"\n\n', 1)
    assert texts(f"<6> start\n<6> {named}") == [named.strip()]


def test_strings_of_ocaml() -> None:
    text = f"let one = {{|\n{ONE}|}}\nlet two = {{hlo|{TWO}|}} is no end |hlo}}\n"
    assert texts(text) == [ONE.strip(), TWO.strip()]


def test_escaped_quotation_marks_close_nothing() -> None:
    """A literal in C for each of the records of a log: what all of these have in front is no margin."""
    records = [
        json.dumps({"ts": 100 + n, "level": "info", "msg": line}) for n, line in enumerate(ONE.splitlines())
    ]
    assert texts("char *text =\n" + "".join(f"  {json.dumps(one + chr(10))}\n" for one in records)) == [
        ONE.strip()
    ]


def test_records_of_a_log_amid_other_lines() -> None:
    records = "".join(json.dumps({"ts": n, "msg": line}) + "\n" for n, line in enumerate(ONE.splitlines()))
    assert texts(f"$ cat log\n{records}$ exit\n") == [ONE.strip()]
