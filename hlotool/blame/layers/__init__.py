"""Two executions of a model layer by layer: what belongs together, and which layer goes wrong first."""
