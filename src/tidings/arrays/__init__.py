"""Compiled loops that several kinds of subscription share, and arrays that live in files."""
