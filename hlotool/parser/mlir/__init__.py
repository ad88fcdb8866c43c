"""MLIR text of StableHLO into the IR, without jaxlib."""
