"""Generated kernels: the computation of a fusion as CUDA C++ that g++ compiles, too.

`expansion` and `precision` bring a computation into the form that the rules know: no calls, no tuples
inside, libraries (`batch_norms`, `narrow_products`) written in simpler instructions. `partition` divides it
into kernels.

`elements` names the types, `elementwise` writes single operations, and `emit` whole computations by one
recursion over index expressions (`indices`); `rules` says which operations are known. Their families are
`movement`, `bits`, `reductions`, `contractions`, `convolutions`, `scatters`, `pooling` and `random_bits`.

`loops`, `rows`, `columns`, `choices`, `transpositions` and `product_tiles` write the loops, trees and tiles
around them, `own_kernels` says what is not computed where it is read, and `schedules` puts kernels together.
`prelude` is what the generated source is built on. Nothing here compiles or runs anything.
"""
