"""Fusion formation: loops, reductions with what they read, several outputs of one kernel.

XLA: instruction_fusion.cc (producers into consumers, last consumers first), multi_output_fusion.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hlotool.ir.edit import Names, computation_names, editing
from hlotool.ir.edit_dead import remove_dead_computations
from hlotool.ir.module import Computation, Module
from hlotool.ir.walk import Context as CallContext
from hlotool.ir.walk import contexts
from hlotool.passes.base import Context
from hlotool.passes.joint_fusion import JointFusion
from hlotool.passes.loop_fusion import LoopFusion
from hlotool.passes.multi_output_fusion import MultiOutputFusion
from hlotool.passes.row_fusion import RowFusion

#: What XLA has other means for.
_OUR_OWN: Mapping[str, type[RowFusion | JointFusion]] = {"rows": RowFusion, "joint": JointFusion}


@dataclass(frozen=True, slots=True)
class Fuse:
    """Form fusions, by the rules that XLA has for them.

    Attributes:
        kind: loops; reductions and scatters with what they read (input); several outputs; all of these;
            reductions with all that is computed along their rows; or what one loop can do jointly.
        target: on the CPU reductions are loops.
        max_instructions: no fusion becomes larger.
    """

    name: ClassVar[str] = "fuse"
    kind: Literal["all", "loop", "input", "multi-output", "rows", "joint"] = "all"
    target: Literal["gpu", "cpu"] = "gpu"
    max_instructions: int = 128

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        names, kinds = computation_names(module), contexts(module)
        for computation in list(module.computations):
            if kinds[computation] == {CallContext.CONTROL_FLOW}:
                self._fuse(module, computation, names, context)
        remove_dead_computations(module)

    def _fuse(self, module: Module, computation: Computation, names: Names, context: Context) -> None:
        if self.kind in _OUR_OWN:
            with editing(computation) as edit:
                _OUR_OWN[self.kind](module, edit, names, context, self.max_instructions).form()
            return
        with editing(computation) as edit:
            if self.kind != "multi-output":
                roots = {"loop", "input"} if self.kind == "all" else {self.kind}
                LoopFusion(module, edit, names, context, self.target, self.max_instructions).form(roots)
        if self.kind in ("all", "multi-output"):
            with editing(computation) as edit:
                MultiOutputFusion(module, edit, names, context, self.max_instructions).form()
