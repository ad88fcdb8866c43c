"""What each opcode says about the sizes of the dimensions of its operands and its result, by opcode."""
