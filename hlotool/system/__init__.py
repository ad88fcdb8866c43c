"""Processes, files, stores and caches: what every room stands on, without any knowledge of HLO."""
