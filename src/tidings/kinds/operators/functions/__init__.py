"""Operators: their signatures, the catalogue that finds them, and the caller that runs them."""
