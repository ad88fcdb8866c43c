"""Inputs of a replay: given, captured, generated, or directed at what plain ones do not reach."""
