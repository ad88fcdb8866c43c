"""From a task to rows: programs executed in workers, judged, cached, on one or many machines."""
