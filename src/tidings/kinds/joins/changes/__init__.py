"""Reads changes of rows from events, and decides which of them are applied."""
