"""How the parts of HLO are written: literals, shardings, metadata, attribute values."""
