"""What other tools and other versions write: PyTorch/XLA, AWS Neuron, old printers, private kernels."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

_ADD = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
_ADD += "  ROOT %c = f32[] add(f32[] %a, f32[] %b)\n}\n"
_UNSAID = "api_version=API_VERSION_UNSPECIFIED"

#: A step of data-parallel training: tokens beside tensors, and a header that does not name the replicas.
TORCH = f"""HloModule SyncTensorsGraph.12, entry_computation_layout={{(f32[4,3]{{1,0}}, f32[])->(f32[4,3]{{1,0}}, f32[])}}

{_ADD}
ENTRY %SyncTensorsGraph.12 (p0.1: f32[4,3], p1.2: f32[]) -> (f32[4,3], f32[]) {{
  %p0.1 = f32[4,3]{{1,0}} parameter(0), frontend_attributes={{neff_input_names="input0"}}
  %p1.2 = f32[] parameter(1)
  %token.3 = token[] after-all()
  %all-reduce.4 = (f32[4,3]{{1,0}}, f32[], token[]) all-reduce(f32[4,3]{{1,0}} %p0.1, f32[] %p1.2, token[] %token.3), replica_groups={{{{0,1,2,3}}}}, constrain_layout=true, to_apply=%add
  %get-tuple-element.5 = f32[4,3]{{1,0}} get-tuple-element((f32[4,3]{{1,0}}, f32[], token[]) %all-reduce.4), index=0
  %get-tuple-element.6 = f32[] get-tuple-element((f32[4,3]{{1,0}}, f32[], token[]) %all-reduce.4), index=1
  ROOT %tuple.7 = (f32[4,3]{{1,0}}, f32[]) tuple(f32[4,3]{{1,0}} %get-tuple-element.5, f32[] %get-tuple-element.6)
}}
"""  # noqa: E501
#: A layer for AWS hardware.
NEURON = f"""HloModule Layer.9

ENTRY %Layer.9 (p0.1: f32[4,8], p1.2: f32[8], p2.3: f32[8,6]) -> (f32[4,6], u32[4]) {{
  %p0.1 = f32[4,8]{{1,0}} parameter(0)
  %p1.2 = f32[8]{{0}} parameter(1)
  %p2.3 = f32[8,6]{{1,0}} parameter(2)
  %custom-call.4 = f32[8,6]{{1,0}} custom-call(f32[8,6]{{1,0}} %p2.3), custom_call_target="AwsNeuronTransferWithStaticRing", {_UNSAID}
  %constant.5 = f32[] constant(1e-06)
  %custom-call.6 = f32[4,8]{{1,0}} custom-call(f32[4,8]{{1,0}} %p0.1, f32[8]{{0}} %p1.2, f32[] %constant.5), custom_call_target="AwsNeuronRmsNorm", {_UNSAID}, backend_config="1"
  %dot.7 = f32[4,6]{{1,0}} dot(f32[4,8]{{1,0}} %custom-call.6, f32[8,6]{{1,0}} %custom-call.4), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %custom-call.8 = f32[4,6]{{1,0}} custom-call(f32[4,6]{{1,0}} %dot.7), custom_call_target="AwsNeuronGelu", {_UNSAID}
  %custom-call.9 = f32[4,6]{{1,0}} custom-call(f32[4,6]{{1,0}} %custom-call.8), custom_call_target="AwsNeuronSoftmax", {_UNSAID}, backend_config="1"
  %custom-call.10 = u32[4]{{0}} custom-call(f32[4,6]{{1,0}} %custom-call.9), custom_call_target="AwsNeuronArgMax", {_UNSAID}, backend_config="1"
  ROOT %tuple.11 = (f32[4,6]{{1,0}}, u32[4]{{0}}) tuple(f32[4,6]{{1,0}} %custom-call.9, u32[4]{{0}} %custom-call.10)
}}
"""  # noqa: E501
#: As XLA printed in 2020: shapes before operands, a library call that is gone.
CUDNN = """HloModule cluster_1__XlaCompiledKernel_true__.8

ENTRY %cluster_1.8 (arg0.1: f32[2,4,4,3], arg1.2: f32[3], arg2.3: f32[3]) -> (f32[2,4,4,3], f32[3], f32[3]) {
  %arg0.1 = f32[2,4,4,3]{3,2,1,0} parameter(0), parameter_replication={false}, metadata={op_name="XLA_Args"}
  %arg1.2 = f32[3]{0} parameter(1), parameter_replication={false}, metadata={op_name="XLA_Args"}
  %arg2.3 = f32[3]{0} parameter(2), parameter_replication={false}, metadata={op_name="XLA_Args"}
  %constant.4 = f32[] constant(0.001)
  %constant.5 = s64[] constant(3)
  ROOT %custom-call.6 = (f32[2,4,4,3]{3,2,1,0}, f32[3]{0}, f32[3]{0}) custom-call(f32[2,4,4,3]{3,2,1,0} %arg0.1, f32[3]{0} %arg1.2, f32[3]{0} %arg2.3, f32[] %constant.4, s64[] %constant.5), custom_call_target="__cudnn$batchNormalizationForwardTraining", metadata={op_type="FusedBatchNormV3" op_name="bn"}
}
"""  # noqa: E501
#: A kernel that only its compiler can read.
PRIVATE = """HloModule jit_attention

ENTRY %main.6 (q.1: f32[2,8], k.2: f32[8,8]) -> f32[2,8] {
  %q.1 = f32[2,8]{1,0} parameter(0)
  %k.2 = f32[8,8]{1,0} parameter(1)
  %dot.3 = f32[2,8]{1,0} dot(%q.1, %k.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %custom-call.4 = f32[2,8]{1,0} custom-call(%dot.3), custom_call_target="TARGET", backend_config={"custom_call_config": {"body": "TUzvUgFNTElS"}}
  ROOT %add.5 = f32[2,8]{1,0} add(%custom-call.4, %q.1)
}
"""  # noqa: E501
#: A table that the text leaves out.
ELIDED = """HloModule jit_lookup

ENTRY %main.5 (i.1: s32[4,1]) -> f32[4,16] {
  %constant.2 = f32[32,16]{1,0} constant({...})
  %i.1 = s32[4,1]{1,0} parameter(0)
  %constant.3 = f32[4,16]{1,0} constant({...})
  %gather.4 = f32[4,16]{1,0} gather(%constant.2, %i.1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}
  ROOT %add.5 = f32[4,16]{1,0} add(%gather.4, %constant.3)
}
"""  # noqa: E501


def _graphs(*texts: str) -> str:
    """What XLA_SAVE_TENSORS_FILE gets."""
    head = "[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  mark_step (train.py:9)\n\nHashes: (1a2b)\n\n"
    return "".join(f"{head}## BEGIN_GRAPH\n{text}\n\n## END_GRAPH\n\n" for text in texts)


def write(folder: Path) -> list[str]:
    """Write the files; returns the tables of `EXPECTED.toml`."""
    files = {
        "torch_xla.replicas.hlo": (TORCH, 1),
        "torch_xla.saved.txt": (_graphs(TORCH, NEURON), 2),
        "neuron.layer.hlo": (NEURON, 1),
        "old_printer.cudnn.txt": (CUDNN, 1),
        "private_kernel.tpu.hlo": (PRIVATE.replace("TARGET", "tpu_custom_call"), 1),
        "private_kernel.triton.hlo": (PRIVATE.replace("TARGET", "triton_kernel_call_ffi"), 1),
        "elided.lookup.txt": (ELIDED, 1),
        "module_0007.jit_f.before_optimizations.reduced.hlo": (PRIVATE.replace('"TARGET"', '"Sharding"'), 1),
    }
    tables = []
    for name, (text, programs) in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        form = "written by hlotool" if name.endswith("reduced.hlo") else name.partition(".")[0]
        tables.append(f'[[file]]\nname = "{name}"\nform = "{form}"\nprograms = {programs}\n')
    values = io.BytesIO()
    np.savez(values, q=np.full((2, 8), 0.5, np.float32), k=np.eye(8, dtype=np.float32))
    (folder / "module_0007.jit_f.before_optimizations.reduced.npz").write_bytes(values.getvalue())
    return tables
