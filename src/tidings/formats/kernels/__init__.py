"""Compiled readers of JSON, Turtle, N-Triples and literals."""
