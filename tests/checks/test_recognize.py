"""Each entry of the catalogue is recognised in a longer log: real, quoted, and made of its template."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from support.budget import processor_budget

from hlotool.checks.explain.entries import FIELDS, Entry, catalogue, find_entry
from hlotool.checks.explain.messages import explain_text, only_reports
from hlotool.checks.explain.recognition import recognize
from hlotool.interface.cli.main import build_parser

FOLDER = Path(__file__).parent
LOGS = FOLDER / "logs"

#: What each log, captured from TensorFlow 2.21 and JAX 0.10.2, is about.
EXPECTED = {
    "jax_cache_miss": "jax-recompiling",
    "jax_custom_call_missing": "xla-custom-call-missing",
    "jax_deadlock": "xla-collective-stuck",
    "jax_deleted_array": "jax-deleted-array",
    "jax_donated_unused": "jax-donated-unused",
    "jax_nan": "jax-nan",
    "jax_recompiling": "jax-recompiling",
    "jax_unknown_flag": "xla-unknown-flag",
    "tf_assert_dropped": "tf-assert-dropped",
    "tf_constant_argument": "tf-constant-argument",
    "tf_recursion": "tf-recursion",
    "tf_retracing": "tf-retracing",
    "tf_rng_seed": "tf-rng-seed",
    "tf_strings": "tf-unsupported-op",
    "tf_tensorarray_dynamic": "tf-tensorarray-dynamic",
    "tf_tensorlist_boundary": "tf-tensorlist-boundary",
    "tf_unsupported_op": "tf-unsupported-op",
    "tf_variable_device": "tf-variable-device",
    "tf_variant_capture": "tf-tensorlist-boundary",
    "tf_while_bound": "tf-while-bound",
}

SAMPLES = {
    "instruction": "%fusion.12",
    "number": "17",
    "size": "49.34G",
    "shape": "f32[8,128]{1,0}",
    "module": "jit_step",
    "name": "while/Sum",
    "device": "/job:localhost/device:CPU:1",
    "platform": "Host",
    "target": "my_target",
    "op": "tf.random.uniform",
    "numeric": "T=DT_INT8, Tidx=DT_INT32",
    "mlir": "stablehlo.dot_general",
    "word": "input",
    "file": "xla/service/hlo_verifier.cc:12",
    "before": "RuntimeError: ",
    "error": "E1121 12:00:00.000000 1 ",
    "condition": "shape->IsTuple() == true",
    "start": "",
    "text": "some words (and more)",
}

BEFORE = "I1121 12:00:00.000000 1 service.cc:1] XLA service initialized\n2026-11-21 step 3 of 10, loss 0.25\n"
AFTER = '\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n'


def ids(text: str) -> list[str]:
    return [found.entry.id for found in recognize(text)]


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log")))
def test_a_real_log_is_understood(name: str) -> None:
    assert ids((LOGS / f"{name}.log").read_text(encoding="utf-8")) == [EXPECTED[name]]


@pytest.mark.parametrize(
    "message", tomllib.loads((FOLDER / "documented.toml").read_text(encoding="utf-8"))["message"]
)
def test_a_documented_message_is_understood(message: dict[str, str]) -> None:
    assert ids(BEFORE + message["text"] + AFTER) == [message["id"]]


def rendered(template: str) -> str:
    return re.sub(r"\{([a-z]+)\d*\}", lambda match: SAMPLES[match[1]], template)


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.id)
def test_every_template_is_recognised_inside_a_log(entry: Entry) -> None:
    for template in entry.messages:
        [found] = recognize(BEFORE + rendered(template) + AFTER)
        assert found.entry is entry
        assert found.line == 3


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.id)
def test_folded_messages_are_recognised(entry: Entry) -> None:
    template = max((m for m in entry.messages if "{text" not in m), key=len, default="")
    words = rendered(template).split(" ")
    if len(words) > 6:
        assert entry.id in ids(" ".join(words[:5]) + "\n" + " ".join(words[5:]))


def test_a_healthy_log_has_nothing() -> None:
    assert ids(BEFORE + AFTER + "E1200 12:00:00.000000 17 file.cc:3] all is well\n") == []


def test_the_code_alone_is_enough() -> None:
    text = "E1200: CompileTimeHostOffloadOutputLocationMismatch: in some new wording"
    assert ids(text) == ["E1200"]
    assert ids("details: https://openxla.org/xla/errors/error_1200") == ["E1200"]


def test_a_class_of_errors_counts_only_without_anything_better() -> None:
    assert ids("INTERNAL: something odd") == ["E0012"]
    assert ids("INTERNAL: RET_CHECK failure (xla/a.cc:3) x == y") == ["xla-ret-check"]


@pytest.mark.parametrize(
    "message",
    [
        "Check failed: ShapeUtil::Compatible(new_root_instruction->shape(), root_instruction_->shape()) "
        "(f32[8,128]{1,0:T(8,128)}) is incompatible with (f32[128,8]{1,0:T(8,128)})",
        "INTERNAL: RET_CHECK failure (third_party/tensorflow/compiler/xla/hlo/ir/hlo_computation.cc:1761) "
        "ShapeUtil::Compatible(old_instruction->shape(), new_instruction->shape()) "
        '"get-tuple-element" (f32[8,128]{1,0:T(8,128)}) vs "copy.2" (f32[128,8]{1,0:T(8,128)})',
        "INTERNAL: during context [post-optimization]: %bitcast.1 = f32[8,128]{1,0:T(8,128)} "
        "bitcast(%copy-done): Bitcast cannot have different shape sizes of output (4096) and operand (65536) "
        "(f32[8,128]{1,0:T(8,128)}) (f32[8,128]{0,1:T(8,128)})",
        "INTERNAL: during context [post-optimization]: Expected instruction to have shape equal to "
        "f32[8,128]{0,1:T(8,128)}, actual shape is f32[128,8]{1,0:T(8,128)}: %copy.2 = "
        "f32[128,8]{1,0:T(8,128)} copy(%copy-done)",
    ],
)
def test_a_wrong_shape_on_the_host_has_four_wordings(message: str) -> None:
    """Of libtpu 0.0.42; others have some of these words, too."""
    assert [found.entry.id for found in recognize(message)] == ["tpu-transpose-on-host"]


def test_a_repeated_message_is_one_entry_with_all_its_lines() -> None:
    text = "INTERNAL: one\nfine\nINTERNAL: two\n"
    [found] = recognize(text)
    assert (found.lines, found.excerpt) == ([1, 3], "INTERNAL: one")


def test_the_named_instruction_is_known() -> None:
    text = 'Found an instruction ("%tuple.64") which does device compute in host memory space. '
    [found] = recognize(text + "Converting into host compute.")
    assert found.instructions == ["tuple.64"]


@pytest.mark.parametrize("name", ["E1200", "e1200", "1200", "CompileTimeHostOffloadOutputLocationMismatch"])
def test_an_entry_is_found_by_any_of_its_names(name: str) -> None:
    entry = find_entry(name)
    assert entry is not None
    assert entry.id == "E1200"


def test_no_entry_has_an_empty_name() -> None:
    assert find_entry("") is None
    assert find_entry("no such thing") is None


def test_the_catalogue_is_consistent() -> None:
    entries = catalogue()
    assert len({entry.id for entry in entries}) == len(entries)
    for entry in entries:
        assert entry.messages
        assert entry.remedy
        assert entry.cause.endswith((".", "e")), entry.id
        for field in re.findall(r"\{([a-z]+)\d*\}", " ".join(entry.messages)):
            assert field in FIELDS, entry.id


def test_every_command_that_a_remedy_names_exists() -> None:
    known = set(build_parser()._subparsers._group_actions[0].choices)  # type: ignore[union-attr,arg-type]
    for entry in catalogue():
        for command in re.findall(r"hlotool (\w+)", " ".join([entry.cause, *entry.remedy])):
            assert command in known, f"{entry.id}: {command}"


def test_a_long_word_is_looked_at_once() -> None:
    """From every place within it to its end it would take a minute of processor time."""
    anchors = [template.anchor for entry in catalogue() for template in entry.templates()]
    with processor_budget(5):
        assert recognize("\n".join([*anchors, "x" * 100_000]))


def test_notes_come_behind_what_ends_the_program() -> None:
    text = (
        "Unable to initialize backend 'rocm': NOT_FOUND: no such platform\n"
        "ValueError: cannot reshape array of shape (8,) (size 8) into shape (3,) (size 3)\n"
    )
    assert [match.id for match in explain_text(text)] == ["jax-shapes", "jax-backend-absent"]


def test_a_consequence_is_told_only_alone() -> None:
    assert ids("Segmentation fault (core dumped)") == ["process-died"]
    assert ids("CUDA_ERROR_OUT_OF_MEMORY: out of memory\nSegmentation fault (core dumped)") == [
        "xla-out-of-memory-gpu"
    ]


def test_a_class_of_errors_is_explained_by_the_lines_behind_it() -> None:
    assert ids("INTERNAL: compilation failed:\n\nptxas fatal : unknown target") == ["xla-ptxas"]
    assert ids("INTERNAL: compilation failed\na\nb\nc\nptxas fatal : unknown target") == [
        "E0012",
        "xla-ptxas",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "E0000 00:00:1700000000.123456    4711 file.cc:12] {}",
        "2024-02-03 04:05:06.123456: E external/xla/xla/service/file.cc:12] {}",
        "F1030 15:35:52.295284     614 file.cc:41] Non-OK-status: status\nStatus: {}",
        "jaxlib.xla_extension.XlaRuntimeError: {}",
        "[rank3]: RuntimeError: Bad StatusOr access: {}",
        "(Worker pid=7) ERROR 06-17 19:23:59 [core.py:5] ValueError: {}",
        "\x1b[31mE   jax.errors.JaxRuntimeError: {}\x1b[0m",
    ],
)
def test_a_message_is_known_behind_what_loggers_put_before_it(line: str) -> None:
    assert ids(line.format("INTERNAL: ptxas exited with non-zero error code 255")) == ["xla-ptxas"]


def test_curly_quotation_marks_are_straight_ones() -> None:
    assert ids("Assertion ‘index < size’ failed.") == ["compiler-assertion"]


def test_one_error_is_found_in_a_long_log() -> None:
    noise = [
        line
        for step in range(70)
        for line in (
            f"I0000 00:00:17000000{step:02}.5 71 service.cc:148] XLA service initialized, step {step}",
            f"2026-01-02 03:04:{step % 60:02}.7: W external/xla/xla/file.cc:{step}] slow, {step} ms",
            f'  File "/usr/lib/python3/site-packages/ray/worker.py", line {step}, in run',
        )
    ]
    error = "\x1b[36m(train pid=9)\x1b[0m jax.errors.TracerBoolConversionError: Attempted boolean conversion"
    [found] = recognize("\n".join([*noise[:140], error, *noise[140:]]))
    assert (found.entry.id, found.line) == ("jax-tracer-value", 141)


@pytest.mark.parametrize(
    "line",
    [
        "I0000 00:00:1700000000.1  93 pjrt_api.cc:146] a plugin was found",
        "2024-02-03 04:05:06.1: W tensorflow/core/file.cc:9] something is slow",
        "I0106 20:23:28.5 1401 xla_bridge.py:35] looking for a device\nW0106 20:23:28.5 1401 a.cc:1] none",
    ],
)
def test_lines_that_only_report_are_said_to_be_that(line: str) -> None:
    assert recognize(line) == []
    assert [match.id for match in only_reports(line)] == ["log-report"]


@pytest.mark.parametrize(
    "text", ["", "E0000 00:00:1700000000.1  93 a.cc:1] odd", "I1121 12:00:00.0 1 a.cc:1] x\nValueError: y"]
)
def test_an_unknown_error_is_no_report(text: str) -> None:
    assert only_reports(text) == []
