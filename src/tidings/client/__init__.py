"""The client of the service: the same calls, made at once or awaited."""
