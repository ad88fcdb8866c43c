"""What is wrong, slow or surprising in a program, found without running it.

A rule looks at one module, or at all modules of a dump together, and yields findings. Rules are registered in
`rules.RULES` by their decorators; `run.check` applies them.
"""
