"""File names as JAX, TensorFlow, torch-xla and the CPU, GPU and TPU compilers write them."""

from __future__ import annotations

from typing import Any

import pytest

from hlotool.sources.file_names import Format, Kind, parse_folder, parse_name

TF = (
    "a_inference_train_mnist_76__XlaMustCompile_true_config_proto_13561319589895757934"
    "_executor_type_11160318154034397263_.6"
)
CLUSTER = (
    "cluster_0__XlaCompiledKernel_true__XlaHasReferenceVars_false__XlaNumConstantArgs_0"
    "__XlaNumResourceArgs_2_.6"
)

#: File name; kind; and what else its record must say.
NAMES: list[tuple[str, Kind, dict[str, Any]]] = [
    # JAX
    (
        "module_0002.jit_f.before_optimizations.txt",
        Kind.BEFORE_OPTIMIZATIONS,
        {"module_number": 2, "module_name": "jit_f", "format": Format.TEXT, "label": "before_optimizations"},
    ),
    (
        "module_0002.jit__lambda.cpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "jit__lambda", "platform": "cpu", "label": "cpu_after_optimizations"},
    ),
    (
        "module_0002.jit_f.0026.after_layout_assignment.after_pipeline-start.before_pipeline-end.txt",
        Kind.PASS,
        {
            "module_name": "jit_f",
            "sequence": 26,
            "pipeline": "after_layout_assignment",
            "after_pass": "pipeline-start",
            "before_pass": "pipeline-end",
        },
    ),
    (
        "module_0002.jit_f.0027.copy-insertion.after_adding_copies_to_resolve_interference.txt",
        Kind.PASS,
        {
            "sequence": 27,
            "pipeline": "copy-insertion",
            "after_pass": "adding_copies_to_resolve_interference",
            "before_pass": "",
        },
    ),
    (
        "1795278805508108.module_0002.jit_f.cpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"timestamp": 1795278805508108, "module_name": "jit_f"},
    ),
    (
        "module_0002.jit_f.before_optimizations.hlo.pb",
        Kind.BEFORE_OPTIMIZATIONS,
        {"format": Format.PROTO, "module_name": "jit_f"},
    ),
    (
        "module_0002.jit_f.cpu_after_optimizations.hlo.pb.gz",
        Kind.AFTER_OPTIMIZATIONS,
        {"format": Format.PROTO},
    ),
    (
        "module_0004.jit_g.snapshot.-184650187.pb",
        Kind.SNAPSHOT,
        {"format": Format.PROTO, "module_name": "jit_g", "execution": -184650187},
    ),
    (
        "1795278805508108.module_0004.jit_g.execution_0012.hlo_snapshot.pb",
        Kind.SNAPSHOT,
        {"execution": 12, "module_name": "jit_g"},
    ),
    (
        "module_jit_g.7.execution_0003.hlo_snapshot.pb",
        Kind.SNAPSHOT,
        {"execution": 3, "module_name": "jit_g.7", "module_number": None},
    ),
    (
        "module_0004.jit_g.execution_0000.hlo_unoptimized_snapshot.pb",
        Kind.UNOPTIMIZED_SNAPSHOT,
        {"format": Format.PROTO, "execution": 0},
    ),
    (
        "module_0004.jit_g.execution_0001.hlo_unoptimized_snapshot.txt",
        Kind.UNOPTIMIZED_SNAPSHOT,
        {"format": Format.TEXT_PROTO, "execution": 1},
    ),
    ("module.mlir", Kind.STABLEHLO, {}),
    ("compile_options.textproto", Kind.ARTEFACT, {}),
    ("topology.pb", Kind.ARTEFACT, {}),
    ("module_0002.jit_f.debug_options", Kind.ARTEFACT, {"module_name": "jit_f"}),
    (
        "module_0002.jit_f.cpu_after_optimizations-buffer-assignment-values.txt",
        Kind.ARTEFACT,
        {"module_name": "jit_f"},
    ),
    (
        "module_0002.jit_f.cpu_after_optimizations-memory-usage-report.pb.gz",
        Kind.ARTEFACT,
        {"module_name": "jit_f"},
    ),
    ("module_0002.jit_f.cpu_after_optimizations.top_level.html", Kind.ARTEFACT, {"module_name": "jit_f"}),
    ("main.5.module_0004.jit_g._fusion.html", Kind.ARTEFACT, {"module_name": "jit_g"}),
    (
        "module_0002.jit_f.multiply_add_fusion.3_kernel_module.ir-with-opt.ll",
        Kind.ARTEFACT,
        {"module_name": "", "rest": "jit_f.multiply_add_fusion.3_kernel_module.ir-with-opt.ll"},
    ),
    ("module_0002.jit_f.obj-file.wrapped_reduce-window_kernel_module.o", Kind.ARTEFACT, {}),
    ("module_0002.jit_f.multiply_fusion_kernel_module-post-lowering.mlir", Kind.ARTEFACT, {}),
    ("module_0002.jit_f.copy_fusion_kernel_module.mlir-passes.log", Kind.ARTEFACT, {}),
    # TensorFlow
    (f"module_0029.{TF}.before_optimizations.txt", Kind.BEFORE_OPTIMIZATIONS, {"module_name": TF}),
    (
        f"module_0009.{CLUSTER}.cpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": CLUSTER},
    ),
    ("before_mark_for_compilation_3.pbtxt", Kind.ARTEFACT, {}),
    ("mark_for_compilation_annotated.pbtxt", Kind.ARTEFACT, {}),
    ("before_increase_dynamism_for_auto_jit_pass.pbtxt", Kind.ARTEFACT, {}),
    # the name is left out where the file name would be too long
    (
        "module_0029.0013.HLO_passes_through_layout_assignment.after_transpose-folding.before_cse.txt",
        Kind.PASS,
        {"module_number": 29, "module_name": "", "sequence": 13},
    ),
    ("module_0029.before_optimizations.txt", Kind.BEFORE_OPTIMIZATIONS, {"module_name": ""}),
    # torch-xla: the name ends in a number that looks like the number of a pass
    (
        "module_0011.SyncTensorsGraph.12345.cpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "SyncTensorsGraph.12345", "sequence": None},
    ),
    (
        "module_0011.SyncTensorsGraph.1445.0003.simplification.after_algsimp.before_dce.txt",
        Kind.PASS,
        {"module_name": "SyncTensorsGraph.1445", "sequence": 3, "pipeline": "simplification"},
    ),
    # GPU
    (
        "module_0011.SyncTensorsGraph.12345.sm_9.0_gpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "SyncTensorsGraph.12345", "platform": "sm_9.0_gpu"},
    ),
    (
        "module_0011.jit_step.sm_10.0a_gpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "jit_step", "platform": "sm_10.0a_gpu"},
    ),
    (
        "module_0142.jit_train_step.gfx950_gpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "jit_train_step", "platform": "gfx950_gpu"},
    ),
    (
        "module_0002.jit__kern.gpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "jit__kern", "platform": "gpu"},
    ),
    (
        "module_0002.jit_f._gpu_after_optimizations.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "jit_f", "platform": "gpu"},
    ),
    (
        "module_0001.jit_f.sm_8.0_gpu_after_optimizations-buffer-assignment.txt",
        Kind.ARTEFACT,
        {"module_name": "jit_f"},
    ),
    (
        "module_0001.jit_f.after_spmd_partitioner.txt",
        Kind.NAMED,
        {"module_name": "jit_f", "label": "after_spmd_partitioner"},
    ),
    (
        "module_0001.jit_f.gemm_fusion_12.gemm_fusion_dot.3.optimized.txt",
        Kind.FUSION,
        {"module_name": "jit_f", "label": "gemm_fusion_12.gemm_fusion_dot.3.optimized"},
    ),
    (
        "module_0001.jit_f.triton_fusion_numerics_verifier_failed_41.hlo",
        Kind.FUSION,
        {"module_name": "jit_f", "format": Format.TEXT},
    ),
    ("module_0001.jit_f.thunk_sequence.txt", Kind.ARTEFACT, {"module_name": "jit_f"}),
    ("module_0001.jit_f.thunk_sequence_after_thunk_passes.txt", Kind.ARTEFACT, {"module_name": "jit_f"}),
    ("module_0001.jit_f.autotune_results.pbtxt", Kind.ARTEFACT, {"module_name": "jit_f"}),
    ("module_0001.jit_f.gpu_target_config.pbtxt", Kind.ARTEFACT, {"module_name": "jit_f"}),
    ("module_0001.jit_f.ptx", Kind.ARTEFACT, {}),
    ("module_0001.jit_f.ir-no-opt.ll", Kind.ARTEFACT, {}),
    ("module_0001.jit_f.cudnn_fusion_gemm_fusion.json", Kind.ARTEFACT, {}),
    # TPU
    (
        "module_0000.jit_train_step.after_optimizations_after_buffer_assignment.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {
            "module_name": "jit_train_step",
            "platform": "",
            "label": "after_optimizations_after_buffer_assignment",
        },
    ),
    (
        "module_0080.jit_f.cl_747713181.after_codegen.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"module_name": "jit_f", "label": "after_codegen"},
    ),
    (
        "module_0080.jit_f.cl_747713181.before_optimizations.txt",
        Kind.BEFORE_OPTIMIZATIONS,
        {"module_name": "jit_f", "change": 747713181},
    ),
    (
        "module_0003.jit_f.cl_932483720.0000.X64_elimination.after_xprecision-rewriter"
        ".before_comparison-expander.txt",
        Kind.PASS,
        {"module_name": "jit_f", "change": 932483720, "sequence": 0, "pipeline": "X64_elimination"},
    ),
    (
        "module_0003.jit_f.cl_932483720.0001.Phase_1_pre-layout_assignment_passes.after_pipeline-start"
        ".before_tpu-embedding-thread-annotator.txt",
        Kind.PASS,
        {"pipeline": "Phase_1_pre-layout_assignment_passes", "after_pass": "pipeline-start"},
    ),
    (
        "module_0003.jit_f.cl_932483720.after_optimizations_before_buffer_assignment.txt",
        Kind.AFTER_OPTIMIZATIONS,
        {"platform": "", "change": 932483720},
    ),
    (
        "module_0003.jit_f.cl_932483720.after_optimizations-live-range.txt",
        Kind.ARTEFACT,
        {"module_name": "jit_f", "change": 932483720},
    ),
    ("module_0003.jit_f.cl_932483720.basic_compiler_metadata.txt", Kind.ARTEFACT, {"change": 932483720}),
    ("module_0003.jit_f.cl_932483720.transfer_stats.txt", Kind.ARTEFACT, {"module_name": "jit_f"}),
    (
        "module_0003.jit_f.cl_932483720.stage_of_the_future.txt",
        Kind.UNKNOWN,
        {"module_name": "jit_f", "change": 932483720},
    ),
    ("module_0003.jit_f.cl_12.x.before_optimizations.txt", Kind.BEFORE_OPTIMIZATIONS, {"change": None}),
    ("module_0012.jit__unnamed_wrapped_function_.tpu_comp_env.txt", Kind.ARTEFACT, {}),
    ("module_0012.jit_f.execution_options.txt", Kind.ARTEFACT, {"module_name": "jit_f"}),
    ("module_0012.jit_f.flagfile", Kind.ARTEFACT, {"module_name": "jit_f"}),
    # XLA's own tools, and no dump at all
    ("module_0000.add.before_optimization.txt", Kind.BEFORE_OPTIMIZATIONS, {"module_name": "add"}),
    ("conv.hlo", Kind.PLAIN, {"format": Format.TEXT}),
    ("conv.hlo.txt.xz", Kind.PLAIN, {"format": Format.TEXT}),
    ("conv.hlo.pb", Kind.PLAIN, {"format": Format.PROTO}),
    ("notes.txt", Kind.UNKNOWN, {}),
    ("stdout.log.bz2", Kind.UNKNOWN, {}),
    ("memory.pb", Kind.UNKNOWN, {"format": Format.PROTO}),
    ("Makefile", Kind.UNKNOWN, {}),
    ("inputs.npz", Kind.ARTEFACT, {}),
    ("module_0001.jit_f.some_stage_of_the_future.txt", Kind.UNKNOWN, {"module_number": 1, "module_name": ""}),
]


@pytest.mark.parametrize(("name", "kind", "expected"), [pytest.param(*row, id=row[0]) for row in NAMES])
def test_a_name_is_taken_apart(name: str, kind: Kind, expected: dict[str, Any]) -> None:
    parsed = parse_name(name)
    assert parsed.kind is kind
    assert {key: getattr(parsed, key) for key in expected} == expected
    assert parsed.text == name


@pytest.mark.parametrize(
    ("folder", "number", "name", "change"),
    [
        ("module_0000.jit_f", 0, "jit_f", None),
        ("module_0000.jit_f.cl_932483720", 0, "jit_f", 932483720),
        ("module_0012.SyncTensorsGraph.445", 12, "SyncTensorsGraph.445", None),
        ("jit_f_1795895038816", None, "jit_f", None),
        ("module_1795895038816", None, "module", None),
        ("module_0000", 0, "", None),
        ("host1", None, "", None),
    ],
)
def test_a_folder_is_taken_apart(folder: str, number: int | None, name: str, change: int | None) -> None:
    parsed = parse_folder(folder)
    assert (parsed.module_number, parsed.module_name, parsed.change) == (number, name, change)


def test_every_kind_but_the_obvious_is_in_the_table() -> None:
    assert {kind for _, kind, _ in NAMES} == set(Kind)
