"""What the rest of Tidings speaks of: events, notifications, values, RDF terms, the taxonomy."""
