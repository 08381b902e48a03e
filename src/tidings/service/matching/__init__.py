"""The index kept in step with the registry, and the process in which Spark matches the log."""
