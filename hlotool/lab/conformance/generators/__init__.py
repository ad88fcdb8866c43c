"""Random modules of one instruction, or a few: where their cases come from; `cases` has the register."""
