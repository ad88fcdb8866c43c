"""Which dump directories the corpus has: a program, the dump flags it runs under, and the files that stay."""

from __future__ import annotations

from dataclasses import dataclass, replace

from programs import Program

PASS_FILES = "*.[0-9][0-9][0-9][0-9].*.txt"
HLO_FILES = ("*.before_optimizations.txt", "*_after_optimizations.txt")
#: The first and the last text of libtpu and of XLA:GPU, and what a GPU is asked to do.
COMPILED_FILES = (*HLO_FILES, "*.after_codegen.txt", "*.thunk_sequence.txt")
#: What it takes to execute a GPU's program: kernels, what each step is for, where values lie.
PTX_FILES = ("*.ptx", "*.thunk_metadata.txt", "*-buffer-assignment.txt")
#: What libtpu and XLA:GPU say of memory.
REPORT = "*-memory-usage-report.txt"
EVERYTHING = ("*",)
MODULE_INPUT = "*/module.mlir"

DUMP = "--xla_dump_to=dump"
TEXT = "--xla_dump_hlo_as_text"
CONSTANTS = "--xla_dump_large_constants"
ALL_PASSES = "--xla_dump_hlo_pass_re=.*"
NO_METADATA = "--xla_dump_disable_metadata"
PLAIN = (DUMP, TEXT, CONSTANTS)
#: NO_METADATA as an option of a target.
BARE = f"{NO_METADATA.lstrip('-')}=true"


@dataclass(frozen=True)
class Directory:
    """One directory of the corpus.

    Attributes:
        name: of the directory, below `jax/`, `tf/`, `tpu/`, `gpu/`, `gpu_ptx/` or `miscompiles/`.
        program: the program that fills it.
        flags: XLA_FLAGS, one an entry.
        keep: patterns of the files that stay, relative to the dump directory.
        drop: patterns of files to leave out again.
        pack: `tar.gz` or `zip` to keep the dump as an archive, `log` to keep the standard output instead.
        values: store the arguments and results of the single call as `inputs.npz` and `outputs.npz`.
        about: what is special here, when it is not the program.
        target: of a dump that `hlotool compile` makes, as its `--for` takes it; such a dump has no flags.
        passes: such a dump has the text after every pass.
    """

    name: str
    program: str
    flags: tuple[str, ...] = PLAIN
    keep: tuple[str, ...] = HLO_FILES
    drop: tuple[str, ...] = ()
    pack: str = ""
    values: bool = False
    about: str = ""
    target: str = ""
    passes: bool = False


def _passes(name: str, *more_flags: str, values: bool = False) -> Directory:
    flags = (*PLAIN, ALL_PASSES, *more_flags)
    about = "the dump of each pass" + (", without metadata" if NO_METADATA in more_flags else "")
    return Directory(name, name, flags, (*HLO_FILES, PASS_FILES), values=values, about=about)


def _compiled(program: str, target: str, *passes: str, name: str = "", about: str = "") -> Directory:
    notes = [
        *([about] if about else []),
        *(["the dump of each pass"] if PASS_FILES in passes else []),
        *(["without metadata"] if BARE in target else []),
    ]
    keep, noted = (*COMPILED_FILES, *passes), "; ".join(notes)
    return Directory(name or program, program, (), keep, about=noted, target=target, passes=bool(passes))


def _without_triton(program: str, *passes: str) -> Directory:
    about, target = "products by cuBLASLt, not by Triton", f"h100,triton=off,{BARE}"
    return _compiled(program, target, *passes, name=f"{program}_triton_off", about=about)


_SPECIAL = {
    "jax": (
        Directory(
            "model_fn",
            "model_fn",
            (*PLAIN, ALL_PASSES),
            EVERYTHING,
            values=True,
            about="every file that a dump with passes has",
        ),
        _passes("fizzbuzz"),
        _passes("collatz"),
        _passes("cholesky_solve", values=True),
        _passes("cumulative"),
        _passes("batched_indexing"),
        _passes("int8_dot"),
        _passes("top_k", NO_METADATA),
        _passes("nested_calls", NO_METADATA),
        _passes("int4_product", values=True),
        _passes("train_mnist_mlp", values=True),
        _passes("dynamic_rnn", values=True),
        Directory("gathers", "gathers", values=True),
        Directory("conv_windows", "conv_windows", values=True),
        Directory("collectives", "collectives", keep=(*HLO_FILES, MODULE_INPUT), values=True),
        Directory("pmap_step", "pmap_step", values=True),
        Directory("sharded_mlp", "sharded_mlp", values=True),
        Directory("sharded_train_step", "sharded_train_step", values=True),
        Directory(
            "donated_update",
            "donated_update",
            (DUMP, TEXT, CONSTANTS, "--xla_dump_emitter_re=.*"),
            EVERYTHING,
            ("*.mlir-passes.log",),
            about="every file of a dump, those of the kernel emitters too",
        ),
        Directory(
            "table_lookup_elided",
            "table_lookup",
            (DUMP, TEXT),
            (*HLO_FILES, MODULE_INPUT),
            values=True,
            about="constants elided, to be filled in from module.mlir",
        ),
        Directory(
            "table_lookup_elided_for_good",
            "table_lookup",
            (DUMP, TEXT),
            about="constants elided, and nothing to fill them in from",
        ),
        Directory(
            "snapshots",
            "dynamic_rnn",
            (*PLAIN, "--xla_dump_hlo_snapshots"),
            (*HLO_FILES, "*.snapshot.*.pb"),
            values=True,
            about="a snapshot of each execution: arguments and result",
        ),
        Directory(
            "unoptimized_snapshots",
            "model_fn",
            (DUMP, "--xla_dump_hlo_unoptimized_snapshots"),
            EVERYTHING,
            values=True,
            about="unoptimised snapshots as protos; they suppress the other files",
        ),
        Directory(
            "unoptimized_snapshots_text",
            "model_fn",
            (DUMP, TEXT, "--xla_dump_hlo_unoptimized_snapshots"),
            EVERYTHING,
            about="unoptimised snapshots as text protos",
        ),
        Directory(
            "protos",
            "table_lookup",
            (DUMP, "--xla_dump_hlo_as_proto"),
            EVERYTHING,
            ("*.ll", "*.o"),
            about="protos and no text",
        ),
        Directory(
            "protos_beside_text",
            "table_lookup",
            (DUMP, TEXT, "--xla_dump_hlo_as_proto"),
            (*HLO_FILES, "*.hlo.pb"),
            about="elided text, to be filled in from the protos",
        ),
        Directory(
            "protos_compressed",
            "model_fn",
            (DUMP, "--xla_dump_hlo_as_proto", "--xla_dump_compress_protos"),
            ("*.pb*",),
            about="protos under gzip",
        ),
        Directory("archive_tar", "collatz", pack="tar.gz", about="a dump in a .tar.gz"),
        Directory("archive_zip", "model_fn", pack="zip", about="a dump in a .zip"),
        Directory(
            "stdout_log",
            "recompiled_on_launch",
            (TEXT, CONSTANTS),
            pack="log",
            about="a dump to standard output, as bug reports quote it",
        ),
        Directory(
            "timestamps",
            "model_fn",
            (*PLAIN, "--xla_dump_include_timestamp"),
            about="file names that begin with the time",
        ),
        Directory(
            "subfolders",
            "collatz",
            (*PLAIN, "--xla_dump_hlo_to_subfolder"),
            ("*/*/*.before_optimizations.txt", "*/*/*_after_optimizations.txt"),
            about="a folder for each module and host",
        ),
        Directory(
            "unpaired",
            "recompiled_on_launch",
            (*PLAIN, "--xla_dump_max_hlo_modules=3"),
            about="modules whose optimised text is missing",
        ),
        Directory(
            "short_text",
            "conv_gradients",
            (*PLAIN, "--xla_dump_hlo_as_long_text=false"),
            about="the short form of the text: no percent signs, no signatures",
        ),
    ),
    "tf": (
        Directory("model_fn", "model_fn", keep=EVERYTHING, drop=("*.o",), about="every file of a dump"),
        _passes("while_gradient", NO_METADATA),
        Directory("random_stateless", "random_stateless", (*PLAIN, NO_METADATA), about="without metadata"),
        Directory("auto_clustering", "auto_clustering", keep=(*HLO_FILES, "*.pbtxt")),
    ),
    "tpu": (
        _compiled("dot_int4", f"v5e,{BARE}", PASS_FILES),
        _compiled("random_numbers", f"v5e,{BARE}"),
        _compiled("train_decoder", f"v5e,{BARE}"),
    ),
    "gpu": (
        _without_triton("attention"),
        _without_triton("dot_epilogues", PASS_FILES),
        _without_triton("dot_fp8"),
        _without_triton("mixture_of_experts"),
        _without_triton("scan_gru"),
        _without_triton("train_mlp"),
        _compiled("dot_int4", f"h100,{BARE}", PASS_FILES),
        _compiled("random_numbers", f"h100,{BARE}"),
        _compiled(
            "train_decoder",
            f"h100,triton=off,{BARE}",
            about="products by cuBLASLt: Triton finds no tiles for one of them",
        ),
        _compiled("collectives", "h100,topology=1x1x2"),
        _compiled("data_parallel", "h100,topology=1x1x2"),
    ),
    "gpu_ptx": (
        _compiled(
            "halved_bias",
            f"h100,triton=off,{BARE}",
            "*.002[0-9].hlo_normalization.*.txt",
            "*.0022.*.txt",
            *PTX_FILES,
            about="products by cuBLASLt, not by Triton; the passes around the wrong one",
        ),
    ),
    "miscompiles": (
        _compiled(
            "exponential_of_pairs",
            f"v5e,{BARE}",
            "module_0000.*.000[0-9].*.txt",
            "*.0000.X64_elimination.*.txt",
            "*.001[0-5].simplification-1.*.txt",
            about="the passes around the wrong one",
        ),
    ),
}
#: Of the programs that are compiled for a device, and not said to be for another target.
_TARGETS = {"tpu": "v5e", "gpu": "h100", "gpu_ptx": f"h100,{BARE}"}
#: Files that are kept beside the texts.
_MORE_FILES = {"gpu_ptx": PTX_FILES}


def directories(framework: str, programs: dict[str, Program]) -> list[Directory]:
    """All directories of a framework: the special ones and, for each program not among them, a plain one."""
    special = _SPECIAL.get(framework, ())
    others = [known for name, known in programs.items() if all(d.name != name for d in special)]
    plain = [_plain(framework, known) for known in others]
    return sorted([*special, *plain], key=lambda directory: directory.name)


def _plain(framework: str, known: Program) -> Directory:
    if known.target:
        return _compiled(known.name, known.target, PASS_FILES)
    if framework == "miscompiles":
        return _passes(known.name, values=True)
    if framework in _TARGETS:
        made = _compiled(known.name, _TARGETS[framework])
        return replace(made, keep=(*made.keep, *_MORE_FILES.get(framework, ())))
    return Directory(known.name, known.name)
