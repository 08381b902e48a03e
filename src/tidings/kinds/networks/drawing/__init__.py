"""Networks as pictures and in figures."""
