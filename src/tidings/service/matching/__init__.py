"""Keeps the index in step with the registry, and runs the process in which Spark matches the log."""
