"""Compiled loops that several kinds of subscription share, and arrays in files."""
