"""Boolean expressions over the attributes of an event."""
