"""HLO text into the IR: grammar actions, names and attributes checked, literals decoded, large texts cut."""
