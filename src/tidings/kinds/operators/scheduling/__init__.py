"""Decides in which order operators are evaluated."""
