"""Parses and prints queries: one language for every kind of subscription (LANGUAGE.md shows it by example)."""
