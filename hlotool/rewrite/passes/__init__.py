"""Passes: rewrites of modules, the manager that runs them, and the rules of fusion.

A pass is a frozen dataclass: its fields are its options, its `run` edits a module. It asks `context.spend`
before every single transformation, which counts them and lets a search stop the pass after N of them.

>>> from dataclasses import dataclass
>>> from typing import ClassVar
>>> from hlotool.ir.edit import editing
>>> from hlotool.ir.module import Module
>>> from hlotool.rewrite.passes.base import Context
>>> @dataclass(frozen=True)
... class DropBarriers:
...     '''Remove optimization barriers.
...
...     Attributes:
...         tuples: those of tuples, too.
...     '''
...
...     name: ClassVar[str] = "drop-barriers"
...     tuples: bool = True
...
...     def run(self, module: Module, context: Context) -> None:
...         for computation in module.computations:
...             with editing(computation) as edit:
...                 for instruction in edit:
...                     if instruction.opcode == "opt-barrier" and context.spend("barrier"):
...                         edit.replace(instruction, instruction.operands[0])

The manager runs it, verifies what it left, and keeps statistics:

>>> import hlotool
>>> from hlotool.rewrite.passes.manager import PassManager
>>> from hlotool.rewrite.passes.pipeline import Pipeline
>>> module = hlotool.parse('''HloModule m
... ENTRY e { x = f32[4] parameter(0) b = f32[4] opt-barrier(x) ROOT n = f32[4] negate(b) }''')
>>> manager = PassManager()
>>> manager.run(module, Pipeline("example", (DropBarriers(),)))
True
>>> manager.runs[0].changes
{'barrier': 1}
>>> [instruction.opcode for instruction in module.entry.instructions]
['parameter', 'negate']

Registered under an entry point of the group `hlotool.passes`, it is a pass of `hlotool opt --passes`.
"""
