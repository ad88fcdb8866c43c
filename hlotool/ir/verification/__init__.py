"""Rules that the verifier applies, by what they look at. XLA: hlo_verifier.cc."""
