"""Pages for whoever runs the service: tokens, definitions, and the description of the API."""
