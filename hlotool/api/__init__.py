"""The Python API: what the commands do, as functions that return result objects.

`hlotool` itself has the public names; each loads the file of this room that defines it. A command of
`hlotool.cli` is a parser of options, one call of such a function, and a rendering of its result.
"""
