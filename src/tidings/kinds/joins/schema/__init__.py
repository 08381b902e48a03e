"""Declared tables, and the shape and ranges of a subscription over them."""
