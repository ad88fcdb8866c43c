"""HTML reports: everything of a record in one self-contained file that loads nothing from elsewhere."""
