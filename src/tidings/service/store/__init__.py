"""Stores the registry and the mailbox in a database, SQLite or PostgreSQL."""
