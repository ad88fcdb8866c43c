"""Inputs that reach what the plain ones do not: further sets, each made for outcomes of decisions."""
