"""What the service keeps in a database: the registry and the mailbox, on SQLite or on PostgreSQL."""
