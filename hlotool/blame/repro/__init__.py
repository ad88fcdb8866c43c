"""Repro bundles: a failure as a folder that explains itself and can be run again anywhere."""
