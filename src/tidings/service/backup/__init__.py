"""Backups of a running service in one file, and their restoration."""
