"""Turns request bodies and followed feeds into events of the log, each stored once."""
