"""Inputs of a replay: captured or generated."""
