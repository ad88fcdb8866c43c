"""Shape rules, one small function per opcode or family. XLA: shape_inference.cc, hlo_verifier.cc."""
