"""Draws networks and summarises them in numbers."""
