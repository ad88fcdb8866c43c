"""Facts about programs: where values come from, ranges, trip counts, correspondence."""
