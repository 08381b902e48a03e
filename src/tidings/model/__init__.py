"""The data model: events, notifications, explanations, values, RDF terms, the taxonomy."""
