"""The Python API: what the commands do, as functions that return result objects.

`hlotool` itself has the public names; each loads the file of this room that defines it. A command of
`hlotool.interface.cli` calls such a function with options declared once for both, and shows the result.
"""
