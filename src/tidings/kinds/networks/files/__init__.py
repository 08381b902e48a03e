"""Reads networks from files and tables, and saves them in folders."""
