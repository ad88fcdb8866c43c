"""The grammar of HLO text, and the parsers built from it."""
