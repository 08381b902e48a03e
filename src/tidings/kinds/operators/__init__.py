"""Operators: expensive questions about an event, asked as rarely as possible."""
