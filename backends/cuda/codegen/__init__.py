"""Generated kernels: the computation of a fusion as CUDA C++ that g++ compiles, too.

`elements` names the types, `elementwise` writes single operations, `emit` whole computations by one recursion
over index expressions, `schedules` and `trees` the loops and reductions around them, `partition` divides a
fusion into kernels. `prelude` is what the generated source is built on. Nothing here compiles or
runs anything.
"""
