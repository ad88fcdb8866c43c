"""PTX, the assembly that XLA:GPU generates, executed on the CPU without any GPU.

`program.py` reads PTX, `memory.py` is the device's memory, `launch.py` runs a kernel. The semantics is that
of NVIDIA's "Parallel Thread Execution ISA", sections named in the docstrings.
"""
