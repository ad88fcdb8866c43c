"""The intermediate representation: shapes, instructions, computations, modules, and the opcode table."""
