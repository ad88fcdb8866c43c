"""What everybody passes on: sources, errors, verdicts, provenance."""
