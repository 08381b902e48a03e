"""Compiled loops of word search."""
