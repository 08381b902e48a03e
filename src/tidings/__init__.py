"""Tidings: standing questions, matched against every event at once."""
