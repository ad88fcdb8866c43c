"""What the files of a dump directory are."""
