"""The one place that finds the instruction at which two executions part."""
