"""What programs hold: counts, sizes, costs, memory, and the kernels that would be made of them."""
