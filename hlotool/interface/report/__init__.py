"""Records (the JSON format) and their renderings."""
