"""Records of imaginary runs, for the renderings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotool.interface.report.causes import causes_of_run
from hlotool.interface.report.records import RunRecord, exit_code_of, summary_of
from hlotool.judge.records import BucketRecord, ElementRecord, EvidenceRecord, MinimumToleranceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import (
    REALITY,
    InputsRecord,
    LeafRecord,
    ModuleRecord,
    OutputRecord,
    ToleranceRecord,
)
from hlotool.system.records import ErrorRecord, SourceRecord

GENERATED = InputsRecord(origin="generated", description="generated with seed 0", seed=0)
TOLERANCE = ToleranceRecord(
    relative=7.6e-6,
    absolute=1.1e-5,
    origin="64 ulp of f32 plus the error of 512 terms summed by dot %dot.4 (line 21)",
)
SOURCE = SourceRecord(
    instruction="multiply_add_fusion",
    opcode="fusion",
    line=210,
    op_name="jit(train_step)/transpose(jvp(dense))/dot_general",
    file="/home/user/train/model.py",
    file_line=88,
    function="train_step",
)


#: What a row lacks when its module never ran.
NEVER_RAN: dict[str, Any] = {
    "stage_reference": None,
    "stage_tested": None,
    "reference": None,
    "tested": None,
    "inputs": None,
}


def module(name: str, verdict: Verdict, **fields: Any) -> ModuleRecord:
    sides: dict[str, Any] = {
        "stage_reference": "before_optimizations",
        "stage_tested": "cpu_after_optimizations",
        "reference": "numpy 2.4.6",
        "tested": "numpy 2.4.6",
        "inputs": GENERATED,
        "seconds": 0.21,
    }
    path = fields.pop("path", f"dump/{name}.cpu_after_optimizations.txt")
    return ModuleRecord(path=path, name=name, verdict=verdict, **(sides | fields))


def agreeing_leaf(index: Sequence[int] = (), max_ulp: int = 2) -> LeafRecord:
    return LeafRecord(
        index=list(index),
        shape="f32[128]",
        verdict=Verdict.AGREE,
        reason="worst 1.2e-07 relative, 2 ulp",
        total=128,
        max_ulp=max_ulp,
        tolerance=TOLERANCE,
    )


def identical_leaf(index: Sequence[int] = ()) -> LeafRecord:
    return LeafRecord(
        index=list(index), shape="s32[]", verdict=Verdict.IDENTICAL, reason="bitwise equal", total=1
    )


def differing_leaf(index: Sequence[int] = ()) -> LeafRecord:
    worst = ElementRecord(
        index=[1, 7], expected="1", actual="1.25", absolute=0.25, relative=0.2, ulps=2_097_152
    )
    other = ElementRecord(
        index=[100, 63], expected="0", actual="-0.001", absolute=1e-3, relative=1.0, ulps=981_668_463
    )
    spoilt = ElementRecord(index=[0, 0], expected="0.5", actual="nan")
    return LeafRecord(
        index=list(index),
        shape="f32[128,64]",
        verdict=Verdict.WRONG,
        reason="3 of 8192 elements differ",
        total=8192,
        mismatched=3,
        nan_mismatches=1,
        max_ulp=981_668_463,
        worst_absolute=worst,
        worst_relative=other,
        top=[spoilt, worst, other],
        histogram=[
            BucketRecord(low=0.0, high=0.0, total=40, mismatched=0),
            BucketRecord(low=0.0001, high=0.01, total=152, mismatched=1),
            BucketRecord(low=0.01, high=1.0, total=8000, mismatched=1),
            BucketRecord(low=1e8, high=None, total=1, mismatched=1),
        ],
        tolerance=TOLERANCE,
        minimum_tolerance=MinimumToleranceRecord(absolute=None, relative=None, joint=None),
        source=SOURCE,
    )


def saved_leaf(index: Sequence[int] = ()) -> LeafRecord:
    worst = ElementRecord(index=[3], expected="2", actual="2.5", absolute=0.5, relative=0.2, ulps=2_097_152)
    return LeafRecord(
        index=list(index),
        shape="f32[8]",
        verdict=Verdict.WRONG,
        reason="1 of 8 elements differ",
        total=8,
        mismatched=1,
        max_ulp=2_097_152,
        worst_absolute=worst,
        worst_relative=worst,
        top=[worst],
        histogram=[BucketRecord(low=1.0, high=100.0, total=8, mismatched=1)],
        tolerance=ToleranceRecord(relative=1e-5, absolute=1e-6, origin="set by the user"),
        minimum_tolerance=MinimumToleranceRecord(absolute=0.5, relative=0.2, joint=0.142857),
        expected_file="out/module_0000.jit_f/out.1.expected.npy",
        actual_file="out/module_0000.jit_f/out.1.actual.npy",
    )


def judged(verdict: Verdict, reason: str, **evidence: Any) -> ModuleRecord:
    """A module with one output that an ensemble was asked about."""
    worst = ElementRecord(index=[3], expected="2", actual="2.001", absolute=1e-3, relative=5e-4, ulps=4194)
    leaf = LeafRecord(
        index=[],
        shape="f32[64]",
        verdict=verdict,
        reason=reason,
        total=64,
        mismatched=9,
        max_ulp=4194,
        worst_absolute=worst,
        worst_relative=worst,
        top=[worst],
        histogram=[BucketRecord(low=1.0, high=100.0, total=64, mismatched=9)],
        tolerance=TOLERANCE,
        minimum_tolerance=MinimumToleranceRecord(absolute=1e-3, relative=5e-4, joint=3.4e-4),
        evidence=EvidenceRecord(**({"seed": 0, "members": 5, "width": 2.5e-7} | evidence)),
        source=SOURCE if verdict is not Verdict.ROUNDING else None,
    )
    return module(f"jit_{verdict.value}", verdict, reason=reason, leaves=[leaf])


def explained() -> RunRecord:
    """One module of each verdict that needs an explanation."""
    return run(
        [
            judged(Verdict.ROUNDING, "rounding explains it", statistic="row", ratio=0.41),
            judged(
                Verdict.UNSTABLE,
                "too sensitive to judge: rounding alone moves this output by 0.6 × its size",
                width=0.6,
                instruction=SOURCE,
            ),
            judged(Verdict.RANGE, "1 element is infinite on one side only", wide="equal"),
            judged(Verdict.SEMANTICS, "XLA reads six bits of the exponent", rule="integer-power-six-bits"),
            judged(
                Verdict.WRONG,
                "no rounding explains it; shift: the values are shifted by 1",
                statistic="worst element",
                ratio=812.0,
                wide="outside",
                beyond=9,
                pattern="shift",
                detail="the values are shifted by 1",
            ),
        ]
    )


def real(name: str) -> ModuleRecord:
    """The reference against what the hardware returned."""
    captured = InputsRecord(origin="captured", description="captured in m.snapshot.-1.pb")
    return module(
        name,
        Verdict.AGREE,
        stage_tested=REALITY,
        tested="captured on Host",
        inputs=captured,
        leaves=[agreeing_leaf(max_ulp=0)],
    )


def unsupported(name: str, instruction: str, line: int) -> ModuleRecord:
    reason = f"custom-call {instruction}: no implementation of custom call target 'my_kernel'"
    error = ErrorRecord(
        kind="Unsupported",
        message=f"dump/{name}.before_optimizations.txt:{line}: {reason}",
        instruction=instruction,
        path=f"dump/{name}.before_optimizations.txt",
        line=line,
    )
    return module(name, Verdict.UNSUPPORTED, reason=error.message, error=error, **NEVER_RAN, seconds=0.03)


def crashed(name: str) -> ModuleRecord:
    log = "\n".join(
        ["Fatal Python error: Segmentation fault", *(f'  File "kernel.py", line {i}' for i in range(9))]
    )
    error = ErrorRecord(kind="BackendCrashed", message="numpy: the process died of SIGSEGV", log=log)
    return module(name, Verdict.CRASHED, reason=error.message, error=error, **NEVER_RAN, seconds=1.7)


def timed_out(name: str) -> ModuleRecord:
    message = "numpy: no answer within 300 s; the process was killed"
    error = ErrorRecord(kind="BackendTimeout", message=message)
    return module(name, Verdict.TIMEOUT, reason=message, error=error, **NEVER_RAN, seconds=300.0)


def endless(name: str) -> ModuleRecord:
    message = "numpy: endless loop: while %w (s32[]) (line 13) continues, but its state no longer changes"
    error = ErrorRecord(kind="EndlessLoop", message=message)
    return module(name, Verdict.TIMEOUT, reason=message, error=error, **NEVER_RAN, seconds=0.1)


def out_of_memory(name: str) -> ModuleRecord:
    message = "numpy: needs more memory than the limit of 8 GiB"
    error = ErrorRecord(kind="BackendOutOfMemory", message=message)
    return module(name, Verdict.OUT_OF_MEMORY, reason=message, error=error, **NEVER_RAN, seconds=3.0)


def alone(name: str = "jit_f") -> ModuleRecord:
    outputs = [
        OutputRecord(
            index=[0],
            shape="f32[4,8]",
            total=32,
            minimum=-1.5,
            mean=0.0123456,
            maximum=2.25,
            first=["0.5", "-1.5", "2.25", "0", "1"],
        ),
        OutputRecord(index=[1], shape="pred[]", total=1, first=["true"]),
        OutputRecord(index=[2], shape="f32[3]", total=3, nan=2, inf=1, first=["nan", "nan", "inf"]),
    ]
    return module(
        name,
        Verdict.NOT_COMPARED,
        stage_tested=None,
        tested=None,
        reason="a single module, no other stage to compare it with",
        outputs=outputs,
        path="f.hlo",
    )


def agreeing(name: str) -> ModuleRecord:
    return module(name, Verdict.AGREE, leaves=[agreeing_leaf([0]), identical_leaf([1])])


def differing(name: str) -> ModuleRecord:
    leaves = [agreeing_leaf([0]), differing_leaf([1]), saved_leaf([2])]
    return module(name, Verdict.WRONG, leaves=leaves, reason="output {1}: 3 of 8192 elements differ")


def run(modules: Sequence[ModuleRecord], **fields: Any) -> RunRecord:
    options = fields.pop("options", RunOptions())
    interrupted = fields.pop("interrupted", False)
    fields.setdefault("causes", causes_of_run(modules, lambda row: f"hlotool bisect dump --only {row.name}"))
    return RunRecord(
        versions={"hlotool": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"},
        paths=["dump"],
        options=options,
        modules=list(modules),
        summary=summary_of(modules),
        interrupted=interrupted,
        exit_code=exit_code_of(modules, interrupted),
        seconds=8.34,
        **fields,
    )


def mixed() -> RunRecord:
    """A bit of everything."""
    return run(
        [
            differing("module_0004.jit_train_step"),
            agreeing("module_0000.jit_f"),
            real("module_0000.jit_f"),
            agreeing(
                "module_0002.a_inference_train_mnist_76__XlaMustCompile_true_config_proto_13561_executor_type.6"
            ),
            unsupported("module_0006.jit_g", "custom-call.3", 12),
            unsupported("module_0008.jit_h", "custom-call.17", 40),
            crashed("module_0010.jit_boom"),
            timed_out("module_0012.jit_slow"),
            alone("module_0014.jit_unpaired"),
        ],
        notes=["module.old.txt: not HLO"],
    )
