"""Programs by others, as bug reports attach them, of which it is known what is wrong with each."""
