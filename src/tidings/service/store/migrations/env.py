"""Run by Alembic: it works on the connection, and inside the transaction, that `database` has opened."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
)
context.run_migrations()
