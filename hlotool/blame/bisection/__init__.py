"""From a wrong dump to a module, a pass, an instruction."""
