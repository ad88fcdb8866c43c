"""A page that travels: everything of a record in one file of HTML, which asks nobody for anything."""
